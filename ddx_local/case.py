"""What goes in and what comes out: a case and a differential. Frozen values that import nothing of ours.

A `Case` cannot hold its answer: gold labels live in the evaluation's own type, so that leakage is a type error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `id` names it in stores and reports (a file's stem, no clinical text); `text` is what methods read."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A verbatim piece of the case: `case.text[start:end] == quote`, the first place where it stands."""

    quote: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote that speaks for (`supports`) or against a diagnosis, and the roles that gave it."""

    quote: Quote
    supports: bool
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Icd10:
    """A code of ICD-10-CM and the classification's own name of it."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One diagnosis of a differential.

    `score` means what the differential's `score_kind` says; `votes` maps a role to the place (from 1) that it gave;
    `probability` is in [0, 1], or None when no probability was taken; `entered_in` names the round that brought it in;
    `kind` is primary (acute, why the patient came) or secondary (chronic), of methods that tell them apart.
    """

    rank: int
    diagnosis: str
    score: float
    votes: Mapping[str, int] = field(default_factory=dict)
    probability: float | None = None
    evidence: tuple[Evidence, ...] = ()
    proposed_by: tuple[str, ...] = ()
    entered_in: str = ""
    critical: bool = False
    reasoning: str = ""
    stances: Mapping[str, str] = field(default_factory=dict)
    icd10: Icd10 | None = None
    kind: Literal["", "primary", "secondary"] = ""


@dataclass(frozen=True, slots=True)
class CantMiss:
    """A life-threatening condition beside the differential: why to think of it, and the test that excludes it."""

    diagnosis: str
    why: str
    quote: Quote | None
    test: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriageItem:
    """A finding that needs treatment, how soon, and the immediate step."""

    finding: str
    quote: Quote | None
    urgency: Literal["emergent", "urgent", "routine"]
    step: str
    by: str


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """One change of the case and what it did to a diagnosis.

    `patches` are (start, end, replacement) of the case text; probabilities and gaps are in [-1, 1], normalised over the
    candidates, and raw where the name says so; `kept` says whether the change preserved enough of the case to count.
    """

    by: str
    round: str
    diagnosis: str
    operation: str
    patches: tuple[tuple[int, int, str], ...]
    p_before: float
    p_after: float
    gap: float
    gap_raw: float
    gap_paper: float
    gap_paper_raw: float
    noise_floor: float
    sip: float
    edit_sim: float
    shift: float
    combined: float
    kept: bool


@dataclass(frozen=True, slots=True)
class ReasoningTrace:
    """How a method came to its end: in words, and what would change it; `outside` is a diagnosis off the list."""

    conclusion: str
    would_change: str
    by_consensus: bool
    outside: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A disagreement between roles that another one settled: the diagnosis that it kept, over which one, and why."""

    kept: str
    over: str
    why: str
    by: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What a role looked for, where the case answers it (None: not recorded), and what it means."""

    by: str
    asked: str
    quote: Quote | None
    means: str


@dataclass(frozen=True, slots=True)
class Investigation:
    """One turn of a planned investigation: the strategy and its expectation, what was found, whether it was planned anew.

    `conflict` in [0, 1]: how much what was found contradicts what was expected.
    """

    turn: int
    kind: str
    strategy: str
    reason: str
    expected: str
    conflict: float
    replanned: bool
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Differential:
    """A method's answer: ranked entries, and what is reported beside them (it never reorders them)."""

    score_kind: str
    entries: tuple[Entry, ...]
    cant_miss: tuple[CantMiss, ...] = ()
    triage: tuple[TriageItem, ...] = ()
    panel: tuple[str, ...] = ()
    counterfactuals: tuple[Counterfactual, ...] = ()
    trace: ReasoningTrace | None = None
    conflicts: tuple[Conflict, ...] = ()
    uncertainty: str = ""
    treatment: tuple[str, ...] = ()
    investigations: tuple[Investigation, ...] = ()
