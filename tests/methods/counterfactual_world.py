"""A counterfactual team whose members say what a test wants, each with a marker of its own, and a case to be edited."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Ask
from ddx_local.methods.counterfactual import counterfactual
from ddx_local.methods.counterfactual_options import Options
from ddx_local.methods.counterfactual_record import CLINICIAN_ROLE
from tests.methods.driving import Driven, Reply, Said, World, drive

CLINICIAN = CLINICIAN_ROLE

QUOTES = ("crushing chest pain ", "swollen left calf ", "fever of 39.1 C ", "rubbing sound ", "pressure is 94/60 mmHg ")
"""As the grammar gives them: whole words with the blank after them. Each stands once in the case."""

CASE = Case(
    "chest",
    "A 61-year-old man comes with crushing chest pain since yesterday evening. He came back from a flight of eleven hours "
    "two days ago and has a swollen left calf that hurts when he walks. The nurse finds a fever of 39.1 C and a heart rate "
    "of 112 a minute. A rubbing sound is heard over the heart. His blood pressure is 94/60 mmHg in both arms. He has "
    "smoked for forty years, drinks a glass of wine on Sundays, and takes a statin.",
)

NAMES = ("Myocardial infarction", "Pulmonary embolism", "Pericarditis", "Aortic dissection", "Pneumonia", "Sarcoidosis")

Swap = tuple[str, str]
"""A quote and the text in its place."""


def mark(step: str, role: str, number: int) -> str:
    """What a role says in a round (from 1), and nobody else."""
    return f"M-{step} <{role}> {number}"


def edit(operation: str, *swaps: Swap, feature: str = "symptom") -> list[Any]:
    pieces = [quote if operation == "remove" else [quote, new] for quote, new in swaps]
    return [operation, feature, pieces]


def usual_edits(role: str, name: str, number: int, count: int) -> list[list[Any]]:
    """As many edits as asked for, all different within one role's round."""
    at = NAMES.index(name) if name in NAMES else 0
    return [
        edit("replace", (QUOTES[(at + place) % len(QUOTES)], f"ok {role[:4]}{number}{at}{place}"))
        for place in range(count)
    ]


def team(
    lists: Sequence[Sequence[str]] = (NAMES,),
    seats: int = 5,
    holds: Callable[[int, int], int] = lambda seat, number: seat % 2,  # noqa: ARG005
    clinician: Callable[[int], str] = lambda number: NAMES[0],  # noqa: ARG005
    edits: Callable[[str, str, int, int], list[list[Any]]] = usual_edits,
    questions: Callable[[str, int], Sequence[tuple[str, str]]] = lambda role, number: (),  # noqa: ARG005
    judge: int = 0,
) -> dict[str, Reply]:
    """Replies by step.

    Args:
        lists: Diagnoses of each sample of the differential.
        seats: Specialists that the triage takes, where the options allow as many.
        holds: (seat, round) -> which candidate the specialist holds, by its place on the list.
        clinician: Round -> the independent clinician's diagnosis.
        edits: (role, diagnosis, round, N) -> edits.
        questions: (role, round) -> (to whom, text).
        judge: Place of the candidate that the judge takes.
    """
    order: list[str] = []
    turns: Counter[str] = Counter()

    def triage(ask: Ask[Any]) -> Any:
        most = int(str(ask.slots["most"]))
        chosen = list(ask.slots["pool"])[3 : 3 + min(seats, most)]
        order.extend(chosen)
        return chosen

    def differential(ask: Ask[Any]) -> Any:
        turns["differential"] += 1
        names = lists[turns["differential"] - 1][: int(str(ask.slots["k"]))]
        return {"differential": [{"diagnosis": name, "reason": f"Because of {at}"} for at, name in enumerate(names)]}

    def report(ask: Ask[Any]) -> Any:
        return {"facts": [QUOTES[1]], "report": mark("report", ask.role, 1)}

    def change(ask: Ask[Any]) -> Any:
        number = turns[ask.role] + 1
        return {"edits": edits(ask.role, str(ask.slots["diagnosis"]), number, int(str(ask.slots["edits"])))}

    def said(ask: Ask[Any]) -> dict[str, Any]:
        turns[ask.role] += 1
        number = turns[ask.role]
        return {
            "reasoning": mark("stance", ask.role, number),
            "discriminating": [QUOTES[0]],
            "questions": [{"to": to, "question": text} for to, text in questions(ask.role, number)],
            "answers": [
                {"to": asker, "answer": mark(f"answer to {asker}", ask.role, number)} for asker in ask.slots["askers"]
            ],
        }

    def stance(ask: Ask[Any]) -> Any:
        if ask.role not in order:
            order.append(ask.role)
        found, number = said(ask), turns[ask.role]
        held = ask.slots["candidates"][holds(order.index(ask.role), number) % len(ask.slots["candidates"])]
        shown = {"tests_show": mark("tests", ask.role, number), "diagnosis": held}
        return {key: {**found, **shown, "confidence": "moderate"}[key] for key in STANCE_KEYS}

    def audit(ask: Ask[Any]) -> Any:
        found, number = said(ask), turns[ask.role]
        shown = {"critique": mark("critique", ask.role, number), "diagnosis": clinician(number)}
        return {key: {**found, **shown, "confidence": "low"}[key] for key in CLINICIAN_KEYS}

    def summary(ask: Ask[Any]) -> Any:  # noqa: ARG001
        turns["summary"] += 1
        return {
            "agreed": mark("agreed", "minutes", turns["summary"]),
            "disputed": mark("disputed", "minutes", turns["summary"]),
            "open": mark("open", "minutes", turns["summary"]),
        }

    def decide(ask: Ask[Any]) -> Any:
        chosen = ask.slots["candidates"][judge]
        return {
            "reasoning": mark("judge", "judge", 1),
            "decides": [QUOTES[2]],
            "diagnosis": chosen,
            "confidence": "high",
        }

    def trace(ask: Ask[Any]) -> Any:
        return {
            "candidates": [
                {"diagnosis": name, "for": [QUOTES[3]], "against": [QUOTES[4]], "conclusion": f"On {at}"}
                for at, name in enumerate(ask.slots["candidates"])
            ],
            "conclusion": "The end",
            "would_change": "A scan",
        }

    steps = {
        "triage": triage,
        "differential": differential,
        "report": report,
        "edit": change,
        "stance": stance,
        "clinician": audit,
        "summary": summary,
        "judge": decide,
        "trace": trace,
    }
    return {f"counterfactual/{name}": reply for name, reply in steps.items()}


STANCE_KEYS = (
    "reasoning",
    "discriminating",
    "tests_show",
    "diagnosis",
    "questions",
    "answers",
    "confidence",
)
CLINICIAN_KEYS = ("reasoning", "critique", "discriminating", "diagnosis", "questions", "answers", "confidence")


def alike(a: str, b: str) -> float:
    """Whole texts mean nearly the same, two names do not."""
    return 0.98 if len(a) > 128 and len(b) > 128 else 1.0 if a == b else 0.0


def run(
    replies: Mapping[str, Reply] | None = None,
    case: Case = CASE,
    *,
    similarity: Callable[[str, str], float] = alike,
    probability: Callable[[str, str], float] = lambda text, label: 0.1,  # noqa: ARG005
    noise: float = 0.0,
    fits: Callable[[Ask[Any]], bool] = lambda ask: True,  # noqa: ARG005
    **options: Any,
) -> Driven[Differential]:
    """The method on a case with a scripted team."""
    world = World(team() if replies is None else replies, similarity, fits, probability=probability, noise=noise)
    return drive(counterfactual(case, Options(**options)), world)


def asked(driven: Driven[Any], step: str, role: str = "") -> list[Said]:
    """The questions of a step, to a role where one is given, in order of rounds."""
    return [item for item in driven.said if item.step == f"counterfactual/{step}" and role in ("", item.role)]
