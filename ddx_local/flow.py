"""The vocabulary in which methods are written: a flow yields rounds of questions and receives the answers.

A flow does no I/O and knows no engine, clock, randomness or prompt text. Whoever drives it fills the prompts, asks the
engine, records events, and sends the typed answers back (`ddx_local.run`). All questions of a round are independent: in
every round a role sees the answers of earlier rounds only. A *batch* is a non-empty round with model questions
(`Ask`, `Weigh`); rounds of `Consult` and `Note` alone are none.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from ddx_local.request import Loglikelihood as Loglikelihood  # methods know the values of answers through here
from ddx_local.request import Size as Size

A = TypeVar("A")
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class CloseCode:
    """A code of ICD-10-CM with its name; `fits`: the code's name, or another that it goes by, means the same diagnosis."""

    code: str
    name: str
    fits: bool


@dataclass(frozen=True, slots=True)
class PastCase:
    """A past case, its diagnoses (the first is the main one), and how alike it is, in [-1, 1]."""

    id: str
    text: str
    diagnoses: tuple[str, ...]
    similarity: float


@dataclass(frozen=True, slots=True)
class Spending:
    """Tokens of a case so far, prompts and answers together, and its budget (`--budget-tokens`), None without one."""

    spent: int
    budget: int | None


Key = tuple[str, ...]
"""Which question of a round: the branch names of `together` from outside in, then the question's own name."""

SlotValue = str | tuple[str, ...]
"""What fills a slot: a text, or a list of items."""

Slots = Mapping[str, SlotValue]


@dataclass(frozen=True, slots=True)
class Step(Generic[A]):
    """One kind of question: a prompt file, a grammar file of the same stem, and the parser of the answer.

    Args:
        name: `method/step`, the stem of `prompts/<name>.md` and `grammars/<name>.lark`.
        parse: Turns the answer (decoded JSON; the text itself where the step has no grammar) into a value; it may raise
            `ParseError`. The grammar has already made sure of the form, so it rarely has anything to refuse.
    """

    name: str
    parse: Callable[[Any], A]


@dataclass(frozen=True, slots=True)
class Ask(Generic[A]):
    """A question for the model. `role` says who answers, `temperature` overrides the step's own."""

    step: Step[A]
    slots: Slots
    role: str = ""
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Weigh:
    """Labels to be scored by probability under a step's prompt (no sampling)."""

    step: Step[Any]
    slots: Slots
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Similarity:
    """Consult: how alike the two texts of each pair are; the answer is a tuple of floats.

    `meaning`: cosine of their embeddings, in [-1, 1]. `spelling`: share of characters in common, in [0, 1].
    """

    pairs: tuple[tuple[str, str], ...]
    kind: Literal["meaning", "spelling"] = "meaning"


@dataclass(frozen=True, slots=True)
class CountTokens:
    """Consult: how much room each filled question needs; the answer is a tuple of `Size`."""

    questions: tuple[Ask[Any], ...]


@dataclass(frozen=True, slots=True)
class Codes:
    """Consult: the ICD-10-CM codes that come closest to each name, or only those that fit; the answer is what `codes` gives."""

    names: tuple[str, ...]
    most: int = 5
    fitting_only: bool = False


OWN_EXAMPLES = "own examples"
"""As the `base` of `Retrieve`: the solved cases that ship with the program."""


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Consult: the `count` past cases of a file that are most like `text`; the answer is what `retrieve` gives.

    `base` is a JSONL file of past cases with diagnoses. Past cases with an id of `without`, and those whose text is
    `text` itself or nearly so, are never among the answers: a case is not retrieved for itself.
    """

    text: str
    count: int
    base: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CountSpent:
    """Consult: what the case's questions have cost so far; the answer is a `Spending`."""


Consultation = Similarity | CountTokens | CountSpent | Codes | Retrieve


@dataclass(frozen=True, slots=True)
class Consult:
    """A question for code rather than for a model."""

    about: Consultation


@dataclass(frozen=True, slots=True)
class Note:
    """What the method's code decided (merge, tie, filter, condensation), for the trace and the result."""

    kind: str
    detail: str
    degraded: bool = False


Question = Ask[Any] | Weigh | Consult | Note


@dataclass(frozen=True, slots=True)
class Round:
    """Independent questions that are answered together; `name` is the first question's step where it is not given."""

    name: str
    questions: Mapping[Key, Question] = field(default_factory=dict)

    @property
    def is_batch(self) -> bool:
        return any(isinstance(question, Ask | Weigh) for question in self.questions.values())


Replies = Mapping[Key, Any]
Flow = Generator[Round, Replies, T]


def ask(step: Step[A], *, role: str = "", temperature: float | None = None, **slots: SlotValue) -> Flow[A]:
    """Ask one question; the round is named after the step."""
    replies = yield Round(step.name, {(role,): Ask(step, slots, role, temperature)})
    return cast(A, replies[(role,)])


def ask_each(questions: Mapping[str, Ask[A]], name: str = "") -> Flow[dict[str, A]]:
    """Ask several questions in one round; the answers come back under the same names. No questions, no round."""
    if not questions:
        return {}
    first = next(iter(questions.values()))
    replies = yield Round(name or first.step.name, {(key,): question for key, question in questions.items()})
    return {key: cast(A, replies[(key,)]) for key in questions}


def weigh(questions: Mapping[str, Weigh], name: str = "") -> Flow[dict[str, tuple[Loglikelihood, ...]]]:
    """Score labels by probability; per question one `Loglikelihood` for each of its labels, in order."""
    if not questions:
        return {}
    first = next(iter(questions.values()))
    replies = yield Round(name or first.step.name, {(key,): question for key, question in questions.items()})
    return {key: replies[(key,)] for key in questions}


def similarities(
    pairs: Sequence[tuple[str, str]], kind: Literal["meaning", "spelling"] = "meaning"
) -> Flow[tuple[float, ...]]:
    """Consult on how alike texts are; no pairs, no round."""
    if not pairs:
        return ()
    replies = yield Round("similarity", {("similarity",): Consult(Similarity(tuple(pairs), kind))})
    return tuple(replies[("similarity",)])


def sizes(questions: Sequence[Ask[Any]]) -> Flow[tuple[Size, ...]]:
    """Consult the engine's tokenizer on how much room filled questions need."""
    if not questions:
        return ()
    replies = yield Round("size", {("size",): Consult(CountTokens(tuple(questions)))})
    return tuple(replies[("size",)])


def spending() -> Flow[Spending]:
    """Consult on what the case has cost so far, and what it may."""
    replies = yield Round("spending", {("spending",): Consult(CountSpent())})
    return Spending(*replies[("spending",)])


def codes(
    names: Sequence[str], most: int = 5, *, fitting_only: bool = False
) -> Flow[tuple[tuple[CloseCode, ...], ...]]:
    """Consult on ICD-10-CM: per name at most `most` codes, those that fit first; none where nothing is close."""
    if not names:
        return ()
    replies = yield Round("icd10", {("icd10",): Consult(Codes(tuple(names), most, fitting_only))})
    return tuple(tuple(CloseCode(*code) for code in found) for found in replies[("icd10",)])


def retrieve(text: str, count: int, base: str = "", without: Sequence[str] = ()) -> Flow[tuple[PastCase, ...]]:
    """Consult a file of past cases: those most like `text`, the most similar first; fewer where it holds fewer."""
    if count < 1:
        return ()
    replies = yield Round("retrieval", {("retrieval",): Consult(Retrieve(text, count, base, tuple(without)))})
    return tuple(PastCase(name, past, tuple(found), alike) for name, past, found, alike in replies[("retrieval",)])


def note(kind: str, detail: str, *, degraded: bool = False) -> Flow[None]:
    """Record what the code decided; `degraded` marks what a reader of the result has to know."""
    yield Round("note", {("note",): Note(kind, detail, degraded)})


def together(flows: Mapping[str, Flow[T]]) -> Flow[dict[str, T]]:
    """Advance independent flows in lockstep, so that they share rounds.

    One round is the union of the pending questions of the unfinished branches, keyed (branch, name ...); a branch that
    ends early drops out. Branches that consult or note are answered first while the others wait, so that a consultation
    costs no extra batch. The first exception, thrown from outside or raised by a branch, closes all its siblings.
    """
    pending: dict[str, Round] = {}
    results: dict[str, T] = {}

    def advance(branch: str, replies: Replies | None) -> None:
        flow = flows[branch]
        try:
            pending[branch] = next(flow) if replies is None else flow.send(replies)
        except StopIteration as stop:
            pending.pop(branch, None)
            results[branch] = stop.value

    try:
        for branch in flows:
            advance(branch, None)
        while pending:
            asides = {branch: round_ for branch, round_ in pending.items() if not round_.is_batch}
            now = asides or dict(pending)
            questions = {(branch, *key): q for branch, round_ in now.items() for key, q in round_.questions.items()}
            name = " + ".join(dict.fromkeys(round_.name for round_ in now.values()))
            replies = yield Round(name, questions)
            for branch, round_ in now.items():
                advance(branch, {key: replies[(branch, *key)] for key in round_.questions})
    finally:
        for flow in flows.values():
            flow.close()
    return {branch: results[branch] for branch in flows}
