"""DxChain's state: what was planned, found and concluded so far, and how later prompts are told of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddx_local.case import Case
from ddx_local.flow import PastCase
from ddx_local.methods.dxchain_memory import Memory
from ddx_local.methods.dxchain_steps import Observed, Options, Strategy, Synthesis, Working
from ddx_local.methods.fitting import Section, titled

Reports = Mapping[str, Sequence[Observed]]
"""Expert -> what it observed."""

SHOWN = 600
"""Characters of a past case that the experts are shown in full detail."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A strategy on the stack: the turn that proposed it, and its last rating in [0, 1]."""

    turn: int
    strategy: Strategy
    score: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.turn} {self.strategy.kind}"


@dataclass(frozen=True, slots=True)
class Investigated:
    """One turn: the branch that was taken, what was found, how much it conflicts with what was expected, in [0, 1]."""

    turn: int
    branch: Branch
    reports: Reports
    conflict: float
    replanned: bool


@dataclass
class Chain:
    """The state S: memory, stack of open branches, investigation history, working differential, reviews.

    `past` holds similar past cases; experts see them once a strategy has asked for it (`comparing`).
    """

    case: Case
    options: Options
    memory: Memory
    stack: list[Branch] = field(default_factory=list)
    history: list[Investigated] = field(default_factory=list)
    past: tuple[PastCase, ...] = ()
    comparing: bool = False
    syntheses: dict[int, Synthesis] = field(default_factory=dict)
    objections: dict[int, str] = field(default_factory=dict)

    @property
    def synthesis(self) -> Synthesis | None:
        """The last one."""
        return next(reversed(self.syntheses.values()), None)

    def sections(self) -> list[Section]:
        """All that was said: memory first, then turn by turn, the working differential last."""
        return [*self.memory.sections(), _history(self), *([_working(self.synthesis)] if self.synthesis else [])]


def past_cases(found: Sequence[PastCase]) -> Section:
    """Past cases by their beginnings (marked as such) and diagnoses."""
    if not found:
        return {"full": "", "brief": "", "bare": ""}
    title, names = "SIMILAR PAST CASES (of other patients)", [", ".join(item.diagnoses) for item in found]

    def told(most: int) -> str:
        pairs = zip(found, names, strict=True)
        return titled(title, (f"- {_beginning(item.text, most)} Diagnoses: {all_}" for item, all_ in pairs))

    return {"full": told(SHOWN), "brief": told(SHOWN // 4), "bare": f"{title}: {'; '.join(names)}"}


def _beginning(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most].rsplit(' ', 1)[0]} [...]"


def observations(reports: Reports) -> str:
    """What the experts found in the record, as lines; what it means is left out."""
    items = [item for found in reports.values() for item in found]
    return "\n".join(f"- {item.asked}: {_recorded(item)}" for item in items)


def _recorded(item: Observed) -> str:
    return f'"{item.quote}"' if item.quote else "not recorded"


def _history(chain: Chain) -> Section:
    full, brief = [], []
    for item in chain.history:
        outcome = "CONTRADICTED the expectation" if item.replanned else "as expected"
        strategy = item.branch.strategy
        head = f"Turn {item.turn}, {strategy.kind}: {strategy.name}"
        rows = [
            f"- {role}, {found.asked}: {_recorded(found)}; {found.means}"
            for role, reported in item.reports.items()
            for found in reported
        ]
        objection = chain.objections.get(item.turn)
        weak = [f"- Review: not yet; {objection}"] if objection else []
        full += [f"{head}. Expected: {strategy.expected}. Found {outcome}:", *rows, *weak]
        brief += [f"{head}: {outcome}", *weak]
    gone = chain.synthesis.ruled_out if chain.synthesis else ()
    out = [f"- {name}: {reason}" for name, reason in gone]
    names = ", ".join(name for name, _ in gone)
    failed = sum(item.replanned for item in chain.history)
    return {
        "full": _titled_if_any("INVESTIGATIONS", full) + _titled_if_any("\nRULED OUT", out),
        "brief": _titled_if_any("INVESTIGATIONS", brief) + (f"\nRULED OUT: {names}" if names else ""),
        "bare": f"INVESTIGATIONS: {len(chain.history)}, {failed} of them against the expectation" if full else "",
    }


def _working(synthesis: Synthesis) -> Section:
    rows = [
        " ".join([f"- {name(item)}.", *(f'"{quote}"' for quote in item.evidence), item.reason])
        for item in synthesis.diagnoses
    ]
    names = "; ".join(name(item) for item in synthesis.diagnoses)
    return {
        "full": "\n".join(["WORKING DIAGNOSES", synthesis.summary, *rows]),
        "brief": f"WORKING DIAGNOSES: {names}",
        "bare": f"WORKING DIAGNOSES: {'; '.join(item.diagnosis for item in synthesis.diagnoses)}",
    }


def name(item: Working) -> str:
    return f"{item.diagnosis} ({item.kind}, {item.confidence:.0%} sure)"


def _titled_if_any(title: str, rows: Sequence[str]) -> str:
    """Rows under their title; '' where there are none, so that the part is left out."""
    return titled(title, rows) if rows else ""
