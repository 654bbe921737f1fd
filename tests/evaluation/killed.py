"""Drives a benchmark and kills its own process with signal 9 after a random number of answers; for the kill test."""

import asyncio
import hashlib
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from tests.evaluation.world import World, opener, reply


def main(folder: Path, bench_id: str, seed: int, most: int) -> None:
    left = random.Random(seed).randint(1, most)
    log = os.open(folder / "asked.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def dying(request: Any) -> str:
        nonlocal left
        key = hashlib.sha256(f"{request.sampling.seed} {request.messages[-1].content}".encode()).hexdigest()
        os.write(log, f"{key}\n".encode())
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return reply(request)

    asyncio.run(World(folder).drive(bench_id, opener(dying)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
