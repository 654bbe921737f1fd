"""Doctor Supervisor: what a person may say between the rounds of a case. Values and their limits; no I/O.

A comment is recorded as it is made (`events.Commented`), enters every later question of its case to a role, and is shown in
the result. Label probabilities are taken without comments: a value before a comment and one after it stay comparable.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ddx_local.clinical.taken import is_text
from ddx_local.errors import UsageError

LONGEST_COMMENT = 2000
"""Characters. A comment is part of every later prompt, so that its length is paid again and again."""


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person says about a round; `about` names the role whose answer it is about, empty for the whole round.

    Raises:
        UsageError: It says nothing, is too long or no text, or does not say who speaks. Nothing is cut.
    """

    by: str
    text: str
    about: str = ""

    def __post_init__(self) -> None:
        if not self.by.strip():
            raise UsageError("comment: `by` is empty", "Say who comments: a name or a role.")
        if not self.text.strip():
            raise UsageError("comment: `text` is empty", "Write what the panel should consider, or go on without.")
        if not is_text(self.by + self.text + self.about):
            raise UsageError(
                "comment: it holds characters that are no text (of another encoding, or NUL)", "Type it as UTF-8 text."
            )
        if len(self.text) > LONGEST_COMMENT:
            raise UsageError(
                f"comment: {len(self.text):,} characters, but at most {LONGEST_COMMENT:,} are allowed",
                "A comment enters every later prompt: shorten it to what the panel has to know.",
            )

    def as_line(self) -> str:
        """As later prompts show it."""
        return f"on the {self.about}: {self.text}" if self.about else self.text


@dataclass(frozen=True, slots=True)
class RoundDone:
    """A round of model questions that is finished; `answers` are (role or name, step, text), empty text for probabilities."""

    case_id: str
    number: int
    name: str
    answers: tuple[tuple[str, str, str], ...]


Supervisor = Callable[[RoundDone], Awaitable[Sequence[Comment]]]
"""Asked after every round of model questions; the case goes on when it has answered."""
