"""Another model for a role: who is asked what, at the same time; what is recorded, resumed and refused; the command line."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddx_local import jobs, launch
from ddx_local.case import Case, Differential
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.engines.protocol import Engine, OnCompletion
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import EngineError, EngineStartError, ModelError, ReplayMismatch, UsageError
from ddx_local.events import Asked, RunStarted, from_json, to_json
from ddx_local.flow import Ask, Flow, Similarity, Step, Weigh, ask_each, sizes, together, weigh
from ddx_local.launch import Opened, open_all
from ddx_local.methods.table import METHODS
from ddx_local.request import Completion, Request, Sampling
from ddx_local.result import schema
from ddx_local.roles import bound_to, chosen, name_of
from ddx_local.run import drive
from ddx_local.settings import Settings
from ddx_local.store import Store
from tests.command import Command, Done
from tests.toy import CASES, RATE, SAY, Toy, differential, said

CASE = Case("ann", "A 30-year-old woman has a fever of 39.1 C since Monday and a stiff neck.")


def quiet(line: str) -> None:
    pass


# --- names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "step", "name"),
    [
        ("aggregator", "dmoa/aggregate", "aggregator"),
        ("presenter 2", "dmoa/present", "presenter"),
        ("sample 35", "zero_shot/differential", "sample"),
        ("independent clinician", "counterfactual/stance", "independent clinician"),
        ("", "scot/panel", "panel"),
        ("type 2 expert", "x/y", "type 2 expert"),
    ],
)
def test_a_numbered_role_goes_by_its_name_and_a_question_without_a_role_by_its_step(
    role: str, step: str, name: str
) -> None:
    assert name_of(Ask(Step(step, str), {}, role)) == name


def test_what_is_bound_to_a_role_is_for_its_questions_alone() -> None:
    asks = [Ask(Step("a/b", str), {}, role) for role in ("presenter 1", "aggregator", "rebutter 1")]
    assert [bound_to(ask, {"presenter": "P", "aggregator": "A"}, "main") for ask in asks] == ["P", "A", "main"]
    assert [bound_to(ask, {}, "main") for ask in asks] == ["main"] * 3


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ({"agregator": "m"}, ("presenter", "aggregator"), "no role `agregator`: did you mean aggregator?"),
        ({"x": "m"}, ("presenter", "aggregator"), "known: aggregator, presenter"),
        ({"aggregator": "m"}, (), "has no roles that another model can answer for"),
        ({"aggregator": "  "}, ("aggregator",), "names no model"),
    ],
)
def test_a_role_that_the_method_does_not_have_is_an_error_with_the_nearest_names(
    given: dict[str, str], known: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        chosen("dmoa", known, given)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_settings_file_may_bind_roles_of_several_methods() -> None:
    given = {"aggregator": "a", "judge": "b"}
    assert chosen("moa", ("aggregator",), given, {"judge", "aggregator"}) == {"aggregator": "a"}
    with pytest.raises(UsageError, match="no role `juge`"):
        chosen("moa", ("aggregator",), {"juge": "b"}, {"judge", "aggregator"})


def test_the_methods_state_roles_that_their_questions_have() -> None:
    """Every question of a dry run is of a role that its method states: none is out of reach of `--role`."""
    for name in ("zero-shot", "best-of-n", "scot", "counterfactual", "auto", "moa", "dmoa"):
        method = METHODS[name]
        store = Store(None)
        opened = Opened(ScriptedEngine(by_policy("walk")), {Similarity: spelling_similarity})
        job = jobs.Job(method, method.options(), "scripted", "scripted", 1, {}, (CASE,))
        run_id = asyncio.run(jobs.start(job, opened, store, None, 1))
        asked = [event for event in store.events(run_id) if isinstance(event, Asked)]
        weighed = {"counterfactual/probability"}
        steps = [event for event in asked if event.step not in weighed]
        assert steps
        names = {name_of(Ask(Step(event.step, str), {}, event.role)) for event in steps}
        assert names <= set(method.roles), f"{name}: {sorted(names - set(method.roles))}"


# --- rounds -------------------------------------------------------------------------------------------------------------


class Meeting(ScriptedEngine):
    """Answers only when so many engines have been asked: who asks them one after another waits for ever."""

    def __init__(self, place: asyncio.Barrier, model: str) -> None:
        super().__init__(said, model=model)
        self.place = place

    async def generate(
        self, requests: Sequence[Request], on_completion: OnCompletion | None = None
    ) -> Sequence[Completion]:
        await self.place.wait()
        return await super().generate(requests, on_completion)


def mixed(case: Case) -> Flow[Differential]:
    roles = ("presenter 1", "aggregator", "presenter 2", "rebutter 1")
    both = yield from ask_each({role: Ask(SAY, {"case": case.text}, role) for role in roles})
    return differential(*both.values())


def one_case(toy: Toy, flow: Flow[Differential], main: Engine, **bound: Engine) -> Any:
    context = replace(toy.context(CASES[0], main), bound=bound)
    return asyncio.run(drive(flow, CASES[0], context))


def test_the_questions_of_a_round_go_to_the_engines_of_their_roles_at_the_same_time(tmp_path: Path) -> None:
    async def run() -> Any:
        place = asyncio.Barrier(3)
        engines = [Meeting(place, name) for name in ("main", "P", "A")]
        toy = Toy(tmp_path, cases=CASES[:1]).start()
        context = replace(toy.context(CASES[0], engines[0]), bound={"presenter": engines[1], "aggregator": engines[2]})
        answer = await asyncio.wait_for(drive(mixed(CASES[0]), CASES[0], context), 10)
        return answer, engines, toy

    answer, engines, toy = asyncio.run(run())
    assert [engine.batches for engine in engines] == [[1], [2], [1]]
    asked = {event.key[0]: event for event in toy.events() if isinstance(event, Asked)}
    assert {role: event.engine for role, event in asked.items()} == {
        "presenter 1": "P",
        "presenter 2": "P",
        "aggregator": "A",
        "rebutter 1": "main",
    }
    # Answers are given back by question, whoever answered first.
    assert [entry.diagnosis for entry in answer.entries] == [f"said {event.seed}" for event in asked.values()]


def test_who_answers_changes_neither_seeds_nor_prompts(tmp_path: Path) -> None:
    def digests(folder: Path, **bound: Engine) -> list[tuple[int, str]]:
        toy = Toy(folder, cases=CASES[:1]).start()
        one_case(toy, mixed(CASES[0]), ScriptedEngine(said), **bound)
        return [(event.seed, event.digest) for event in toy.events() if isinstance(event, Asked)]

    assert digests(tmp_path / "a") == digests(tmp_path / "b", presenter=ScriptedEngine(said, model="P"))


def test_room_is_measured_by_the_engine_that_will_answer(tmp_path: Path) -> None:
    def flow(case: Case) -> Flow[Differential]:
        asks = [Ask(SAY, {"case": case.text}, role) for role in ("aggregator", "other", "aggregator")]
        measured = yield from sizes(asks)
        return differential(*(str(size.context) for size in measured))

    small = ScriptedEngine(said, context=500, model="A")
    answer = one_case(Toy(tmp_path).start(), flow(CASES[0]), ScriptedEngine(said, context=9000), aggregator=small)
    assert [entry.diagnosis for entry in answer.entries] == ["500", "9000", "500"]


def test_probabilities_stay_with_the_main_model(tmp_path: Path) -> None:
    def flow(case: Case) -> Flow[Differential]:
        yield from weigh({"rate": Weigh(RATE, {"case": case.text}, ("flu", "gout"))})
        return differential("flu")

    main, other = ScriptedEngine(said), ScriptedEngine(said, model="other")
    one_case(Toy(tmp_path).start(), flow(CASES[0]), main, rate=other)
    assert len(main.scored) == 1
    assert other.scored == []


def test_branches_that_share_a_round_keep_their_own_engines(tmp_path: Path) -> None:
    def branch(case: Case, role: str) -> Flow[str]:
        got = yield from ask_each({role: Ask(SAY, {"case": case.text}, role)})
        return got[role]

    def flow(case: Case) -> Flow[Differential]:
        both = yield from together({role: branch(case, role) for role in ("aggregator", "presenter 1")})
        return differential(*both.values())

    main, other = ScriptedEngine(said), ScriptedEngine(said, model="A")
    one_case(Toy(tmp_path).start(), flow(CASES[0]), main, aggregator=other)
    assert (main.batches, other.batches) == ([1], [1])


def test_an_engine_that_dies_stops_the_others_of_its_round(tmp_path: Path) -> None:
    def dead(_: Request) -> str:
        raise EngineError("it died")

    slow = ScriptedEngine(said, delay=30)
    with pytest.raises(EngineError, match="it died"):
        one_case(Toy(tmp_path).start(), mixed(CASES[0]), slow, aggregator=ScriptedEngine(dead, model="A"))


# --- opening and closing ------------------------------------------------------------------------------------------------


async def test_each_model_is_opened_once_and_a_role_of_the_main_model_gets_the_main_engine() -> None:
    roles = {"aggregator": "a", "presenter": "b", "rebutter": "a", "summarizer": "scripted"}
    opened = await open_all(Settings(engine="scripted"), embedding=False, say=quiet, roles=roles)
    engines = opened.bound
    assert engines["aggregator"] is engines["rebutter"]
    assert engines["summarizer"] is opened.engine
    named = {role: engine.fingerprint["model"] for role, engine in engines.items()}
    assert named == {
        "aggregator": "scripted:a",
        "presenter": "scripted:b",
        "rebutter": "scripted:a",
        "summarizer": "scripted",
    }
    await opened.aclose()
    for engine in (opened.engine, *engines.values()):
        with pytest.raises(EngineError, match="closed"):
            await engine.generate([Request((), Sampling(max_tokens=4))])


async def test_closing_closes_all_also_where_one_fails_to() -> None:
    class Stuck(ScriptedEngine):
        async def aclose(self) -> None:
            raise EngineError("it does not end")

    engines = [ScriptedEngine(said), Stuck(said), ScriptedEngine(said)]
    opened = Opened(engines[0], {}, bound={"a": engines[1], "b": engines[2], "c": engines[2]})
    with pytest.raises(EngineError, match="does not end"):
        await opened.aclose()
    assert [engine.closed for engine in engines] == [True, False, True]


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Settings]]:
    """What would be opened as vLLM, in order; a model called `big` does not fit."""
    asked: list[Settings] = []
    engines: list[ScriptedEngine] = []

    async def open_it(settings: Settings, say: Any) -> Engine:
        say(settings.model)
        asked.append(settings)
        if settings.model == "llama-3.2-3b":
            raise EngineStartError("vLLM could not load `llama-3.2-3b` (cuda): No available memory", "Give it less.")
        engines.append(ScriptedEngine(said, model=settings.model))
        return engines[-1]

    monkeypatch.setattr(launch, "open_vllm", open_it)
    monkeypatch.setattr(launch, "_present", lambda name: None)  # noqa: ARG005
    yield asked
    if asked and asked[-1].model == "llama-3.2-3b":
        assert [engine.closed for engine in engines] == [True] * len(engines), "a model was left open"


async def test_models_side_by_side_share_the_memory(opening: list[Settings]) -> None:
    settings = Settings(gpu_memory_fraction=0.9, kv_cache_gib=3.0, probability_cache=False)
    roles = {"aggregator": "qwen3-4b", "presenter": "llama-3.2-1b", "rebutter": "qwen3-4b"}
    opened = await open_all(settings, embedding=False, say=quiet, roles=roles)
    assert [(item.model, round(item.gpu_memory_fraction, 6), item.kv_cache_gib) for item in opening] == [
        ("smollm2-135m", 0.3, 1.0),
        ("qwen3-4b", 0.3, 1.0),
        ("llama-3.2-1b", 0.3, 1.0),
    ]
    await opened.aclose()


async def test_a_role_s_model_needs_no_engine_for_probabilities(opening: list[Settings]) -> None:
    settings = Settings(probability_dtype="float32", probability_cache=False)
    opened = await open_all(settings, embedding=False, say=quiet, roles={"aggregator": "qwen3-4b"})
    found = [(item.model, item.dtype, round(item.gpu_memory_fraction, 6)) for item in opening]
    assert found == [
        ("smollm2-135m", "auto", 0.225),
        ("smollm2-135m", "float32", 0.225),
        ("qwen3-4b", "auto", 0.45),
    ]
    await opened.aclose()


async def test_without_roles_the_main_model_has_all_the_memory(opening: list[Settings]) -> None:
    opened = await open_all(Settings(), embedding=False, say=quiet, roles={"aggregator": "smollm2-135m"})
    assert [item.gpu_memory_fraction for item in opening] == [0.9]
    assert opened.bound["aggregator"] is opened.engine
    await opened.aclose()


async def test_a_second_model_that_does_not_fit_is_an_error_that_names_both(opening: list[Settings]) -> None:
    with pytest.raises(EngineStartError) as caught:
        await open_all(Settings(), embedding=False, say=quiet, roles={"aggregator": "llama-3.2-3b"})
    assert "`smollm2-135m` and `llama-3.2-3b` (role `aggregator`) do not run side by side" in caught.value.message
    assert "No available memory" in caught.value.message
    assert "--role" in caught.value.hint
    assert len(opening) == 2


async def test_a_role_s_model_is_looked_for_before_the_main_one_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DDX_LOCAL_MODELS", str(tmp_path))
    for name, said_ in (
        ("quen3-4b", "qwen3-4b"),
        ("qwen3-4b", "not in the store"),
        ("all-minilm-l6-v2", "not for chat"),
    ):
        lines: list[str] = []
        with pytest.raises(ModelError, match=said_):
            await open_all(Settings(), embedding=False, say=lines.append, roles={"aggregator": name})
        assert lines == []


# --- whole runs ---------------------------------------------------------------------------------------------------------


def opened_with(*, main: ScriptedEngine | None = None, **models: str) -> Opened:
    bound = {role: ScriptedEngine(by_policy("walk"), model=model) for role, model in models.items()}
    return Opened(main or ScriptedEngine(by_policy("walk")), {Similarity: spelling_similarity}, bound=bound)


def moa_job() -> jobs.Job:
    method = METHODS["moa"]
    return jobs.Job(method, method.options(), "scripted", "scripted", 0, {"roles": {"aggregator": "x"}}, (CASE,))


def test_a_run_records_every_engine_and_its_document_says_who_answered_for_which_role() -> None:
    store = Store(None)
    run_id = asyncio.run(jobs.start(moa_job(), opened_with(aggregator="X"), store, None, 1))
    header, _ = jobs.recorded(store, run_id)
    assert {role: found["model"] for role, found in header.roles.items()} == {"aggregator": "X"}
    (document,) = jobs.documents(store, run_id)
    jsonschema.validate(document, schema())
    assert document["model"]["roles"]["aggregator"]["name"] == "X"
    assert document["model"]["roles"]["aggregator"]["fingerprint"]["context"] == str(1 << 20)
    engines = {event.role.split()[0]: event.engine for event in store.events(run_id) if isinstance(event, Asked)}
    assert engines == {"proposer": "scripted", "aggregator": "X"}
    asyncio.run(jobs.replay(run_id, store))


def cut_short(store: Store) -> str:
    """A run whose aggregator died; its id."""

    def dead(_: Request) -> str:
        raise EngineError("it died")

    opened = Opened(ScriptedEngine(by_policy("walk")), {}, bound={"aggregator": ScriptedEngine(dead, model="X")})
    with pytest.raises(EngineError):
        asyncio.run(jobs.start(moa_job(), opened, store, None, 1))
    return store.runs()[0].run_id


def test_a_resume_asks_the_same_engines_for_what_is_owed_and_refuses_others() -> None:
    store = Store(None)
    run_id = cut_short(store)
    for wrong, told in (
        (opened_with(), "role `aggregator` differs"),
        (opened_with(aggregator="Y"), "role `aggregator` differs from the recorded one in model"),
        (opened_with(aggregator="X", proposer="Y"), "role `proposer` differs"),
    ):
        with pytest.raises(ReplayMismatch, match=told):
            asyncio.run(jobs.resume(run_id, wrong, store, None, 1))
    right = opened_with(aggregator="X")
    asyncio.run(jobs.resume(run_id, right, store, None, 1))
    other = right.bound["aggregator"]
    assert isinstance(other, ScriptedEngine)
    assert isinstance(right.engine, ScriptedEngine)
    assert (right.engine.requests, len(other.requests)) == ([], 1)
    whole = Store(None)
    undisturbed = asyncio.run(jobs.start(moa_job(), opened_with(aggregator="X"), whole, None, 1))
    one, two = jobs.documents(store, run_id)[0], jobs.documents(whole, undisturbed)[0]
    assert one["differential"] == two["differential"]
    assert one["model"] == two["model"]


def test_a_run_of_a_version_without_roles_is_still_read() -> None:
    store = Store(None)
    data = to_json(jobs.recorded(store, asyncio.run(jobs.start(moa_job(), opened_with(), store, None, 1)))[0])
    del data["roles"]
    header = from_json(data)
    assert isinstance(header, RunStarted)
    assert header.roles == {}


# --- the command line ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ann.txt"
    path.write_text(CASE.text)
    return path


def diagnose(command: Command, file: Path, *words: str, **env: str) -> Done:
    return command.run("diagnose", file, "--engine", "scripted", "--json", "-", "--quiet", *words, env=env)


def test_the_flag_binds_a_role_the_store_keeps_it_and_the_settings_file_does_the_same(
    command: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDX_LOCAL_STORE", str(tmp_path / "runs.sqlite"))
    done = diagnose(command, file, "--method", "moa", "--role", "aggregator=qwen3-4b", "--role", "proposer = other")
    assert done.code == 0, done.err
    names = {role: found["name"] for role, found in done.json["model"]["roles"].items()}
    assert names == {"aggregator": "scripted:qwen3-4b", "proposer": "scripted:other"}
    run_id = done.json["run_id"]
    header, _ = jobs.recorded(Store(tmp_path / "runs.sqlite"), run_id)
    assert header.settings["roles"] == {"aggregator": "qwen3-4b", "proposer": "other"}
    assert command.run("runs", "replay", run_id).code == 0
    assert "aggregator: scripted:qwen3-4b" in command.run("runs", "show", run_id).out
    config = tmp_path / "config.toml"
    config.write_text('[roles]\naggregator = "qwen3-4b"\njudge = "other"\n')
    done = diagnose(command, file, "--method", "moa", "--no-store", DDX_LOCAL_CONFIG=str(config))
    assert list(done.json["model"]["roles"]) == ["aggregator"]
    done = diagnose(command, file, "--method", "zero-shot", "--no-store", DDX_LOCAL_CONFIG=str(config))
    assert done.json["model"]["roles"] == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--method", "moa", "--role", "agregator=x"), "no role `agregator`: did you mean aggregator?"),
        (("--method", "moa", "--role", "judge=x"), "method `moa` has no role `judge`"),
        (("--method", "moa", "--role", "aggregator"), "write it as ROLE=MODEL"),
        (("--method", "moa", "--role", "aggregator="), "names no model"),
        (("--method", "moa", "--role", "aggregator=a", "--role", "aggregator=b"), "--role aggregator: given twice"),
    ],
)
def test_a_wrong_role_ends_in_one_paragraph(command: Command, file: Path, words: tuple[str, ...], told: str) -> None:
    done = diagnose(command, file, "--no-store", *words)
    assert done.code == 2
    assert told in done.paragraph
    assert done.out == ""


def test_the_environment_binds_roles_as_json(command: Command, file: Path) -> None:
    roles = json.dumps({"aggregator": "x"})
    done = diagnose(command, file, "--method", "moa", "--no-store", DDX_LOCAL_ROLES=roles)
    assert done.json["model"]["roles"]["aggregator"]["name"] == "scripted:x"
