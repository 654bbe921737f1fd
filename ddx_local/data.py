"""Where the files that ship beside the code lie. It knows the two layouts and reads none of the files."""

from pathlib import Path
from typing import Literal

from ddx_local.errors import DdxLocalError


def data_dir(name: Literal["prompts", "grammars", "models", "bench", "requirements", "deploy"]) -> Path:
    """The folder of prompts, grammars, model cards, benchmark cases and suites, locks or deployment files.

    Args:
        name: Which of the six.

    Returns:
        The absolute folder: the one inside the installed package if it exists, else the checkout's, beside the package.

    Raises:
        DdxLocalError: Neither exists.
    """
    package = Path(__file__).resolve().parent
    candidates = (package / "_data" / name, package.parent / name)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise DdxLocalError(
        f"the program's own {name} folder is missing: looked at {candidates[0]} and {candidates[1]}",
        hint="Install ddx-local again, or run it from a whole checkout.",
    )
