"""How long runs are kept: which ones are past their time, and their deletion, which the audit chain records."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ddx_local.audit import Audit, beside
from ddx_local.errors import UsageError
from ddx_local.store import Store

_AGE = re.compile(r"(\d{1,5})d")


def limit(before: str | None, days: int | None, now: datetime | None = None) -> datetime:
    """The moment before which runs are past their time.

    Args:
        before: A date (its beginning, UTC), a moment in ISO 8601, or an age in days such as `30d`.
        days: The setting `retention_days`, which counts where `before` is not given.
        now: For a test.

    Raises:
        UsageError: It is neither, lies in the future, or nothing says it.
    """
    now = now or datetime.now(UTC)
    if before is None and days is None:
        raise UsageError("runs purge: from before when?", "Give --before DATE or --before 30d, or set retention_days.")
    if before is None:
        return now - timedelta(days=days or 0)
    if age := _AGE.fullmatch(before):
        return now - timedelta(days=int(age[1]))
    try:
        found = datetime.fromisoformat(before)
    except ValueError:
        raise UsageError(
            f"--before {before}: is no date", "Give a date such as 2026-01-31, or an age such as 30d."
        ) from None
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if found > now:
        raise UsageError(f"--before {before}: lies in the future", "Give a day that is past, or an age such as 30d.")
    return found


def expired(store: Store, before: datetime) -> tuple[str, ...]:
    """Ids of the runs that began before then, the oldest first; one whose time cannot be read is not among them."""
    found = [(began, row.run_id) for row in store.runs() if (began := _moment(row.created_at)) and began < before]
    return tuple(run_id for _, run_id in sorted(found))


def purge(store: Store, run_ids: Sequence[str]) -> tuple[str, ...]:
    """Deletes runs and records each deletion; returns those that were deleted, without the ones that are worked on now.

    Raises:
        StoreError: Traces would be left, or the record cannot be written.
    """
    gone = store.remove_all(run_ids)
    chain = Audit(beside(store.path))
    try:
        for run_id in gone:
            chain.append("local", "run.purge", run_id, surface="cli")
    finally:
        chain.close()
    return gone


def apply(store: Store, days: int | None) -> tuple[str, ...]:
    """Deletes what is older than the setting `retention_days`; nothing where it is not set."""
    if days is None or store.path is None:
        return ()
    old = expired(store, limit(None, days))
    return purge(store, old) if old else ()


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
