"""A chain whose members say what a test wants: scripted answers to all of DxChain's questions, each with a marker of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask, Retrieve
from ddx_local.methods.dxchain import dxchain
from ddx_local.methods.dxchain_steps import Options
from tests.methods.driving import Driven, Reply, World, drive

QUOTES = ("crushing chest pain ", "blood pressure is 94/60 mmHg ", "left calf is swollen ", "diabetes for ten years. ")

CASE = Case(
    "chest",
    "A 61-year-old man has crushing chest pain since yesterday. His blood pressure is 94/60 mmHg in both arms. His left "
    "calf is swollen and he has had diabetes for ten years. He takes metformin.",
)

HEADINGS = ("past_history", "medications", "vitals", "examination", "labs", "imaging", "negatives")

Named = tuple[str, str, int]
"""Diagnosis, kind, confidence in percent."""

USUAL: tuple[Named, ...] = (
    ("Pulmonary embolism", "primary", 80),
    ("Diabetes mellitus", "secondary", 90),
    ("Leg swelling", "primary", 40),
)


def answers(
    named: Callable[[int], Sequence[Named]] = lambda turn: USUAL,  # noqa: ARG005
    passes: Callable[[int], bool] = lambda turn: True,  # noqa: ARG005
    rating: Callable[[str], int] = lambda label: {"broad": 8, "focused": 6, "alternative": 4}[label.split()[1]],
    experts: Callable[[str], Sequence[str]] = lambda kind: ("clinical_specialist", "diagnostic_test_specialist"),  # noqa: ARG005
    status: Callable[[str], str] = lambda name: "ambiguous" if name == "Leg swelling" else "confident",
    verdict: Callable[[str], tuple[str, str | None]] = lambda name: ("keep", None),  # noqa: ARG005
    code: Callable[[Ask[Any]], str] = lambda ask: str(ask.slots["codes"][0]),
    recorded: str = QUOTES[0],
    past_cases: str = "no",
) -> Mapping[str, Reply]:
    """Answers to everything; turns count from 1."""
    turn = {"expand": 0, "synthesis": 0, "reflection": 0}

    def next_of(step: str) -> int:
        turn[step] += 1
        return turn[step]

    def expand(ask: Ask[Any]) -> Any:
        at = next_of("expand")
        return [
            {
                "kind": kind,
                "name": f"Name {at} {kind}",
                "reason": f"Reason {at} {kind}",
                "experts": list(experts(kind)),
                "past_cases": past_cases,
                "expected": f"Expected {at} {kind}",
            }
            for kind in ask.slots["kinds"]
        ]

    def select(ask: Ask[Any]) -> Any:
        return [{"strategy": label, "information": rating(label), "safety": 2} for label in ask.slots["open"]]

    def expert(ask: Ask[Any]) -> Any:
        at = turn["expand"]
        return [{"asked": f"Asked {at} {ask.role}", "recorded": recorded, "means": f"Means {at} {ask.role}"}]

    def synthesis(ask: Ask[Any]) -> Any:  # noqa: ARG001
        at = next_of("synthesis")
        entries = [
            {"diagnosis": name, "kind": kind, "evidence": [QUOTES[1]], "reason": f"Because {at}", "confidence": sure}
            for name, kind, sure in named(at)
        ]
        gone = [{"diagnosis": "Gastritis", "reason": "Nothing points there"}]
        return {"summary": f"Summary {at}", "diagnoses": entries, "ruled_out": gone}

    def reflection(ask: Ask[Any]) -> Any:  # noqa: ARG001
        at = next_of("reflection")
        return {"passes": passes(at), "weakness": f"Weakness {at}"}

    def each(slot: str, make: Callable[[str], Mapping[str, Any]]) -> Reply:
        return lambda ask: [{"diagnosis": name, **make(name)} for name in ask.slots[slot]]

    def decided(name: str) -> Mapping[str, Any]:
        what, new = verdict(name)
        return {"reason": f"Decided {name}", "verdict": what, "name": new, "confidence": 55}

    def report(ask: Ask[Any]) -> Any:
        kinds = {name: (kind, sure) for name, kind, sure in USUAL}
        entries = [
            {
                "diagnosis": name,
                "kind": kinds.get(name, ("primary", 50))[0],
                "reasoning": f"Final {name}",
                "confidence": kinds.get(name, ("primary", 50))[1],
            }
            for name in ask.slots["diagnoses"]
        ]
        return {"diagnoses": entries, "treatment": ["Anticoagulation", "Insulin", "Insulin"]}

    return {
        "dxchain/perception": lambda _: {
            "chief_complaint": [QUOTES[0]],
            "present_illness": [QUOTES[2]],
            **{heading: [] for heading in HEADINGS},
        },
        "dxchain/profile": lambda _: {"acute": "Acute state", "chronic": "Chronic state", "risks": "Risk state"},
        "dxchain/abstract": lambda _: {
            "positives": [QUOTES[0]],
            "negatives": [],
            "background": [QUOTES[3]],
            "summary": "Abstract said",
        },
        "dxchain/expand": expand,
        "dxchain/select": select,
        "dxchain/expert": expert,
        "dxchain/synthesis": synthesis,
        "dxchain/reflection": reflection,
        "dxchain/judge": each("diagnoses", lambda name: {"status": status(name), "point": f"Point {name}"}),
        "dxchain/angel": each(
            "ambiguous", lambda name: {"consequence": f"Angel says {name}", "risk": "A risk", "quote": QUOTES[2]}
        ),
        "dxchain/devil": each(
            "ambiguous",
            lambda name: {
                "ground": "symptom",
                "argument": f"Devil says {name}",
                "quote": QUOTES[3],
                "better_name": "Deep vein thrombosis",
            },
        ),
        "dxchain/angel_rebuttal": each("ambiguous", lambda name: {"answer": f"Angel answers {name}"}),
        "dxchain/devil_rebuttal": each("ambiguous", lambda name: {"answer": f"Devil answers {name}"}),
        "dxchain/verdict": each("ambiguous", decided),
        "dxchain/report": report,
        "dxchain/code": lambda ask: {"code": code(ask)},
    }


CODES: Mapping[str, list[list[Any]]] = {
    "Pulmonary embolism": [["I26", "Pulmonary embolism", True], ["I26.9", "Pulmonary embolism without cor", False]],
    "Diabetes mellitus": [["E11", "Type 2 diabetes mellitus", True]],
    "Leg swelling": [],
    "Deep vein thrombosis": [["I82.40", "Thrombosis of deep veins", True]],
}


def run(
    replies: Mapping[str, Reply] | None = None,
    conflicts: Sequence[float] = (),
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    retrieved: Callable[[Retrieve], Any] = lambda about: [],  # noqa: ARG005
    **options: Any,
) -> Driven[Differential]:
    """The chain driven; `conflicts` are P(no) of the expectation checks in turn, then 0.1."""
    coming: Iterator[float] = iter(conflicts)
    now = {"no": 0.1}

    def probability(_: str, label: str) -> float:
        if label == "yes":
            now["no"] = next(coming, 0.1)
            return 1 - now["no"] or 1e-12
        return now["no"] or 1e-12

    world = World(
        answers() if replies is None else replies,
        fits=fits,
        probability=probability,
        retrieved=retrieved,
        coded=lambda name: CODES.get(name, []),
    )
    return drive(dxchain(CASE, Options(**options)), world)


def names(driven: Driven[Differential]) -> list[str]:
    return [entry.diagnosis for entry in driven.answer.entries]
