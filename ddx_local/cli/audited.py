"""One audit record for what a command did, in the chain beside the run store."""

from pathlib import Path
from typing import Any


def record(action: str, object_id: str = "", outcome: str = "ok", *, store: Path | None = None, **facts: Any) -> None:
    """Write it; the actor of a command is `local`.

    Args:
        action: What was done, such as `run.export`.
        object_id: A run's or a key's id, or ''.
        outcome: How it ended.
        store: The run store; that of the settings where it is not given.
        facts: Counts and names of ours, no text.

    Raises:
        StoreError: It cannot be written.
    """
    from ddx_local.audit import Audit, beside
    from ddx_local.settings import load

    chain = Audit(beside(store or load().store_path))
    try:
        chain.append("local", action, object_id, outcome, surface="cli", **facts)
    finally:
        chain.close()
