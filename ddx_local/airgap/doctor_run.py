"""The child of the doctor's generation: `python -m ddx_local.airgap.doctor_run SETTINGS ANSWER`, both JSON."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from ddx_local.errors import DdxLocalError
from ddx_local.offline import go_offline


async def generate(settings: dict[str, Any]) -> dict[str, Any]:
    """Opens the engine, asks one question, and says how many tokens came."""
    from ddx_local.launch import main_model, open_all
    from ddx_local.request import Message, Request, Sampling
    from ddx_local.settings import Settings

    found = Settings(**settings)
    began = time.monotonic()
    opened = await open_all(found, embedding=True, say=lambda _: None)
    try:
        asked = (Message("user", "Name one common cause of fever."),)
        grammar = 'start: "a fever" | "an infection"\n' if found.engine == "scripted" else None
        request = Request(asked, Sampling(max_tokens=16), grammar=grammar, what="doctor")
        (completion,) = await opened.engine.generate([request])
    finally:
        await opened.aclose()
    return {"model": main_model(found), "tokens": completion.generated_tokens, "seconds": time.monotonic() - began}


def main(arguments: list[str]) -> int:
    guard = go_offline()
    try:
        found = asyncio.run(generate(json.loads(arguments[0])))
    except DdxLocalError as error:
        print(f"{error.message} {error.hint}", file=sys.stderr)
        return error.exit_code
    refused = [item._asdict() for item in guard.refused]
    Path(arguments[1]).write_text(json.dumps({**found, "refused": refused}))
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # The libraries' own threads may take long to end; everything is written.
    import os

    os._exit(code)
