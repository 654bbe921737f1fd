"""DxChain, phase III: the judge's gate, the debate between advocate (angel) and skeptic (devil), the verdicts.

It knows the working diagnoses and what is said about them; it doesn't know how they came about or what becomes of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ddx_local.flow import Flow, SlotValue, Step, note
from ddx_local.methods.dxchain_record import Chain
from ddx_local.methods.dxchain_steps import Working
from ddx_local.methods.dxchain_tree import Asked, asked
from ddx_local.methods.fitting import Section, titled


@dataclass(frozen=True, slots=True)
class Argument:
    """For or against a diagnosis, with a quote ('' without one); the skeptic's ground, and a better name if it has one."""

    text: str
    quote: str
    ground: str = ""
    better_name: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    verdict: Literal["keep", "discard", "modify"]
    name: str
    reason: str
    confidence: float


@dataclass
class Debate:
    """Who said what about the ambiguous diagnoses."""

    points: Mapping[str, tuple[str, str]]
    """Diagnosis -> (status, the point that decides)."""
    ambiguous: tuple[str, ...] = ()
    openings: dict[str, Mapping[str, Argument]] = field(default_factory=dict)
    rebuttals: dict[str, Mapping[str, str]] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def removed(self) -> tuple[str, ...]:
        """What the judge found incorrect and nobody argues about."""
        return tuple(
            name for name, (status, _) in self.points.items() if status == "incorrect" and name not in self.ambiguous
        )

    def sections(self) -> list[Section]:
        """The points, the arguments, the rebuttals; they only grow at their end."""
        found = [_section("THE JUDGE", {name: f"{status}; {point}" for name, (status, point) in self.points.items()})]
        for side, arguments in self.openings.items():
            found.append(
                _section(f"THE {side.upper()} ARGUES", {name: _told(item) for name, item in arguments.items()})
            )
        for side, answers in self.rebuttals.items():
            found.append(_section(f"THE {side.upper()} ANSWERS", answers))
        return found


def _section(title: str, rows: Mapping[str, str]) -> Section:
    full = titled(title, (f"- {name}: {text}" for name, text in rows.items()))
    brief = titled(title, (f"- {name}: {text.split('. ')[0]}" for name, text in rows.items()))
    return {"full": full, "brief": brief, "bare": f"{title}: {', '.join(rows)}"}


def _told(item: Argument) -> str:
    parts = [item.ground, item.text, f'"{item.quote}"' if item.quote else ""]
    parts.append(f"better called {item.better_name}" if item.better_name else "")
    return ". ".join(part.rstrip(".") for part in parts if part)


def _angel(item: Any) -> Argument:
    return Argument(f"{item['consequence'].strip()} {item['risk'].strip()}", (item["quote"] or "").strip())


def _devil(item: Any) -> Argument:
    name = (item["better_name"] or "").strip()
    return Argument(item["argument"].strip(), (item["quote"] or "").strip(), item["ground"], name)


def _verdict(item: Any) -> Verdict:
    return Verdict(item["verdict"], (item["name"] or "").strip(), item["reason"].strip(), item["confidence"] / 100)


def _by_name(read: Any) -> Any:
    return lambda answer: {item["diagnosis"]: read(item) for item in answer}


JUDGE: Step[dict[str, tuple[str, str]]] = Step(
    "dxchain/judge", _by_name(lambda item: (item["status"], item["point"].strip()))
)
ANGEL: Step[dict[str, Argument]] = Step("dxchain/angel", _by_name(_angel))
DEVIL: Step[dict[str, Argument]] = Step("dxchain/devil", _by_name(_devil))
ANGEL_REBUTTAL: Step[dict[str, str]] = Step("dxchain/angel_rebuttal", _by_name(lambda item: item["answer"].strip()))
DEVIL_REBUTTAL: Step[dict[str, str]] = Step("dxchain/devil_rebuttal", _by_name(lambda item: item["answer"].strip()))
VERDICT: Step[dict[str, Verdict]] = Step("dxchain/verdict", _by_name(_verdict))


def adjudicate(chain: Chain, diagnoses: Sequence[Working]) -> Flow[Debate]:
    """Gate, opening, rebuttal, verdict; no ambiguity, no debate."""
    names = tuple(item.diagnosis for item in diagnoses)
    found = yield from asked(chain, {"": (JUDGE, "judge", {"diagnoses": names})}, chain.sections())
    debate = Debate(found[""])
    status = {name: said for name, (said, _) in debate.points.items()}
    debate.ambiguous = tuple(name for name in names if status[name] == "ambiguous")
    if all(said == "incorrect" for said in status.values()):
        yield from note("gate", "the judge found every diagnosis incorrect: all of them are debated")
        debate.ambiguous = names
    if removed := debate.removed():
        yield from note("removed", f"the judge found incorrect: {', '.join(removed)}")
    if not debate.ambiguous:
        yield from note("no_debate", "no diagnosis is ambiguous: no debate")
        return debate
    slots: dict[str, SlotValue] = {"ambiguous": debate.ambiguous}

    def said_by_both(angel: Step[Any], devil: Step[Any], name: str) -> Flow[dict[str, Any]]:
        questions: dict[str, Asked] = {"angel": (angel, "angel", slots), "devil": (devil, "devil", slots)}
        return asked(chain, questions, [*chain.sections(), *debate.sections()], name)

    debate.openings = yield from said_by_both(ANGEL, DEVIL, "dxchain/debate")
    debate.rebuttals = yield from said_by_both(ANGEL_REBUTTAL, DEVIL_REBUTTAL, "dxchain/rebuttal")
    decided = yield from asked(chain, {"": (VERDICT, "judge", slots)}, [*chain.sections(), *debate.sections()])
    debate.verdicts = decided[""]
    return debate
