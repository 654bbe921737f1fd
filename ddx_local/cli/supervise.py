"""`diagnose --supervise`: after each round a person may comment at the terminal; it waits without holding up other cases."""

import asyncio
import sys
from collections.abc import Callable, Sequence

from ddx_local.errors import UsageError
from ddx_local.supervise import Comment, RoundDone, Supervisor

Say = Callable[[str], None]


def check_terminal(sources: Sequence[str]) -> None:
    """Refuse --supervise where nobody could answer; raises `UsageError`."""
    if "-" in sources:
        raise UsageError("--supervise: standard input is the case", "Give the case as a file: comments are typed.")
    if not sys.stdin.isatty():
        raise UsageError("--supervise: standard input is no terminal", "Comments are typed between the rounds.")


def at_terminal(by: str, say: Say) -> Supervisor:
    """A supervisor who types; `by` is the name under which comments are recorded. One round at a time is asked about."""
    turn = asyncio.Lock()

    async def supervise(done: RoundDone) -> Sequence[Comment]:
        roles = list(dict.fromkeys(role for role, _, text in done.answers if text))
        if not roles:
            return ()
        async with turn:
            say(f"{done.case_id}, {done.name}: Enter to go on, or a comment; `ROLE: comment` is about one answer.")
            while True:
                line = await _line()
                if not line:
                    return ()
                try:
                    comment = parse(line, roles, by)
                except UsageError as error:
                    say(f"{error.message}. {error.hint}")
                    continue
                say("recorded; it enters all later questions of this case")
                return (comment,)

    return supervise


def parse(line: str, roles: Sequence[str], by: str) -> Comment:
    """A typed line as a comment: about the role whose name begins it, else about the whole round."""
    for role in sorted(roles, key=len, reverse=True):
        if role and line.casefold().startswith(f"{role.casefold()}:"):
            return Comment(by, line[len(role) + 1 :].strip(), role)
    return Comment(by, line)


async def _line() -> str:
    """One line from the terminal; the event loop goes on, and Ctrl-C works, while it is typed. Ctrl-D is Enter."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline().strip()
