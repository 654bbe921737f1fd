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


Consultation = Similarity | CountTokens


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
