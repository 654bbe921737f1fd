"""A panel whose members say what a test wants: scripted answers to all of SCoT's questions, each with a marker of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask
from ddx_local.methods.scot import scot
from ddx_local.methods.scot_options import Options
from tests.methods.driving import Driven, Reply, World, drive

QUOTES = (
    "crushing chest pain ",
    "vomits twice after lunch. ",
    "blood pressure is 94/60 mmHg ",
    "left calf is swollen ",
    "fever of 39.1 C since Monday. ",
)
"""As the grammar gives them: whole words with the blank after them. Methods keep them stripped."""

CASE = Case(
    "chest",
    "A 61-year-old man has crushing chest pain since yesterday and vomits twice after lunch. His blood pressure is "
    "94/60 mmHg in both arms. His left calf is swollen and he has a fever of 39.1 C since Monday. crushing chest pain "
    "runs in his family.",
)

LISTS = (
    ("Myocardial infarction", "Pericarditis", "Sarcoidosis"),
    ("Pulmonary embolism", "Malaria", "Lyme disease"),
    ("MI", "Pulmonary embolism", "Panic disorder"),
    ("Aortic dissection", "Myocardial infarction", "Herpes zoster"),
    ("Pericarditis", "Amyloidosis", "Costochondritis"),
)
"""The lists of the seats, in order: eleven diagnoses, three of them named twice or more."""


def mark(step: str, role: str) -> str:
    """What a role says in a round, and nobody else."""
    return f"M-{step} <{role}>"


def stances(ask: Ask[Any], of: Callable[[str, str], str], step: str) -> list[dict[str, Any]]:
    return [
        {"diagnosis": name, "position": of(ask.role, name), "quote": QUOTES[1], "reason": mark(step, ask.role)}
        for name in ask.slots["entries"]
    ]


def proposal(name: str, reason: str, *quotes: str) -> dict[str, Any]:
    return {"diagnosis": name, "evidence": list(quotes or QUOTES[:1]), "reason": reason}


def panel(
    lists: tuple[tuple[str, ...], ...] = LISTS,
    position: Callable[[str, str], str] = lambda role, name: "support",  # noqa: ARG005
    final: Callable[[str, str], str] = lambda role, name: "support",  # noqa: ARG005
    missing: Callable[[int], tuple[str, ...]] = lambda seat: (),  # noqa: ARG005
    withdrawn: Callable[[str, tuple[str, ...]], tuple[str, ...]] = lambda role, own: (),  # noqa: ARG005
    ballot: Callable[[int, tuple[str, ...]], tuple[str, ...]] = lambda seat, entries: entries,  # noqa: ARG005
    score: Callable[[int, str], int] = lambda seat, name: 5,  # noqa: ARG005
    relevance: Callable[[int], int] = lambda seat: 3,  # noqa: ARG005
    dangers: Callable[[int], tuple[str, ...]] = lambda seat: (),  # noqa: ARG005
    critical: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda final: (),  # noqa: ARG005
    same: Callable[[str], bool] = lambda line: False,  # noqa: ARG005
) -> dict[str, Reply]:
    """Replies by step; seats count from 0 in the panel's order."""
    seats: dict[str, int] = {}

    def choose(ask: Ask[Any]) -> Any:
        chosen = list(ask.slots["pool"])[3 : 3 + int(str(ask.slots["agents"]))]
        seats.update({role: seat for seat, role in enumerate(chosen)})
        return chosen

    def triage(ask: Ask[Any]) -> Any:
        finding = {
            "finding": mark("triage", ask.role),
            "quote": QUOTES[2],
            "urgency": "emergent",
            "step": "Give fluids now",
        }
        return {"findings": [finding]}

    def differential(ask: Ask[Any]) -> Any:
        said = mark("differential", ask.role)
        return {"differential": [proposal(name, said) for name in lists[seats[ask.role]]]}

    def positions(ask: Ask[Any]) -> Any:
        said = [proposal(name, mark("missing", ask.role), QUOTES[3]) for name in missing(seats[ask.role])]
        return {"positions": stances(ask, position, "positions"), "missing": said}

    def exchange(ask: Ask[Any]) -> Any:
        answers = [{"diagnosis": name, "answer": mark("answer", ask.role)} for name in ask.slots["challenged"][:3]]
        others = [
            {"diagnosis": name, "quote": QUOTES[4], "reason": mark("challenge", ask.role)}
            for name in ask.slots["others"][:1]
        ]
        return {"answers": answers, "challenges": others}

    def last(ask: Ask[Any]) -> Any:
        own = tuple(ask.slots["own"])
        return {"positions": stances(ask, final, "final"), "withdrawn": list(withdrawn(ask.role, own))}

    def vote(ask: Ask[Any]) -> Any:
        names, seat = tuple(ask.slots["entries"]), seats[ask.role]
        scores = [
            {
                "diagnosis": name,
                "insight": score(seat, name),
                "breadth": score(seat, name),
                "actionability": score(seat, name),
            }
            for name in names
        ]
        return {"scores": scores, "ballot": list(ballot(seat, names))}

    def safety(ask: Ask[Any]) -> Any:
        conditions = [
            {"diagnosis": name, "why": f"Why {seats[ask.role]}", "quote": QUOTES[2], "test": "A CT of the chest"}
            for name in dangers(seats[ask.role])
        ]
        return {"conditions": conditions, "critical": list(critical(tuple(ask.slots["final"])))}

    def merge(ask: Ask[Any]) -> Any:
        return {
            "pairs": [{"names": line, "verdict": "same" if same(line) else "different"} for line in ask.slots["pairs"]]
        }

    return {
        "scot/panel": choose,
        "scot/relevance": lambda ask: {"relevance": relevance(seats[ask.role]), "reason": mark("relevance", ask.role)},
        "scot/triage": triage,
        "scot/differential": differential,
        "scot/merge": merge,
        "scot/positions": positions,
        "scot/exchange": exchange,
        "scot/final": last,
        "scot/vote": vote,
        "scot/cant_miss": safety,
    }


def run(
    replies: Mapping[str, Reply] | None = None,
    case: Case = CASE,
    similarity: Callable[[str, str], float] = lambda a, b: 0.0,  # noqa: ARG005
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    *,
    lawful: bool = True,
    **options: Any,
) -> Driven[Differential]:
    """SCoT on a case with a scripted panel."""
    world = World(panel() if replies is None else replies, similarity, fits, lawful)
    return drive(scot(case, Options(**options)), world)


def named(*steps: str) -> list[str]:
    return [f"scot/{step}" for step in steps]


def diagnoses(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]


def entry(driven: Driven[Differential], name: str) -> Any:
    return next(item for item in driven.answer.entries if item.diagnosis == name)


def similar(score: float, *pairs: tuple[str, str]) -> Callable[[str, str], float]:
    known = {frozenset(pair) for pair in pairs}
    return lambda a, b: score if frozenset((a, b)) in known else 0.0
