"""A small method with prompts and a grammar of its own, and a run of it into a real store, for tests of the driver."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ddx_local.assets import Assets
from ddx_local.case import Case, Differential, Entry
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.protocol import Engine
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.events import CaseFailed, Event, RunStarted
from ddx_local.flow import Ask, Flow, Similarity, Step, Weigh, ask, ask_each, note, similarities, sizes, weigh
from ddx_local.recorder import Context
from ddx_local.request import Request
from ddx_local.run import run_cases
from ddx_local.store import Store
from ddx_local.supervise import Supervisor

CANARY = "Zanthoxylum"
"""A word of the case text that must not turn up anywhere else."""

CASES = tuple(Case(name, f"{name} has had {CANARY} fever and a cough for two days.") for name in ("ann", "bea", "cyd"))

SAY: Step[str] = Step("toy/say", lambda answer: answer["say"])
FREE: Step[str] = Step("toy/free", str)
RATE: Step[Any] = Step("toy/rate", str)

FILES = {
    "prompts/toy/_shared.md": "You test.\n---\nCASE\n{{case}}\n",
    "prompts/toy/say.md": '+++\nslots = { case = "text" }\n+++\nSay something.\n',
    "prompts/toy/free.md": '+++\nslots = { case = "text" }\nmax_tokens = 40\n+++\nSay anything.\n',
    "prompts/toy/rate.md": '+++\nslots = { case = "text" }\nanswer_prefix = "It is"\n+++\nWhat is it?\n',
    "prompts/comments.md": "COMMENTS\n{{comments}}\n(end)\n",
    "grammars/toy/say.lark": 'start: "{\\"say\\": " {{text 60}} "}"\n',
}


def toy_assets(folder: Path) -> Assets:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Assets(folder / "prompts", folder / "grammars")


def said(request: Request) -> str:
    """An answer that depends on nothing but the question's seed."""
    return json.dumps({"say": f"said {request.sampling.seed}"}) if request.grammar else f"free {request.sampling.seed}"


def differential(*names: str) -> Differential:
    return Differential("reciprocal_place", tuple(Entry(place, name, 1 / place) for place, name in enumerate(names, 1)))


def talk(case: Case) -> Flow[Differential]:
    """Every kind of round: one question, a note, two questions, both consultations, labels, free text."""
    first = yield from ask(SAY, role="first", case=case.text)
    yield from note("tie", "a and b are equal")
    both = yield from ask_each({role: Ask(SAY, {"case": case.text}, role, 0.7) for role in ("a", "b")})
    (alike,) = yield from similarities([(both["a"], both["b"])])
    (room,) = yield from sizes([Ask(FREE, {"case": case.text})])
    scores = yield from weigh({"which": Weigh(RATE, {"case": case.text}, ("flu", "gout"))})
    last = yield from ask(FREE, case=case.text)
    best = max(scores["which"], key=lambda score: score.logprob).label
    return differential(first, f"{alike:.3f}", f"{room.answer} of {room.context}", best, last)


@dataclass
class Toy:
    """One run of a toy flow over the three cases."""

    folder: Path
    flow: Callable[[Case], Flow[Differential]] = talk
    cases: Sequence[Case] = CASES
    seed: int = 0
    store: Store = field(default_factory=lambda: Store(None))
    run_id: str = "r1"
    supervise: Supervisor | None = None

    def start(self) -> "Toy":
        """Record the beginning of the run, as `jobs.start` does."""
        header = RunStarted(
            at="2026-01-01T00:00:00.000+00:00",
            run_id=self.run_id,
            method="toy",
            options={},
            model="scripted",
            fingerprint={},
            engine="scripted",
            seed=self.seed,
            package_version="0",
            cases={case.id: "" for case in self.cases},
        )
        self.store.append(self.run_id, [header])
        return self

    def context(self, case: Case, engine: Engine | None, *, recording: bool = True) -> Context:
        return Context(
            engine=engine,
            assets=toy_assets(self.folder),
            append=self._append,
            seed=self.seed,
            consultants={Similarity: spelling_similarity} if engine else {},
            history=self.store.events(self.run_id, case.id),
            recorded_text=lambda address: self.store.text(self.run_id, address),
            supervise=self.supervise,
            recording=recording,
        )

    def _append(self, events: Sequence[Event], texts: Sequence[str]) -> None:
        self.store.append(self.run_id, events, texts)

    def drive(self, engine: Engine | None = None, *, at_once: int = 1) -> Mapping[str, Differential | CaseFailed]:
        engine = engine or ScriptedEngine(said)
        return asyncio.run(
            run_cases(self.cases, self.flow, lambda case: self.context(case, engine), self._append, at_once=at_once)
        )

    def events(self, case_id: str | None = None) -> tuple[Event, ...]:
        return self.store.events(self.run_id, case_id)
