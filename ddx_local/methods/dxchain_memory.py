"""DxChain, phase I: the patient as a whole, before anything is planned. What it says stands in every later prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case
from ddx_local.flow import Ask, Flow, Step, ask_each
from ddx_local.methods.dxchain_steps import Options
from ddx_local.methods.fitting import Section, ask_fitting, render, titled
from ddx_local.methods.proposals import read_quotes


@dataclass(frozen=True, slots=True)
class Profile:
    """The patient profile; nothing later changes it."""

    acute: str
    chronic: str
    risks: str

    def section(self) -> Section:
        """The same in every degree of detail: it is never condensed."""
        lines = f"PATIENT PROFILE\nAcute: {self.acute}\nChronic: {self.chronic}\nRisk factors: {self.risks}"
        return {"full": lines, "brief": lines, "bare": lines}


@dataclass(frozen=True, slots=True)
class Abstract:
    """The clinical abstract; all but the summary are quotes of the case."""

    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    background: tuple[str, ...]
    summary: str

    def section(self) -> Section:
        head = f"CLINICAL ABSTRACT\n{self.summary}"
        abnormal = _line("Abnormal", self.positives)
        normal = _line("Absent or normal", self.negatives)
        before = _line("History and medications", self.background)
        return {
            "full": "\n".join([head, *abnormal, *normal, *before]),
            "brief": "\n".join([head, *abnormal]),
            "bare": head,
        }


@dataclass(frozen=True, slots=True)
class Memory:
    """What phase I leaves: the case's facts by heading (quotes), the profile, the abstract."""

    facts: Mapping[str, tuple[str, ...]]
    profile: Profile
    abstract: Abstract

    def sections(self) -> list[Section]:
        return [self.profile.section(), self.abstract.section()]


PERCEPTION: Step[Mapping[str, tuple[str, ...]]] = Step(
    "dxchain/perception", lambda answer: {heading: read_quotes(items) for heading, items in answer.items()}
)
PROFILE = Step(
    "dxchain/profile",
    lambda answer: Profile(answer["acute"].strip(), answer["chronic"].strip(), answer["risks"].strip()),
)
ABSTRACT = Step(
    "dxchain/abstract",
    lambda answer: Abstract(
        read_quotes(answer["positives"]),
        read_quotes(answer["negatives"]),
        read_quotes(answer["background"]),
        answer["summary"].strip(),
    ),
)


def anchor(case: Case, options: Options) -> Flow[Memory]:
    """Phase I: perception and profile of the raw text in one batch, then the abstract."""
    text, temperature = {"case": case.text}, options.temperature
    questions: dict[str, Ask[Any]] = {
        "perception": Ask(PERCEPTION, text, "perception", temperature),
        "profile": Ask(PROFILE, text, "profiler", temperature),
    }
    found = yield from ask_each(questions, "dxchain/perception + profile")
    facts, profile = found["perception"], found["profile"]
    record = [profile.section(), _perceived(facts)]
    written = yield from ask_fitting(
        lambda detail: {
            "abstract": Ask(ABSTRACT, {**text, "record": render(record, detail)}, "summarizer", temperature)
        }
    )
    return Memory(facts, profile, written["abstract"])


def _perceived(facts: Mapping[str, tuple[str, ...]]) -> Section:
    rows = [row for heading, items in facts.items() for row in _line(heading.replace("_", " ").capitalize(), items)]
    full = titled("FACTS BY HEADING", rows)
    counts = ", ".join(f"{heading.replace('_', ' ')} {len(items)}" for heading, items in facts.items() if items)
    return {"full": full, "brief": f"FACTS BY HEADING: {counts}", "bare": ""}


def _line(title: str, items: tuple[str, ...]) -> list[str]:
    return [f"{title}: " + "; ".join(f'"{item}"' for item in items)] if items else []
