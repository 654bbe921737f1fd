"""Errors for people: one paragraph on standard error, an exit code, no traceback and no clinical text."""

import contextlib
import sys
import textwrap

from ddx_local.errors import DdxLocalError

EXIT_CODES = {
    0: "all went well",
    1: "a fault of the program",
    2: "a wrong command, option or setting",
    3: "a case that cannot be read",
    4: "a model that is missing, changed or not usable",
    5: "the engine did not start, or died",
    6: "at least one case failed (the others are finished)",
    7: "the run store cannot be used",
    8: "a recorded run does not fit what is here now",
    9: "something tried to reach the network",
    10: "a bundle that is not whole, not genuine, or not for this machine",
    75: "the engine of a server died (systemd starts it again)",
    141: "whoever read the output went away",
    130: "stopped with Ctrl-C (the run can be resumed)",
}


def report(error: Exception) -> int:
    """Print an error and return the exit code."""
    if isinstance(error, DdxLocalError):
        say(error.message, error.hint)
        return error.exit_code
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    place = f"{last.tb_frame.f_globals.get('__name__')}, line {last.tb_lineno}" if last else "unknown place"
    # The error's own text might quote a case.
    say(f"a fault of the program: {type(error).__name__} in {place}", "Please report it; DDX_LOCAL_DEBUG=1 shows more.")
    return 1


def say(message: str, hint: str = "") -> None:
    """One paragraph on standard error."""
    end = "" if message.endswith(("?", "!", ".")) else "."
    text = f"ddx-local: {message}{end} {hint}".strip()
    with contextlib.suppress(OSError):  # where standard error is what broke, the exit code has to do
        print(textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False), file=sys.stderr)
