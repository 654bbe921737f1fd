"""`diagnose --supervise`: after each round a person may comment at the terminal; it waits without holding up other cases."""

import asyncio
import select
import sys
from collections.abc import Callable, Sequence

from ddx_local.errors import UsageError
from ddx_local.supervise import LONGEST_COMMENT, Comment, RoundDone, Supervisor

Say = Callable[[str], None]

MOST_BYTES_OF_A_LINE = 4095
"""What Linux keeps of a typed line; it drops what comes after, without a word."""

PASTE_SECONDS = 0.05
"""The next line of a paste is there within this time; nobody types one so fast."""


def check_terminal(sources: Sequence[str]) -> None:
    """Refuse --supervise where nobody could answer; raises `UsageError`."""
    if "-" in sources:
        raise UsageError("--supervise: standard input is the case", "Give the case as a file: comments are typed.")
    if not sys.stdin.isatty():
        raise UsageError("--supervise: standard input is no terminal", "Comments are typed between the rounds.")


def at_terminal(by: str, say: Say) -> Supervisor:
    """A supervisor who types; `by` is the name under which comments are recorded. One round at a time is asked about."""
    turn = asyncio.Lock()

    def tell(line: str) -> None:
        try:
            say(line)
        except OSError as error:
            raise _gone(error) from None

    async def supervise(done: RoundDone) -> Sequence[Comment]:
        roles = list(dict.fromkeys(role for role, _, text in done.answers if text))
        if not roles:
            return ()
        async with turn:
            tell(f"{done.case_id}, {done.name}: Enter to go on, or a comment; `ROLE: comment` is about one answer.")
            while True:
                typed = await _typed()
                try:
                    line = as_text(typed)
                    if not line:
                        return ()
                    comment = parse(line, roles, by)
                except UsageError as error:
                    tell(f"{error.message}. {error.hint}")
                    continue
                tell("recorded; it enters all later questions of this case")
                return (comment,)

    return supervise


def parse(line: str, roles: Sequence[str], by: str) -> Comment:
    """A typed line as a comment: about the role whose name begins it, else about the whole round."""
    for role in sorted(roles, key=len, reverse=True):
        if role and line.casefold().startswith(f"{role.casefold()}:"):
            return Comment(by, line[len(role) + 1 :].strip(), role)
    return Comment(by, line)


def as_text(typed: Sequence[bytes]) -> str:
    """Typed lines as one line of text; raises `UsageError` where the terminal may have cut one, or it is no text."""
    if any(len(line.rstrip(b"\n")) >= MOST_BYTES_OF_A_LINE for line in typed):
        raise UsageError(
            f"comment: a terminal passes at most {MOST_BYTES_OF_A_LINE:,} bytes of a line, and has cut this one",
            f"Nothing was recorded: write at most {LONGEST_COMMENT:,} characters, a long text in several lines.",
        )
    try:
        lines = [line.decode(sys.stdin.encoding or "utf-8").strip() for line in typed]
    except UnicodeDecodeError:
        raise UsageError(
            "comment: it is no text in the terminal's encoding", "Nothing was recorded: type it again."
        ) from None
    return " ".join(line for line in lines if line)


async def _typed() -> list[bytes]:
    """A line, or all lines of one paste; what a first line that is empty (Enter) is followed by is for the next round."""
    lines = [await _line()]
    # The rest of a paste is there at once. Left alone it would be taken for comments on the rounds to come.
    while lines[0].strip() and lines[-1] and select.select([sys.stdin.fileno()], [], [], PASTE_SECONDS)[0]:
        lines.append(await _line())
    return lines


async def _line() -> bytes:
    """One line from the terminal; the event loop goes on, and Ctrl-C works, while it is typed."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    try:
        return sys.stdin.buffer.readline()
    except OSError as error:
        raise _gone(error) from None


def _gone(error: OSError) -> UsageError:
    """Nobody is there to comment any more; ends the run, which can be resumed."""
    return UsageError(f"--supervise: the terminal is gone: {error.strerror}", "Go on at another terminal.")
