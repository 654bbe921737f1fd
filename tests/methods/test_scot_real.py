"""SCoT with real weights in the real engine: one case from beginning to end, and once more from its record."""

import pytest
import pytest_asyncio

from ddx_local import jobs, options
from ddx_local.case import Case
from ddx_local.events import Answered
from ddx_local.launch import Opened
from ddx_local.result import Json
from ddx_local.store import Store
from tests.engines.contract import CASES

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

NAME = "sudden-painful-toe"
TEXT = (CASES / f"{NAME}.txt").read_text("utf-8")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def run(opened: Opened) -> tuple[Store, str]:
    store, method = Store(None), jobs.method("scot")
    chosen = options.parse(method.options, {"agents": 3, "k": 3, "most": 4}, "scot")
    job = jobs.Job(method, chosen, "smollm2-135m", "vllm", 2, {}, (Case(NAME, TEXT),))
    return store, await jobs.start(job, opened, store, None, 1)


@pytest.fixture(scope="module")
def document(run: tuple[Store, str]) -> Json:
    (found,) = jobs.documents(*run)
    return found


async def test_a_case_is_finished_in_at_most_eleven_batches(document: Json) -> None:
    assert document["status"] == "finished", document["error"]
    assert document["case_id"] == NAME
    assert len(document["panel"]) == 3
    assert 9 <= document["totals"]["batches"] == len(document["rounds"]) <= 11
    assert document["totals"]["calls"] in (25, 26, 27)  # panel, 8 rounds of 3, and up to two merge questions
    assert document["totals"]["parse_failures"] == document["totals"]["length_stops"] == 0


async def test_the_rounds_are_named_after_their_steps_in_the_papers_order(document: Json) -> None:
    names = [item["name"] for item in document["rounds"] if item["name"] != "scot/merge"]
    steps = "panel relevance triage differential positions exchange final vote cant_miss".split()
    assert names == [f"scot/{step}" for step in steps]
    assert all(item["generated_tokens"] > 0 for item in document["rounds"])
    assert all(item["prompt_tokens_computed"] < item["prompt_tokens"] for item in document["rounds"][1:])


async def test_every_quote_stands_in_the_case_where_it_says(document: Json) -> None:
    quoted = [item for entry in document["differential"] for item in entry["evidence"]]
    assert quoted
    quoted += [item for item in (*document["cant_miss"], *document["triage"]) if item["quote"] is not None]
    for item in quoted:
        assert TEXT[item["start"] : item["end"]] == item["quote"]
        assert TEXT.find(item["quote"]) == item["start"]


async def test_the_differential_is_ranked_and_every_seat_voted(document: Json) -> None:
    entries = document["differential"]
    assert [entry["rank"] for entry in entries] == list(range(1, len(entries) + 1))
    assert 1 <= len(entries) <= 3
    scores = [entry["score"] for entry in entries]
    assert scores == sorted(scores, reverse=True)
    assert all(set(entry["votes"]) <= set(document["panel"]) for entry in entries)
    assert any(entry["votes"] for entry in entries)


async def test_replayed_without_an_engine_it_is_the_same(run: tuple[Store, str], document: Json) -> None:
    store, run_id = run
    before = len(store.events(run_id))
    assert await jobs.replay(run_id, store) == (document,)
    assert len(store.events(run_id)) == before
    assert any(isinstance(event, Answered) and event.value for event in store.events(run_id))  # consultations too
