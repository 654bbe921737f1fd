"""The work of the transformers engine: answers that grow by a token at a time in one batch, and between tokens scores.

An answer that ends leaves the batch; what has been asked meanwhile joins it before the next token.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ddx_local.engines.front import Said
from ddx_local.engines.transformers_draw import draw, source
from ddx_local.engines.transformers_grammar import Grammars
from ddx_local.engines.transformers_prefixes import Prefixes, unless
from ddx_local.engines.transformers_rows import Network, Rows, join
from ddx_local.engines.transformers_scoring import Score, scores
from ddx_local.errors import CaseError
from ddx_local.request import FinishReason, Sampling


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to be given: `stop` is a text that ends it."""

    name: str
    ids: tuple[int, ...]
    sampling: Sampling
    grammar: str | None
    stop: str | None


@dataclass(slots=True, eq=False)
class _Growing:
    """An answer in the batch; the last of prompt and `said` is not computed yet."""

    asked: Answer
    matcher: Any | None
    chance: torch.Generator
    cached: int
    said: list[int] = field(default_factory=list)

    @property
    def next(self) -> int:
        return self.said[-1] if self.said else self.asked.ids[-1]


class Batch:
    """All work in flight. Whoever owns it calls `passes` in one thread.

    Args:
        network: The model.
        grammars: For its tokenizer.
        tokenizer: For texts without a grammar; used by nobody else.
        ends: Tokens that end an answer.
        room: Tokens whose keys and values fit the memory.
        most: Answers at once.
        wanted: Whether somebody still waits for the work of that name.
        deliver: Takes a result, or what went wrong with it.
    """

    def __init__(
        self,
        network: Network,
        grammars: Grammars,
        tokenizer: Any,
        ends: frozenset[int],
        *,
        room: int,
        most: int,
        wanted: Callable[[str], bool],
        deliver: Callable[[str, Any], None],
    ) -> None:
        self._network, self._grammars, self._tokenizer, self._ends = network, grammars, tokenizer, ends
        self._room, self._most = room, most
        self._wanted, self._deliver = wanted, deliver
        self._prefixes = Prefixes(network, room // 4)
        self._answers: list[Answer] = []
        self._scores: list[Score] = []
        self._growing: list[_Growing] = []
        self._rows = Rows((), ())
        self._rests = True

    def add(self, work: Answer | Score) -> None:
        if isinstance(work, Answer):
            self._answers.append(work)
        else:
            self._scores.append(work)

    def forget(self) -> None:
        self._prefixes.forget()

    @property
    def idle(self) -> bool:
        return self._rests and not (self._answers or self._scores or self._growing)

    def passes(self) -> Generator[None, None, None]:
        """Without end: each item is one pass of the model, or nothing where there is nothing to do."""
        while True:
            self._rests = False
            yield from self._score()
            yield from self._join()
            self._drop([each for each in self._growing if self._wanted(each.asked.name)])
            if self._growing:
                self._grow()
            self._rests = True
            yield

    def _join(self) -> Generator[None, None, None]:
        """Compute the prompts of as many waiting answers as fit, and put them into the batch."""
        self._answers = [each for each in self._answers if self._wanted(each.name)]
        some = self._fitting()
        new = [each for each in (self._begun(asked) for asked in some) if each]
        if not new:
            return
        computing = self._prefixes.rows([each.asked.ids[:-1] for each in new])
        done = yield from unless(computing, lambda: not any(self._wanted(each.asked.name) for each in new))
        if done is None:
            return
        rows, cached = done
        for each, count in zip(new, cached, strict=True):
            each.cached = count
        self._rows = join([self._rows, rows]) if self._growing else rows
        self._growing += new

    def _fitting(self) -> list[Answer]:
        asked = [each.asked for each in self._growing]
        before = len(asked)
        while self._answers and len(asked) < self._most:
            asked.append(self._answers[0])
            columns = max(len(each.ids) + each.sampling.max_tokens for each in asked)
            if len(asked) > 1 and len(asked) * columns > self._room:
                del asked[-1]
                break
            del self._answers[0]
        return asked[before:]

    def _begun(self, asked: Answer) -> _Growing | None:
        try:
            matcher = self._grammars.matcher(asked.grammar) if asked.grammar is not None else None
        except ValueError as error:
            # llguidance's own words quote the grammar, which holds the words of the case.
            kind = type(error).__name__
            self._deliver(asked.name, CaseError(f"llguidance refused a grammar ({kind})", "Please report this."))
            return None
        return _Growing(asked, matcher, source(asked.sampling.seed), 0)

    def _grow(self) -> None:
        """One token more for each answer; the ones that end with it leave."""
        self._rows, logits = self._network.extend(self._rows, [[each.next] for each in self._growing])
        allowed = self._grammars.allowed([each.matcher for each in self._growing])
        chosen = logits.float().masked_fill(~torch.from_numpy(allowed).to(logits.device), -torch.inf)
        samplings, chances = [each.asked.sampling for each in self._growing], [each.chance for each in self._growing]
        tokens = draw(chosen, samplings, chances)
        going = []
        for each, token, possible in zip(self._growing, tokens, allowed.any(axis=1), strict=True):
            # A grammar that allows nothing is at a dead end: the answer is over, and not accepted.
            reason = self._taken(each, token) if possible else "stop"
            if reason:
                self._deliver(each.asked.name, self._said(each, reason))
            else:
                going.append(each)
        self._drop(going)

    def _taken(self, each: _Growing, token: int) -> FinishReason | None:
        each.said.append(token)
        if token in self._ends:
            return "stop"
        if each.matcher is not None:
            each.matcher.consume_token(token)
            if each.matcher.is_stopped():
                return "stop"
        elif each.asked.stop is not None and each.asked.stop in self._text(each, last=32):
            return "stop"
        return "length" if len(each.said) >= each.asked.sampling.max_tokens else None

    def _said(self, each: _Growing, reason: FinishReason) -> Said:
        text = self._text(each)
        if each.asked.stop is not None:
            text = text.partition(each.asked.stop)[0]
        return Said(tuple(each.said), text, reason, each.cached)

    def _text(self, each: _Growing, last: int = 0) -> str:
        ids = each.said[-last:]
        if ids and ids[-1] in self._ends:
            ids = ids[:-1]
        if each.matcher is not None:
            return self._grammars.text(ids)
        marks = each.asked.stop is not None  # the mark that ends thoughts may be a token of its own kind
        return str(self._tokenizer.decode(ids, skip_special_tokens=not marks, clean_up_tokenization_spaces=False))

    def _drop(self, going: Sequence[_Growing]) -> None:
        """Go on with these alone."""
        if len(going) < len(self._growing):
            self._rows = self._rows.pick([self._growing.index(each) for each in going])
            self._growing = list(going)

    def _score(self) -> Generator[None, None, None]:
        while self._scores:
            work = [each for each in self._scores if self._wanted(each.name)]
            count = max(1, self._room // 2 // max((len(each.prompt) for each in work), default=1))
            self._scores = work[count:]
            if work:
                width = self._grammars.vocabulary
                found = yield from scores(
                    self._network, self._prefixes, work[:count], self._wanted, vocabulary=width, room=self._room
                )
                for name, sums in found.items():
                    self._deliver(name, sums)
