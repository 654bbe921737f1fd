"""`~` in a path that somebody gave. It knows no settings and no files."""

from pathlib import Path

from ddx_local.errors import UsageError


def expanded(path: str | Path) -> Path:
    """The path with `~` and `~name` replaced by a home folder; raises `UsageError` where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{path}: the beginning `~` stands for a home folder that this machine does not know",
            "Write the whole path.",
        ) from None
