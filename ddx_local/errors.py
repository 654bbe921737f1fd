"""Every error that this program raises on purpose, as one tree. It knows nothing of ours.

    DdxLocalError                   what happened; `hint` says what to do; `exit_code` is what the command ends with
    |- UsageError            (2)    a wrong flag, option, name or settings value
    |- InputError            (3)    a case file that cannot be read as a case
    |- ModelError            (4)    a model that is not there, not whole or not usable
    |- EngineError           (5)    the engine did not start, or died
    |   `- EngineStartError         ... with the root cause in one line
    |- CaseError             (6)    one case failed, the others go on
    |   |- ContextLengthExceeded    prompt + longest answer does not fit: carries the numbers
    |   |- LengthStop               an answer was cut off by its token limit
    |   |- GrammarDeadEnd           an answer ended in the middle of its grammar
    |   |- EmptyAnswer              an answer without text
    |   |- BudgetSpent              the case has used up its token budget before its end
    |   `- ParseError               an answer that its step cannot read
    |- StoreError            (7)    the run store cannot be read or written
    |- ReplayMismatch        (8)    a recorded run does not fit the prompts, options or model of now
    |- OfflineViolation      (9)    something tried to reach the network
    `- BundleError           (10)   a bundle that is not whole, not genuine, or not for this machine

A user's mistake ends in one paragraph and an exit code, never in a traceback. A message never holds case text.
"""

from typing import ClassVar


class DdxLocalError(Exception):
    """Base of the tree.

    Args:
        message: What happened, with the file, field or flag that it happened to.
        hint: What the user can do now, one sentence; falls back to the class's own.
    """

    exit_code: ClassVar[int] = 1
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    @property
    def kind(self) -> str:
        return type(self).__name__


class UsageError(DdxLocalError):
    exit_code = 2
    default_hint = "See `ddx-local --help`."


class InputError(DdxLocalError):
    exit_code = 3
    default_hint = "A case is a UTF-8 text file, or a JSON object with a `text` field."


class ModelError(DdxLocalError):
    exit_code = 4
    default_hint = "See `ddx-local models list` for what is here, and `ddx-local models pull NAME` to fetch one."


class EngineError(DdxLocalError):
    exit_code = 5
    default_hint = "Run the command again; finished calls are not repeated (`ddx-local runs resume RUN`)."


class EngineStartError(EngineError):
    default_hint = "Check the model with `ddx-local models verify NAME` and free memory with `free -g`."


class CaseError(DdxLocalError):
    exit_code = 6


class ContextLengthExceeded(CaseError):
    """Prompt and longest answer do not fit the model's context.

    Args:
        prompt_tokens: Tokens of the filled prompt.
        answer_tokens: Tokens kept free for the longest answer that the grammar allows.
        context_tokens: Tokens that the engine's context holds.
        what: Which step asked.
    """

    default_hint = "Shorten the case, lower `--agents`, or use a model with a longer context (`ddx-local models list`)."

    def __init__(self, prompt_tokens: int, answer_tokens: int, context_tokens: int, what: str) -> None:
        self.prompt_tokens = prompt_tokens
        self.answer_tokens = answer_tokens
        self.context_tokens = context_tokens
        total = prompt_tokens + answer_tokens
        super().__init__(
            f"{what}: {prompt_tokens} prompt tokens + {answer_tokens} for the longest answer = {total}, "
            f"but the context holds {context_tokens}"
        )


class LengthStop(CaseError):
    default_hint = "The answer reached its token limit; this is a fault of the step's size bound, please report it."


class GrammarDeadEnd(CaseError):
    default_hint = "The model could not finish a valid answer; try another --seed."


class EmptyAnswer(CaseError):
    default_hint = "The engine gave no text; try another --seed, or check the model: `ddx-local models verify NAME`."


class BudgetSpent(CaseError):
    default_hint = "Raise --budget-tokens; `ddx-local methods show NAME CASE` says what a method needs at least."


class ParseError(CaseError):
    default_hint = "The answer does not have the form that its step asks for; try another --seed."


class StoreError(DdxLocalError):
    exit_code = 7
    default_hint = "Check the disk and the permissions of the store's folder, or run with --no-store."


class ReplayMismatch(DdxLocalError):
    exit_code = 8
    default_hint = "Start a new run, or go back to the version that made this one."


class OfflineViolation(DdxLocalError):
    exit_code = 9
    default_hint = "The program works without network; only `models pull` and `bundle create` may open one."


class BundleError(DdxLocalError):
    exit_code = 10
    default_hint = "Carry the bundle over again, from the machine that made it; do not use this copy."


def nearest(name: str, known: list[str]) -> str:
    """A half sentence that names the closest known names, for the end of an error message."""
    import difflib

    folded = {item.casefold(): item for item in known}
    close = [folded[item] for item in difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(sorted(known))}"
