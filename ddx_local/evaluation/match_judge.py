"""An LLM as the judge: a verdict bound by a grammar, its probability, a repeat, and what cannot be read as its own outcome.

The judge is an instrument with an error: it runs on an engine of its own choice with a fixed seed, says how often it agrees
with itself, and a verdict that cannot be read is counted, bounded ([all no, all yes]) and never scored.
"""

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ddx_local.assets import Assets
from ddx_local.data import data_dir
from ddx_local.engines.protocol import Engine
from ddx_local.errors import CaseError
from ddx_local.evaluation.match import Hierarchy, Matched, matched
from ddx_local.evaluation.metrics_safety import BOND
from ddx_local.flow import Ask, Step, Weigh
from ddx_local.request import LoglikelihoodRequest, Request, Sampling
from ddx_local.rounds import question_seed

Outcome = Literal["yes", "no", "unread"]

RULES: Mapping[Hierarchy, str] = {
    "exact": "A broader or a narrower diagnosis is not correct; another name of the same disease is.",
    "broader_ok": "A broader diagnosis is correct; a narrower one is not.",
    "either_ok": "A broader or a narrower diagnosis is correct, too.",
}

_SAME: Step[Any] = Step("judge/same", lambda answer: answer)
_WEIGH: Step[Any] = Step("judge/weigh", lambda answer: answer)
_TAXONOMY: Step[Any] = Step("judge/taxonomy", lambda answer: answer)
_FIRST_WORD = re.compile(r"\W*(yes|no)\b", re.I)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer about one pair. `probability` is P(yes) of yes and no; `again` is the repeat's outcome, '' without one."""

    outcome: Outcome
    probability: float | None = None
    again: str = ""


def read_verdict(text: str) -> Outcome:
    """What a reply says: the JSON form, or a reply whose first word is yes or no; anything else is unread.

    "no" inside of "diagnosis" says nothing, as a whole-text search would have it.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        found = _FIRST_WORD.match(text)
        return _outcome(found[1]) if found else "unread"
    return _outcome(answer.get("correct")) if isinstance(answer, dict) else "unread"


def _outcome(word: Any) -> Outcome:
    value = word.lower() if isinstance(word, str) else word
    return "yes" if value == "yes" else "no" if value == "no" else "unread"


def judge_assets() -> Assets:
    """The judge's own prompts and grammars."""
    return Assets(data_dir("bench") / "prompts", data_dir("bench") / "grammars")


@dataclass
class Judge:
    """Asks for each pair once, and `repeat` says how often in all.

    Args:
        engine: Whose model judges; it need not be the one that is judged.
        model: Its name, for the label.
        hierarchy: Whether broader or narrower is correct.
        seed: Of the questions.
        repeat: 2 asks every pair again with another seed, to measure how far the judge agrees with itself.
        weigh: Also take P(yes) by probability, without sampling.
        known: Verdicts from before: (prediction, gold) -> verdict; new ones are added.
    """

    engine: Engine
    model: str
    hierarchy: Hierarchy = "exact"
    seed: int = 0
    repeat: int = 1
    weigh: bool = False
    assets: Assets = field(default_factory=judge_assets)
    known: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    @property
    def label(self) -> str:
        digest = self.assets.template(_SAME.name).digest[:8]
        return f"judge {self.model} {self.hierarchy} seed {self.seed} prompt {digest}"

    async def match(self, predictions: Sequence[str], golds: Sequence[str]) -> Matched:
        pairs = [(prediction, gold) for prediction in predictions for gold in golds]
        await self.decide(pairs)
        outcomes = [[self.known[p, g].outcome for g in golds] for p in predictions]
        sure = matched([[float(o == "yes") for o in row] for row in outcomes], 1.0)
        hoped = matched([[float(o != "no") for o in row] for row in outcomes], 1.0)
        unread = sum(o == "unread" for row in outcomes for o in row)
        return Matched(sure.pairs, sure.first, sure.primary, unread, len(hoped.pairs))

    async def decide(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Fill `known` for pairs that it lacks, all in one batch."""
        due = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        if not due:
            return
        rounds = await asyncio.gather(*(self._ask(due, number) for number in range(self.repeat)))
        chances = await self._weigh(due) if self.weigh else [None] * len(due)
        for index, pair in enumerate(due):
            again = rounds[1][index] if self.repeat > 1 else ""
            self.known[pair] = Verdict(rounds[0][index], chances[index], again)

    async def _ask(self, pairs: Sequence[tuple[str, str]], number: int) -> list[Outcome]:
        texts = await self.texts(
            [self._question(_SAME, pair) for pair in pairs], f"repeat {number}", 0.7 if number else 0.0
        )
        return [read_verdict(text) for text in texts]

    async def texts(self, questions: Sequence[Ask[Any]], what: str, temperature: float = 0.0) -> list[str]:
        """Replies; one that fails (cut off, does not fit) is the empty text, which no reader accepts."""
        filled = [self.assets.fill(question) for question in questions]
        requests = [
            Request(
                item.messages,
                Sampling(temperature, 1.0, 0, item.longest, question_seed(self.seed, what, index, "judge", ())),
                item.grammar,
                "judge",
            )
            for index, item in enumerate(filled)
        ]
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(self, request: Request) -> str:
        try:
            completion = (await self.engine.generate([request]))[0]
        except CaseError:
            return ""
        return completion.text if completion.finish_reason == "stop" else ""

    async def _weigh(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        filled = [self.assets.fill(Weigh(_WEIGH, self._question(_WEIGH, pair).slots, ("yes", "no"))) for pair in pairs]
        requests = [
            LoglikelihoodRequest(item.messages, item.answer_prefix, ('yes"}', 'no"}'), "judge") for item in filled
        ]
        scores = await self.engine.loglikelihood(requests)
        return [1 / (1 + math.exp(no.logprob - yes.logprob)) for yes, no in scores]

    def _question(self, step: Step[Any], pair: tuple[str, str]) -> Ask[Any]:
        slots = {"prediction": pair[0], "gold": pair[1], "rule": RULES[self.hierarchy]}
        return Ask(step, slots, "judge")

    async def closeness(self, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
        """Bond scores (5, 4, 3, 2, 0) of predictions against golds; None where the reply cannot be read."""
        questions = [Ask(_TAXONOMY, {"prediction": p, "gold": g}, "judge") for p, g in pairs]
        return [read_closeness(text) for text in await self.texts(questions, "taxonomy")]

    async def safety(self, rows: Sequence[tuple[str, Sequence[str], str]]) -> list[tuple[int, ...] | None]:
        """Five-dimension ratings of (case text, predictions, gold); four dimensions for one prediction."""
        questions = []
        for text, predictions, gold in rows:
            step: Step[Any] = Step(
                "judge/safety_list" if len(predictions) > 1 else "judge/safety", lambda answer: answer
            )
            listed = "\n".join(f"{rank}. {name}" for rank, name in enumerate(predictions, start=1))
            shown = listed if len(predictions) > 1 else "".join(predictions)
            questions.append(Ask(step, {"case": text, "prediction": shown, "gold": gold}, "judge"))
        return [read_ratings(reply) for reply in await self.texts(questions, "safety")]

    def reliability(self) -> dict[str, float | int | None]:
        """How many verdicts were read, and how often the repeat says the same (of those read both times)."""
        twice = [v for v in self.known.values() if v.again in ("yes", "no") and v.outcome != "unread"]
        return {
            "pairs": len(self.known),
            "unread": sum(v.outcome == "unread" for v in self.known.values()),
            "repeated": len(twice),
            "self_agreement": sum(v.outcome == v.again for v in twice) / len(twice) if twice else None,
        }


def read_closeness(text: str) -> int | None:
    """A Bond score; 1 is not on the scale, and nothing else is taken for a number."""
    try:
        value = json.loads(text)["closeness"]
    except (ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value in BOND else None


def read_ratings(text: str) -> tuple[int, ...] | None:
    """All dimensions, each 1 to 5, or None: a missing one makes the case unscored."""
    try:
        answer = json.loads(text)
        values = tuple(answer[name] for name in ("correctness", "misses", "alarms", "bias"))
        values += (answer["calibration"],) if "calibration" in answer else ()
    except (ValueError, KeyError, TypeError):
        return None
    whole = all(isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 5 for value in values)
    return values if whole else None
