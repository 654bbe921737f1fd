"""From a suite's choice to a matcher: the default one at once, the others with their model, loaded from this machine."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ddx_local import models
from ddx_local.errors import UsageError
from ddx_local.evaluation.match import HIERARCHIES, Labels, Matcher
from ddx_local.evaluation.match_judge import Judge, Verdict
from ddx_local.evaluation.match_models import DXCHAIN_THRESHOLD, BertScore, Embedding, token_embedder
from ddx_local.evaluation.record import Record
from ddx_local.evaluation.suite import Match
from ddx_local.flow import Similarity
from ddx_local.home import expanded
from ddx_local.launch import open_all
from ddx_local.settings import Settings

Say = Callable[[str], None]


@asynccontextmanager
async def matcher(
    choice: Match, settings: Settings, record: Record, say: Say, opener: Callable[..., Any] | None = open_all
) -> AsyncIterator[Matcher]:
    """The matcher of a choice; a judge's engine is closed at the end, and its verdicts are kept in the record.

    Args:
        choice: What the suite says.
        settings: How a judge's engine is opened where the choice does not say.
        record: Verdicts from before, and where new ones go.
        say: Hears what happens.
        opener: Opens an engine; None opens none (`verify`), so that a verdict which is not recorded is an error.
    """
    if choice.kind == "judge":
        async with _judge(choice, settings, record, say, opener) as found:
            yield found
    elif choice.kind == "embedding":
        yield _embedding(choice, settings)
    elif choice.kind == "bertscore":
        if not choice.model:
            raise UsageError(
                "[match]: bertscore needs a `model`", "Name a card, or a folder with an encoder (roberta-large)."
            )
        yield BertScore(token_embedder(_folder(choice.model), choice.layer), choice.model, choice.threshold)
    else:
        yield Labels()


def _embedding(choice: Match, settings: Settings) -> Embedding:
    from ddx_local.clinical.similarity import Similarities, spelling_similarity

    model = choice.model or settings.embedding_model
    threshold = DXCHAIN_THRESHOLD if choice.threshold is None else choice.threshold
    answer: Any = Similarities(_folder(model))
    if choice.engine == "scripted":
        answer, model = spelling_similarity, "spelling"

    async def meaning(pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        values: Sequence[float] = await answer(Similarity(tuple(pairs)))
        return values

    return Embedding(meaning, model, threshold, choice.assignment)


def _folder(model: str) -> Path:
    path = expanded(model)
    return path if path.is_dir() else models.snapshot(model)


@asynccontextmanager
async def _judge(
    choice: Match, settings: Settings, record: Record, say: Say, opener: Callable[..., Any] | None
) -> AsyncIterator[Judge]:
    engine = choice.engine or settings.engine
    model = "scripted" if engine == "scripted" else choice.model or settings.model
    hierarchy = next(name for name in HIERARCHIES if name == choice.hierarchy)
    opened = None
    if opener is not None:
        here = settings.model_copy(update={"engine": engine, **({} if engine == "scripted" else {"model": model})})
        opened = await opener(here, embedding=False, say=say, store=None)
    engine_or_none: Any = opened.engine if opened else _Nobody()
    judge = Judge(engine_or_none, model, hierarchy, choice.seed, choice.repeat, choice.weigh)
    before = {pair: Verdict(*value) for pair, value in record.verdicts(judge.label).items()}
    judge.known |= before
    try:
        yield judge
    finally:
        fresh = {pair: v for pair, v in judge.known.items() if pair not in before}
        record.save_verdicts(judge.label, {pair: (v.outcome, v.probability, v.again) for pair, v in fresh.items()})
        if opened is not None:
            await opened.aclose()


class _Nobody:
    """Stands where no judge may be asked: every verdict has to be recorded."""

    async def generate(self, *_: Any) -> Any:
        raise UsageError(
            "the judge's verdicts are not all recorded", "Score again with the judge: `ddx-local bench rescore`."
        )


def reliability(found: Matcher) -> dict[str, Any] | None:
    """Of a judge: how many verdicts were read, and how often it agrees with itself."""
    return dict(found.reliability()) if isinstance(found, Judge) else None
