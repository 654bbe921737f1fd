"""Small benchmarks for tests: made-up cases with known golds, and an engine without a model that is right as often as told."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import CaseError, LengthStop
from ddx_local.evaluation import plan, runner, suite
from ddx_local.evaluation.match import Labels
from ddx_local.evaluation.record import Record
from ddx_local.evaluation.score import CaseScore, score
from ddx_local.flow import Similarity
from ddx_local.launch import Opened
from ddx_local.request import Request
from ddx_local.settings import Settings
from ddx_local.store import Store

NAMES = (
    "gout",
    "septic arthritis",
    "cellulitis",
    "psoriasis",
    "malaria",
    "dengue",
    "measles",
    "rubella",
    "scurvy",
    "rickets",
)


def write_cases(path: Path, count: int, golds: int = 2) -> Path:
    """`count` cases as JSON lines; the golds of case i are names i, i + 1 ..."""
    rows = [
        {
            "id": f"case-{number:04d}",
            "text": f"Case {number}: a patient with fever and cough came to the clinic today.",
            "gold": [NAMES[(number + place) % len(NAMES)] for place in range(golds)],
            "part": "odd" if number % 2 else "even",
        }
        for number in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def zero_shot(request: Request, right: float = 0.6) -> str:
    """One differential in zero-shot's form: right with a chance that the question's own seed decides."""
    chance = random.Random(request.sampling.seed)
    number = int(re.search(r"Case (\d+):", request.messages[-1].content)[1])  # type: ignore[index]
    first = NAMES[number % len(NAMES)] if chance.random() < right else NAMES[(number + 5) % len(NAMES)]
    names = [first, NAMES[(number + chance.choice((1, 7))) % len(NAMES)]]
    entries = [{"diagnosis": name, "evidence": ["a patient with fever "], "reason": "It fits."} for name in names]
    return json.dumps({"differential": entries})


def reply(request: Request) -> str:
    """Zero-shot's form by `zero_shot`, any other by a walk over its grammar."""
    if request.what.startswith("zero_shot") and "Case " in request.messages[-1].content:
        return zero_shot(request)
    return by_policy("walk")(request)


def failing(number: int, temperature: float) -> Any:
    """A reply that is cut off for one case at one temperature: it fails in one method only."""

    def answer(request: Request) -> str:
        if f"Case {number}:" in request.messages[-1].content and request.sampling.temperature == temperature:
            error: CaseError = LengthStop("step `zero_shot/differential`: the answer was cut off at its token limit")
            raise error
        return reply(request)

    return answer


def opener(answer: Any = reply, **options: Any) -> Any:
    """Opens engines as `launch.open_all` does; the engines opened are kept in `opener.engines`."""

    async def open_all(_: Settings, **__: Any) -> Opened:
        engine = ScriptedEngine(answer, **options)
        engines.append(engine)
        return Opened(engine, {Similarity: spelling_similarity})

    engines: list[ScriptedEngine] = []
    open_all.engines = engines  # type: ignore[attr-defined]
    return open_all


def suite_of(path: Path, arms: Sequence[Mapping[str, Any]], seeds: Sequence[int] = (0,), **more: Any) -> dict[str, Any]:
    """A suite's decoded TOML over a file of `write_cases`."""
    return {
        "name": "made",
        "seeds": list(seeds),
        "models": ["scripted"],
        "data": {"source": "jsonl", "path": str(path), "columns": {"groups": ["part"]}},
        "method": [dict(arm) for arm in arms],
        "engine": {"name": "scripted"},
        **more,
    }


SETTINGS = Settings(engine="scripted", probability_cache=False)


class World:
    """A store and a record in a folder, and what tests do with them."""

    def __init__(self, folder: Path | None = None) -> None:
        self.store = Store(folder / "runs.sqlite" if folder else None)
        self.record = Record(folder / "runs-bench.sqlite" if folder else None)
        self.lines: list[str] = []

    def begin(self, raw: Mapping[str, Any]) -> str:
        return plan.begin(suite.parse(raw, Path("made.toml")), raw, SETTINGS, self.record)

    async def drive(self, bench_id: str, open_all: Any = None, at_once: int = 4) -> None:
        await runner.drive(
            bench_id,
            self.record,
            self.store,
            SETTINGS,
            say=self.lines.append,
            show=self.lines.append,
            at_once=at_once,
            opener=open_all or opener(),
        )

    async def rows(self, bench_id: str) -> list[CaseScore]:
        return await score(self.record.load(bench_id), self.store, Labels())

    async def run(self, raw: Mapping[str, Any], open_all: Any = None, at_once: int = 4) -> tuple[str, list[CaseScore]]:
        bench_id = self.begin(raw)
        await self.drive(bench_id, open_all, at_once)
        return bench_id, await self.rows(bench_id)


BASE: dict[str, Any] = {"name": "zero-shot", "role": "baseline"}
PLACEBO: dict[str, Any] = {"name": "zero-shot", "label": "again", "role": "placebo"}
THREE: dict[str, Any] = {"name": "best-of-n", "label": "three", "options": {"n": 3, "threshold": 0.3}}
