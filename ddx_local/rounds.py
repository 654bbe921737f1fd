"""Answer the rounds of one case: fill prompts and grammars, look up what is recorded, ask the engine, record, parse.

Recorded answers are fed back instead of asking again (resume, replay); a question that is no longer the one recorded is
refused. It sees the Engine protocol, no particular engine.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ddx_local.answers import check, difference, parse
from ddx_local.assets import Filled
from ddx_local.case import Case
from ddx_local.engines.protocol import Engine
from ddx_local.engines.tasks import all_or_first_error
from ddx_local.errors import BudgetSpent, CaseError, ReplayMismatch
from ddx_local.events import Answered, Asked, CaseFailed, Commented, Noted, RoundStarted, sha256
from ddx_local.flow import Ask, Consult, CountSpent, CountTokens, Key, Note, Question, Round, Weigh
from ddx_local.recorder import Context, RecordedFailure, Recorder
from ddx_local.request import Completion, Loglikelihood, LoglikelihoodRequest, Request, Sampling, Size
from ddx_local.roles import bound_to
from ddx_local.supervise import Comment, RoundDone

M = TypeVar("M")


def question_seed(run_seed: int, case_id: str, round_number: int, step: str, key: Key) -> int:
    """The seed of one question: a hash, so that no order of work can change it. In [0, 2^31)."""
    text = json.dumps([run_seed, case_id, round_number, step, list(key)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


class Rounds:
    """Answers the rounds of one case."""

    def __init__(self, case: Case, context: Context, recorder: Recorder) -> None:
        self.case = case
        self.context = context
        self.recorder = recorder
        self.number = -1
        self.asked = {(e.round, e.key): e for e in context.history if isinstance(e, Asked)}
        self.answered = {(e.round, e.key): e for e in context.history if isinstance(e, Answered)}
        self.started = {e.round for e in context.history if isinstance(e, RoundStarted)}
        self.commented = [e for e in context.history if isinstance(e, Commented)]
        self.comments: list[Comment] = []
        self.spent = 0
        self._filled: dict[Any, Filled] = {}
        self._models: dict[int, str] = {}

    async def answer(self, round_: Round) -> dict[Key, Any]:
        self.number += 1
        started = RoundStarted(
            round=self.number, name=round_.name, questions=len(round_.questions), batch=round_.is_batch
        )
        notes = {key: question for key, question in round_.questions.items() if isinstance(question, Note)}
        # At once: a note has no key, so that half of a round's notes could not be told from all of them.
        self.recorder.add([started, *(_noted(self.number, question) for question in notes.values())])
        replies: dict[Key, Any] = dict.fromkeys(notes)
        model_questions: dict[Key, Ask[Any] | Weigh] = {}
        for key, question in round_.questions.items():
            if isinstance(question, Consult):
                replies[key] = await self._consult(key, question)
            elif isinstance(question, Ask | Weigh):
                model_questions[key] = question
        texts = await self._ask(model_questions, replies)
        if round_.is_batch:
            await self._supervised(round_.name, model_questions, texts)
        return {key: replies[key] for key in round_.questions}

    async def _supervised(self, name: str, questions: Mapping[Key, Ask[Any] | Weigh], texts: Mapping[Key, str]) -> None:
        """Take in the comments on a round: the recorded ones, or new ones where the case has not gone on since."""
        past = [event for event in self.commented if event.round == self.number]
        if past or self.number + 1 in self.started or self.context.supervise is None or self.context.engine is None:
            self.comments += [Comment(event.by, event.text, event.about) for event in past]
            # A replay writes everything once more; otherwise these are known and not written again.
            self.recorder.add(past)
            return
        answers = tuple(
            (_speaker(key, question), question.step.name, texts.get(key, "")) for key, question in questions.items()
        )
        said = await self.context.supervise(RoundDone(self.case.id, self.number, name, answers))
        self.recorder.add([Commented(round=self.number, by=item.by, text=item.text, about=item.about) for item in said])
        self.comments += said

    async def _ask(self, questions: Mapping[Key, Ask[Any] | Weigh], replies: dict[Key, Any]) -> dict[Key, str]:
        """Fill, look up what is recorded, ask the rest in one batch, parse into `replies`; returns what was said."""
        budget = self.context.budget
        if questions and budget is not None and self.spent >= budget:
            raise BudgetSpent(f"{self.spent:,} of {budget:,} tokens were used up before round {self.number}")
        filled = {key: self._fill(question) for key, question in questions.items()}
        if questions:
            self._filled.clear()
        asked = {key: self._asked(key, questions[key], filled[key]) for key in questions}
        self.recorder.add(list(asked.values()), _texts(questions.values()))
        texts: dict[Key, str] = {}
        owed: list[Key] = []
        for key in questions:
            recorded = self._recorded(key, asked[key])
            if recorded is None:
                owed.append(key)
                continue
            self.spent += recorded.prompt_tokens + recorded.generated_tokens
            if isinstance(questions[key], Ask):
                text = self.context.recorded_text(recorded.text)
                check(text, recorded.finish_reason, filled[key].grammar, questions[key].step.name)
                texts[key] = text
        asks = [key for key in owed if isinstance(questions[key], Ask)]
        if asks:
            completions = await self._generate(asks, questions, filled, asked)
            texts |= {key: completion.text for key, completion in completions.items()}
        for key, question in questions.items():
            if isinstance(question, Ask):
                replies[key] = parse(question, texts[key], grammar=filled[key].grammar is not None)
        weighs = {key: question for key, question in questions.items() if isinstance(question, Weigh)}
        if weighs:
            replies.update(await self._weigh(weighs, filled, asked, owed))
        return texts

    async def _generate(
        self,
        keys: Sequence[Key],
        questions: Mapping[Key, Ask[Any] | Weigh],
        filled: Mapping[Key, Filled],
        asked: Mapping[Key, Asked],
    ) -> dict[Key, Completion]:
        began = time.perf_counter()

        async def generate(engine: Engine, keys: Sequence[Key]) -> dict[Key, Completion]:
            def record(index: int, completion: Completion) -> None:
                key = keys[index]
                answered = Answered(
                    round=self.number,
                    key=key,
                    digest=asked[key].digest,
                    text=sha256(completion.text),
                    thoughts=sha256(completion.thoughts) if completion.thoughts else "",
                    finish_reason=completion.finish_reason,
                    prompt_tokens=completion.prompt_tokens,
                    cached_tokens=completion.cached_tokens,
                    generated_tokens=completion.generated_tokens,
                    seconds=time.perf_counter() - began,
                )
                texts = [text for text in (completion.text, completion.thoughts) if text]
                self.recorder.add([answered], [*texts, ""] if not completion.text else texts)

            requests = [_request(filled[key], asked[key], questions[key].step.name) for key in keys]
            return dict(zip(keys, await engine.generate(requests, record), strict=True))

        groups = _grouped([(self._engine_for(key, questions[key]), key) for key in keys])
        # The engines of a round work at the same time.
        parts = await all_or_first_error([generate(engine, members) for engine, members in groups])
        completions = {key: completion for part in parts for key, completion in part.items()}
        self.spent += sum(item.prompt_tokens + item.generated_tokens for item in completions.values())
        for key in keys:
            check(completions[key].text, completions[key].finish_reason, filled[key].grammar, questions[key].step.name)
        return {key: completions[key] for key in keys}

    async def _weigh(
        self,
        questions: Mapping[Key, Weigh],
        filled: Mapping[Key, Filled],
        asked: Mapping[Key, Asked],
        owed: Sequence[Key],
    ) -> dict[Key, Any]:
        replies: dict[Key, Any] = {}
        due = [key for key in questions if key in owed]
        began = time.perf_counter()
        if due:
            requests = [
                LoglikelihoodRequest(
                    filled[key].messages, filled[key].answer_prefix, questions[key].labels, questions[key].step.name
                )
                for key in due
            ]
            scores = await self._needs_engine(due[0]).loglikelihood(requests)
            for key, labels in zip(due, scores, strict=True):
                value = [[score.label, score.logprob, score.tokens, score.noise] for score in labels]
                tokens = sum(score.tokens for score in labels)
                self.spent += tokens
                answered = Answered(
                    round=self.number,
                    key=key,
                    digest=asked[key].digest,
                    value=value,
                    finish_reason="stop",
                    generated_tokens=tokens,
                    seconds=time.perf_counter() - began,
                )
                self.recorder.add([answered])
                replies[key] = labels
        for key in questions:
            if key not in replies:
                value = self.answered[(self.number, key)].value
                replies[key] = tuple(Loglikelihood(*score) for score in value)
        return replies

    async def _consult(self, key: Key, question: Consult) -> Any:
        recorded = self.answered.get((self.number, key))
        if isinstance(question.about, CountTokens):
            digest = sha256(json.dumps([self._fill(ask).prompt_digest for ask in question.about.questions]))
        else:
            digest = sha256(repr(question.about))
        if recorded is not None:
            if recorded.digest != digest:
                raise self._mismatch(
                    "/".join(key), "what is consulted about (it comes from earlier answers or prompts)"
                )
            value = recorded.value
        else:
            self._needs_engine(key)
            value = await self._answer_consultation(key, question)
            self.recorder.add([Answered(round=self.number, key=key, digest=digest, value=value)])
        if isinstance(question.about, CountTokens):
            return tuple(Size(*numbers) for numbers in value)
        return value

    async def _answer_consultation(self, key: Key, question: Consult) -> Any:
        about = question.about
        if isinstance(about, CountSpent):
            return [self.spent, self.context.budget]
        if isinstance(about, CountTokens):
            filled = [self._fill(ask) for ask in about.questions]
            requests = [Request(item.messages, Sampling(max_tokens=item.longest)) for item in filled]
            sizes: dict[int, Size] = {}
            for engine, places in _grouped(
                [(self._engine_for(key, ask), place) for place, ask in enumerate(about.questions)]
            ):
                sizes |= dict(zip(places, await engine.measure([requests[at] for at in places]), strict=True))
            return [[size.prompt, size.answer, size.context] for _, size in sorted(sizes.items())]
        if type(about) not in self.context.consultants:
            raise CaseError(f"nothing here answers a {type(about).__name__} consultation", "Please report this.")
        return await self.context.consultants[type(about)](about)

    def _fill(self, question: Ask[Any] | Weigh) -> Filled:
        """Fill a question; what a consultation has just measured is not filled again when it is asked."""
        temperature = question.temperature if isinstance(question, Ask) else None
        comments = [item.as_line() for item in self.comments] if isinstance(question, Ask) else []
        place = (question.step.name, temperature, frozenset(question.slots.items()), len(comments))
        if place not in self._filled:
            self._filled[place] = self.context.assets.fill(question, comments)
        return self._filled[place]

    def _asked(self, key: Key, question: Ask[Any] | Weigh, filled: Filled) -> Asked:
        seed = question_seed(self.context.seed, self.case.id, self.number, question.step.name, key)
        sampling = [seed, filled.temperature, filled.top_p, filled.longest]
        labels = list(question.labels) if isinstance(question, Weigh) else []
        return Asked(
            round=self.number,
            key=key,
            step=question.step.name,
            role=question.role if isinstance(question, Ask) else "",
            slots={
                name: sha256(value) if isinstance(value, str) else [sha256(item) for item in value]
                for name, value in question.slots.items()
            },
            seed=seed,
            temperature=filled.temperature,
            digest=sha256(json.dumps([filled.prompt_digest, sampling, labels])),
            engine=self._model_of(key, question),
        )

    def _model_of(self, key: Key, question: Ask[Any] | Weigh) -> str:
        """The model that answers; a replay, which has none, knows it from the record."""
        if self.context.engine is None:
            before = self.asked.get((self.number, key))
            return before.engine if before is not None else ""
        engine = self._engine_for(key, question)
        if id(engine) not in self._models:
            self._models[id(engine)] = engine.fingerprint.get("model", "")
        return self._models[id(engine)]

    def _engine_for(self, key: Key, question: Ask[Any] | Weigh) -> Engine:
        """The engine of the question's role; label probabilities stay with the main one, which is whose they mean."""
        main = self._needs_engine(key)
        return bound_to(question, self.context.bound, main) if isinstance(question, Ask) else main

    def _recorded(self, key: Key, asked: Asked) -> Answered | None:
        place = (self.number, key)
        if (before := self.asked.get(place)) is not None and before.digest != asked.digest:
            raise self._mismatch(asked.step, difference(before, asked))
        recorded = self.answered.get(place)
        if recorded is None:
            self._needs_engine(key)
        return recorded

    def _mismatch(self, what: str, changed: str) -> ReplayMismatch:
        return ReplayMismatch(
            f"case `{self.case.id}`, round {self.number} `{what}`: the question is no longer the one that was recorded; "
            f"changed: {changed}"
        )

    def _needs_engine(self, key: Key) -> Engine:
        """The engine, where there is one; a replay ends here as the recorded case did."""
        if self.context.engine is not None:
            return self.context.engine
        if self.context.history and isinstance(self.context.history[-1], CaseFailed):
            raise RecordedFailure(self.context.history[-1])
        whose = f" to `{'/'.join(key)}`" if any(key) else ""
        raise ReplayMismatch(
            f"case `{self.case.id}`, round {self.number}: the run holds no answer{whose}; it was interrupted",
            "Finish it first: `ddx-local runs resume RUN`.",
        )


def _grouped(items: Iterable[tuple[Engine, M]]) -> list[tuple[Engine, list[M]]]:
    """Each engine once, with what is for it, in order."""
    groups: dict[int, tuple[Engine, list[M]]] = {}
    for engine, item in items:
        groups.setdefault(id(engine), (engine, []))[1].append(item)
    return list(groups.values())


def _speaker(key: Key, question: Ask[Any] | Weigh) -> str:
    role = question.role if isinstance(question, Ask) else ""
    return role or "/".join(key)


def _noted(number: int, note: Note) -> Noted:
    return Noted(round=number, kind=note.kind, detail=note.detail, degraded=note.degraded)


def _texts(questions: Iterable[Question]) -> list[str]:
    """All slot values of the questions, each once."""
    texts: dict[str, None] = {}
    for question in questions:
        if isinstance(question, Ask | Weigh):
            for value in question.slots.values():
                texts.update(dict.fromkeys((value,) if isinstance(value, str) else value))
    return list(texts)


def _request(filled: Filled, asked: Asked, what: str) -> Request:
    sampling = Sampling(filled.temperature, filled.top_p, 0, filled.longest, asked.seed)
    return Request(filled.messages, sampling, filled.grammar, what)
