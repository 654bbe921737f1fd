"""The engine with kept probabilities: the contract, never a stale score, each score computed once, nobody left waiting."""

import asyncio
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as searching
from hypothesis import strategies as st

from ddx_local import jobs, options
from ddx_local.case import Case
from ddx_local.engines.cached import CachedEngine, keys_of
from ddx_local.engines.protocol import Engine, Tokens
from ddx_local.engines.salt import SALT
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import ContextLengthExceeded, EngineError, StoreError
from ddx_local.events import RunFinished
from ddx_local.launch import Opened, open_all
from ddx_local.request import Loglikelihood, LoglikelihoodRequest, Message
from ddx_local.score_cache import ScoreCache
from ddx_local.settings import Settings
from ddx_local.store import Store
from tests.engines.contract import EngineContract, Opener, weighing
from tests.toy import CANARY, CASES, Toy, said

ROOT = Path(__file__).resolve().parents[2]


class TestContract(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return CachedEngine(ScriptedEngine(by_policy("walk"), delay=0.01), ScoreCache(None))

    @pytest.fixture
    def another(self) -> Opener:
        async def opened() -> Engine:
            return CachedEngine(ScriptedEngine(by_policy("walk"), delay=0.1), ScoreCache(None))

        return opened


class Slow(ScriptedEngine):
    """Scores when `gate` opens; fails while `error` is set. `asked` holds the labels of each call."""

    def __init__(self, fingerprint: Mapping[str, str] | None = None) -> None:
        super().__init__(said, score=lambda request, label: -float(len(f"{request.messages}{label}")))
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[list[tuple[str, ...]]] = []
        self.error = ""
        self._print = dict(fingerprint or super().fingerprint)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return self._print

    async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
        self.asked.append([request.labels for request in requests])
        await self.gate.wait()
        if self.error:
            raise EngineError(self.error)
        return await super().loglikelihood(requests)


def labels(scores: Sequence[tuple[Loglikelihood, ...]]) -> list[list[str]]:
    return [[score.label for score in row] for row in scores]


# --- never stale --------------------------------------------------------------------------------------------------------

# Few letters, so that parts can run into each other and whole questions come again.
SHORT = st.text("ab \n", max_size=3)
PRINTS = st.fixed_dictionaries(
    {"model": st.sampled_from(["m", "n"])},
    optional=dict.fromkeys(("weights_sha256", "dtype", "chat_template_sha256", "engine_version", "context"), SHORT),
)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), SHORT), max_size=2).map(tuple)
QUESTIONS = st.tuples(PRINTS, MESSAGES, SHORT, SHORT)
Question = tuple[Mapping[str, str], tuple[Message, ...], str, str]


@st.composite
def two_questions(draw: st.DrawFn) -> tuple[Question, Question]:
    """The same, or different in some of the four parts."""
    one, other = draw(QUESTIONS), draw(QUESTIONS)
    taken = draw(st.sets(st.integers(0, 3)))
    pairs = zip(one, other, strict=True)
    mixed: Any = tuple(theirs if part in taken else ours for part, (ours, theirs) in enumerate(pairs))
    return one, mixed


@searching(max_examples=200, deadline=None)
@given(two_questions())
def test_a_score_comes_back_for_the_same_question_and_for_no_other(both: tuple[Question, Question]) -> None:
    async def asked_twice() -> bool:
        cache = ScoreCache(None)
        for fingerprint, messages, prefix, label in both:
            engine = Slow(fingerprint)
            request = LoglikelihoodRequest(messages, prefix, (label,))
            found = await CachedEngine(engine, cache).loglikelihood([request])
            assert found == await engine.loglikelihood([request])
        return len(engine.asked) == 2

    one, other = both
    assert asyncio.run(asked_twice()) == (one != other)


IDS = st.lists(st.integers(0, 12), max_size=3).map(tuple)


@example([({}, (1, 2), (3,)), ({}, (12,), (3,)), ({}, (1,), (2, 3)), ({}, (), (1, 2, 3)), ({}, (1, 2, 3), ())])
@example([({"a": "1"}, (), ()), ({"a": "1", "b": ""}, (), ()), ({"a": '1", "b": "'}, (), ()), ({"b": "1"}, (), ())])
@given(st.lists(st.tuples(PRINTS, IDS, IDS), min_size=2, max_size=4))
def test_a_key_is_a_function_of_fingerprint_prompt_and_label_and_differs_where_one_of_them_does(
    parts: list[tuple[dict[str, str], tuple[int, ...], tuple[int, ...]]],
) -> None:
    keys = [keys_of(fingerprint, [(prompt, (label,))])[0][0] for fingerprint, prompt, label in parts]
    for one, key in zip(parts, keys, strict=True):
        assert len(key) == 32
        for other, another in zip(parts, keys, strict=True):
            assert (key == another) == (one == other)


def test_the_order_of_a_fingerprint_s_entries_does_not_matter() -> None:
    tokens: list[Tokens] = [((1, 2), ((3,), (4,)))]
    assert keys_of({"model": "m", "dtype": "d"}, tokens) == keys_of({"dtype": "d", "model": "m"}, tokens)


async def test_what_one_api_key_asked_is_no_hit_for_another_and_is_one_for_itself() -> None:
    engine = Slow()
    cached = CachedEngine(engine, ScoreCache(None))

    async def by(salt: str) -> None:
        SALT.set(salt)
        await cached.loglikelihood([weighing("a case", "gout")])

    for salt in ("", "a" * 32, "b" * 32, "a" * 32, ""):
        await asyncio.create_task(by(salt))
    assert len(engine.asked) == 3


async def test_the_scripted_engine_s_tokens_are_those_that_it_scores() -> None:
    engine = ScriptedEngine(said)
    requests = [weighing("A red toe.", "gout", "septic arthritis"), weighing("Häufig 漢字", "é")]
    tokens = await engine.tokens(requests)
    scores = await engine.loglikelihood(requests)
    for (_, ids), row in zip(tokens, scores, strict=True):
        assert [len(label) for label in ids] == [score.tokens for score in row]
    moved = replace(requests[0], messages=(Message("user", "Answer briefly.A red toe."),))
    assert (await engine.tokens([moved]))[0] != tokens[0]
    assert engine.scored == requests, "and computes nothing for them"


# --- what reaches the engine --------------------------------------------------------------------------------------------


async def test_only_what_is_missing_reaches_the_engine_in_one_call_and_the_order_is_kept() -> None:
    engine = Slow()
    cached = CachedEngine(engine, ScoreCache(None))
    await cached.loglikelihood([weighing("toe", "b", "d"), weighing("cough", "x")])
    requests = [
        weighing("toe", "a", "b", "c", "d"),
        weighing("cough", "x"),
        weighing("rash"),
        weighing("fever", "y", "x"),
    ]
    found = await cached.loglikelihood(requests)
    assert engine.asked == [[(" b", " d"), (" x",)], [(" a", " c"), (" y", " x")]]
    assert found == await ScriptedEngine(said, score=engine.score).loglikelihood(requests)
    assert labels(found) == [[" a", " b", " c", " d"], [" x"], [], [" y", " x"]]
    assert [request.what for request in engine.scored] == ["contract"] * 4
    assert cached.counts == {"scores": 10, "scores_computed": 7, "scoring_calls": 2}


async def test_the_same_label_twice_in_one_call_is_asked_once() -> None:
    engine = Slow()
    cached = CachedEngine(engine, ScoreCache(None))
    found = await cached.loglikelihood([weighing("toe", "a", "b", "a"), weighing("toe", "b"), weighing("cough", "a")])
    assert engine.asked == [[(" a", " b"), (" a",)]]
    assert labels(found) == [[" a", " b", " a"], [" b"], [" a"]]
    assert found[0][0] == found[0][2] != found[2][0]


async def test_questions_in_flight_are_asked_once_whoever_asks_them() -> None:
    engine = Slow()
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    calls = [asyncio.ensure_future(cached.loglikelihood([weighing("toe", "a", "b")])) for _ in range(5)]
    more = asyncio.ensure_future(cached.loglikelihood([weighing("toe", "b", "c", "a")]))
    await asyncio.sleep(0.01)
    assert engine.asked == [[(" a", " b")], [(" c",)]]
    engine.gate.set()
    results = await asyncio.gather(*calls)
    assert all(result == results[0] for result in results)
    assert labels(await more) == [[" b", " c", " a"]]
    assert len(engine.asked) == 2
    assert cached._asking == {}


async def test_a_number_format_s_noise_is_kept_with_the_score() -> None:
    class Noisy(ScriptedEngine):
        async def loglikelihood(self, requests: Sequence[LoglikelihoodRequest]) -> Sequence[tuple[Loglikelihood, ...]]:
            return [tuple(replace(score, noise=0.3) for score in row) for row in await super().loglikelihood(requests)]

    cached = CachedEngine(Noisy(said), ScoreCache(None))
    first, again = [await cached.loglikelihood([weighing("toe", "a")]) for _ in range(2)]
    assert first == again
    assert again[0][0].noise == 0.3


async def test_what_is_no_number_is_given_back_and_not_kept() -> None:
    engine = ScriptedEngine(said, score=lambda *_: math.nan)
    cached = CachedEngine(engine, ScoreCache(None))
    for times in (1, 2):
        ((score,),) = await cached.loglikelihood([weighing("toe", "a")])
        assert math.isnan(score.logprob)
        assert len(engine.scored) == times


# --- failures and cancellation ------------------------------------------------------------------------------------------


async def in_flight(cached: CachedEngine, *names: str) -> "asyncio.Task[Sequence[tuple[Loglikelihood, ...]]]":
    task = asyncio.ensure_future(cached.loglikelihood([weighing("toe", *names)]))
    await asyncio.sleep(0.01)
    return task


async def test_who_waits_for_a_cancelled_caller_asks_for_itself() -> None:
    engine = Slow()
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    first, second, third = [await in_flight(cached, "a", "b") for _ in range(3)]
    assert len(engine.asked) == 1
    first.cancel()
    await asyncio.sleep(0.01)
    assert first.cancelled()
    assert len(engine.asked) == 2, "one of the two who waited; the other waits for it"
    engine.gate.set()
    for task in (second, third):
        assert labels(await asyncio.wait_for(task, 5)) == [[" a", " b"]]
    assert len(engine.asked) == 2
    assert cached._asking == {}


async def test_a_caller_that_gives_up_waiting_disturbs_nobody() -> None:
    engine = Slow()
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    first, second, third = [await in_flight(cached, "a") for _ in range(3)]
    second.cancel()
    await asyncio.sleep(0.01)
    assert second.cancelled()
    engine.gate.set()
    for task in (first, third):
        assert labels(await asyncio.wait_for(task, 5)) == [[" a"]]
    assert len(engine.asked) == 1


async def test_a_failed_question_is_not_kept_and_each_caller_gets_an_error_of_its_own() -> None:
    engine = Slow()
    engine.error = "it died"
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    tasks = [await in_flight(cached, "a") for _ in range(3)]
    engine.gate.set()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert [str(result) for result in results] == ["it died"] * 3
    assert len({id(result) for result in results}) == 3
    assert cached._asking == {}


async def test_an_engine_that_recovers_is_asked_again() -> None:
    engine = Slow()
    engine.error = "dead for a moment"
    cached = CachedEngine(engine, ScoreCache(None))
    with pytest.raises(EngineError):
        await cached.loglikelihood([weighing("toe", "a")])
    engine.error = ""
    assert labels(await cached.loglikelihood([weighing("toe", "a")])) == [[" a"]]


async def test_a_label_that_is_too_long_fails_its_own_caller_alone() -> None:
    engine = Slow()
    engine.context = 100
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    first = await in_flight(cached, "a", "much too long " * 20)
    second = await in_flight(cached, "b", "a")
    engine.gate.set()
    with pytest.raises(ContextLengthExceeded):
        await first
    assert labels(await asyncio.wait_for(second, 5)) == [[" b", " a"]]
    assert engine.asked[1:] == [[(" b",)], [(" a",)]]


async def test_closing_leaves_nobody_waiting_and_a_closed_engine_gives_nothing_from_the_cache() -> None:
    engine = Slow()
    cached = CachedEngine(engine, ScoreCache(None))
    await cached.loglikelihood([weighing("toe", "kept")])
    engine.gate.clear()
    tasks = [await in_flight(cached, "a") for _ in range(3)]
    await cached.aclose()
    engine.gate.set()
    for task in tasks:
        with pytest.raises(EngineError, match="closed"):
            await asyncio.wait_for(task, 5)
    with pytest.raises(EngineError, match="closed"):
        await cached.loglikelihood([weighing("toe", "kept")])


async def test_callers_on_two_event_loops_do_not_wait_for_each_other() -> None:
    engine = Slow()
    engine.gate.clear()
    cached = CachedEngine(engine, ScoreCache(None))
    first = await in_flight(cached, "a")

    async def elsewhere() -> Sequence[tuple[Loglikelihood, ...]]:
        engine.gate = asyncio.Event()
        engine.gate.set()
        return await cached.loglikelihood([weighing("toe", "a")])

    gate = engine.gate
    found = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    gate.set()
    assert found == await asyncio.wait_for(first, 5)
    assert len(engine.asked) == 2
    assert cached._asking == {}


# --- the file -----------------------------------------------------------------------------------------------------------


async def test_two_engines_share_a_file_and_the_second_is_not_asked_at_all(tmp_path: Path) -> None:
    requests = [weighing("toe", "a", "b"), weighing("cough", "c")]
    first, second = [
        (engine, CachedEngine(engine, ScoreCache(tmp_path / "scores.sqlite")))
        for engine in (ScriptedEngine(said), ScriptedEngine(said))
    ]
    assert await first[1].loglikelihood(requests) == await second[1].loglikelihood(requests)
    assert (len(first[0].scored), second[0].scored) == (2, [])
    for _, cached in (first, second):
        await cached.aclose()
    assert ScoreCache(tmp_path / "scores.sqlite").stats().hits == 3


OTHER_PROCESS = """
import asyncio, sys
from pathlib import Path
from ddx_local.engines.cached import CachedEngine
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.request import LoglikelihoodRequest, Message
from ddx_local.score_cache import ScoreCache
engine = ScriptedEngine(str)
cached = CachedEngine(engine, ScoreCache(Path(sys.argv[1])))
requests = [LoglikelihoodRequest((Message("user", text),), "It is", (" gout", " flu")) for text in ("toe", "cough")]
asyncio.run(cached.loglikelihood(requests))
print(len(engine.scored))
"""


def test_what_one_process_computed_another_is_not_asked_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "scores.sqlite")]
    said_ = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said_ == ["2\n", "0\n"]


def test_the_second_run_of_the_same_cases_sends_no_scoring_call_and_gives_the_same(tmp_path: Path) -> None:
    results, scored = [], []
    for _ in range(2):
        engine = ScriptedEngine(said)
        cached = CachedEngine(engine, ScoreCache(tmp_path / "scores.sqlite"))
        results.append(Toy(tmp_path).start().drive(cached, at_once=3))
        scored.append(len(engine.scored))
        asyncio.run(cached.aclose())
    assert results[0] == results[1]
    assert scored == [len(CASES), 0]


def test_no_word_of_the_case_is_in_the_file(tmp_path: Path) -> None:
    cached = CachedEngine(ScriptedEngine(said), ScoreCache(tmp_path / "kept" / "scores.sqlite"))
    Toy(tmp_path).start().drive(cached)
    assert cached._cache.stats().entries == 6
    found = b"".join(file.read_bytes() for file in (tmp_path / "kept").iterdir())
    assert b"scripted" in found, "the test looks in the wrong place"
    for word in (CANARY, "fever", "gout", "flu"):
        assert word.encode() not in found


async def test_a_damaged_cache_is_an_error_and_no_score(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path / "scores.sqlite")
    cached = CachedEngine(ScriptedEngine(said), cache)
    await cached.loglikelihood([weighing("toe", "a")])
    cache._connection.execute("UPDATE scores SET logprob = -0.001")
    with pytest.raises(StoreError, match="damaged"):
        await cached.loglikelihood([weighing("toe", "a")])


async def test_on_a_full_disk_the_scores_are_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = ScoreCache(tmp_path / "scores.sqlite")
    pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
    cache._connection.execute(f"PRAGMA max_page_count = {pages}")
    engine = ScriptedEngine(said)
    cached = CachedEngine(engine, cache)
    request = weighing("toe", *(f"label {number}" for number in range(300)))
    for _ in range(2):
        assert await cached.loglikelihood([request]) == await ScriptedEngine(said).loglikelihood([request])
    assert len(engine.scored) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- as runs open it ----------------------------------------------------------------------------------------------------


async def opened(store: Path | None, *, cache: bool = True) -> Opened:
    settings = Settings(engine="scripted", probability_cache=cache)
    return await open_all(settings, embedding=True, say=lambda _: None, store=store)


async def test_an_engine_is_opened_behind_the_cache_beside_the_run_store(tmp_path: Path) -> None:
    found = await opened(tmp_path / "my runs.sqlite")
    assert isinstance(found.engine, CachedEngine)
    await found.engine.loglikelihood([weighing("toe", "a")])
    assert found.counts() == {"scores": 1, "scores_computed": 1, "scoring_calls": 1}
    await found.engine.aclose()
    assert [file.name for file in tmp_path.iterdir()] == ["scores.sqlite"]


async def test_without_a_store_the_cache_is_in_memory_and_it_can_be_turned_off(tmp_path: Path) -> None:
    found = await opened(None)
    assert isinstance(found.engine, CachedEngine)
    assert found.engine._cache.path is None
    off = await opened(tmp_path / "runs.sqlite", cache=False)
    assert isinstance(off.engine, ScriptedEngine)
    assert off.counts() == {}
    assert list(tmp_path.iterdir()) == []


async def test_a_recorded_run_says_how_many_scores_reached_the_engine(tmp_path: Path) -> None:
    method = jobs.method("counterfactual")
    case = Case("ann", "Ann, 54, has had a swollen red toe since yesterday. She has a fever of 38.5. She drinks wine.")
    chosen = options.parse(method.options, {}, method.name)
    job = jobs.Job(method, chosen, "scripted", "scripted", 0, {}, (case,))
    store = Store(tmp_path / "runs.sqlite")
    counts = []
    for _ in range(2):
        found = await opened(store.path)
        run_id = await jobs.start(job, found, store, None, 1)
        await found.engine.aclose()
        counts += [dict(event.counts) for event in store.events(run_id) if isinstance(event, RunFinished)]
    first, second = counts
    assert 0 < first["scoring_calls"] < first["scores_computed"] <= first["scores"]
    assert second == {"scores": first["scores"], "scores_computed": 0, "scoring_calls": 0}
