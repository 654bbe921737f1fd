"""A past run in a few sentences by the model (the Memory Agent's summary), and the counts by code beside it."""

from collections.abc import Mapping
from typing import Any

from ddx_local.errors import EngineError
from ddx_local.request import Message, Request, Sampling
from ddx_local.server.engine_room import EngineRoom
from ddx_local.server.markdown import report

SYSTEM = "You summarise the record of a finished case discussion. You add nothing that is not in the record."
TASK = "Say in at most four short sentences what was found likely, what speaks for it, and what stayed open."

LONGEST = 160
"""Tokens of a summary."""


async def summarised(room: EngineRoom, document: Mapping[str, Any]) -> dict[str, Any]:
    """The summary.

    Raises:
        ContextLengthExceeded: The record does not fit the model's context.
        EngineError: The engine is gone.
    """
    engine = room.running().opened.engine
    messages = (Message("system", SYSTEM), Message("user", f"RECORD\n{report(document)}\n\nTASK\n{TASK}"))
    request = Request(messages, Sampling(temperature=0.0, max_tokens=LONGEST), None, "summary")
    try:
        (said,) = await engine.generate([request])
    except EngineError as error:
        room.died(error.message)
        raise
    return {
        "run_id": document["run_id"],
        "summary": said.text.strip(),
        "cut": said.finish_reason == "length",
        "status": document["status"],
        "totals": document["totals"],
        "disclaimer": document["disclaimer"],
    }
