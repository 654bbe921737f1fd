"""`methods show`: what a method says of itself, read from its module and its options, and what it costs."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from ddx_local import jobs
from ddx_local.case import Case
from ddx_local.cli.forecast import costs, example
from ddx_local.cli.method_about import about, options_about, read
from ddx_local.engines.scripted import ScriptedEngine, by_policy
from ddx_local.errors import CaseError
from ddx_local.launch import Opened
from ddx_local.methods.table import METHODS
from ddx_local.store import Store
from tests.command import Command, Done

DOC = """A method: it does this.

Source: "A paper", section 4
and its appendix.

The paper says / we do:
- five agents / as many,
  or fewer
- at most 3 batches
- the authors' program asks 9 times / 4 times

Differs from the authors' program:
- it cuts / we
  condense
- it sleeps

Where nothing fits, nothing is asked.
"""


def test_a_docstring_is_read_whole() -> None:
    found = read(DOC)
    assert found.source == '"A paper", section 4 and its appendix.'
    assert found.paper == (("five agents", "as many, or fewer"), ("", "at most 3 batches"))
    assert found.program == ("the authors' program asks 9 times / 4 times", "it cuts / we condense", "it sleeps")
    assert found.remarks == ("Where nothing fits, nothing is asked.",)


@pytest.mark.parametrize(
    ("paragraph", "told"),
    [
        ("Differs from the authors' program: none\nis published.", "none is published."),
        ("Differs from the authors' prompts: there\none speaks.", "there one speaks."),
        ("Differs from a program: there one speaks.", "Differs from a program: there one speaks."),
        (
            "Differs from the authors' program, which\nsleeps.",
            "Differs from the authors' program, which sleeps.",
        ),
    ],
)
def test_a_difference_from_the_program_may_be_prose(paragraph: str, told: str) -> None:
    assert read(f"A method.\n\n{paragraph}\n").program == (told,)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_how_it_differs_and_explains_every_option(name: str) -> None:
    found = about(METHODS[name])
    assert found.source
    assert found.paper
    for option, one in options_about(METHODS[name]).items():
        assert one.meaning, option
        assert one.type, option
        json.dumps(one.default)


@dataclass(frozen=True)
class Made:
    """Options.

    Args:
        share: A share,
            in [0, 1].
        which: Which.
        without: What not.
        base: A file.
    """

    share: float = 0.5
    which: Literal["a", "b"] = "a"
    without: tuple[str, ...] = ()
    base: str | None = None


def test_types_are_told_in_words() -> None:
    from dataclasses import replace

    found = options_about(replace(METHODS["zero-shot"], options=Made))
    assert {name: one.type for name, one in found.items()} == {
        "share": "number",
        "which": "one of a, b",
        "without": "names with commas between them",
        "base": "text, or none",
    }
    assert found["share"].meaning == "A share, in [0, 1]."
    assert found["without"].default == []


# --- cost ---------------------------------------------------------------------------------------------------------------


def job(name: str, *cases: Case) -> jobs.Job:
    method = METHODS[name]
    return jobs.Job(method, method.options(), "scripted", "scripted", 0, {}, cases or (example(),))


def test_the_cost_bounds_what_a_run_costs() -> None:
    (cost,) = costs(job("dmoa"))
    assert cost["case"] == "example"
    assert cost["calls"]["least"] == 13
    assert cost["batches"]["least"] == 4
    store = Store(None)
    run_id = asyncio.run(jobs.start(job("dmoa"), Opened(ScriptedEngine(by_policy("walk")), {}), store, None, 1))
    (document,) = jobs.documents(store, run_id)
    for name, total in (("calls", "calls"), ("batches", "batches"), ("answer_bytes", "generated_tokens")):
        assert cost[name]["least"] <= document["totals"][total] <= cost[name]["most"], name
    assert cost["tokens"]["most"] == (cost["prompt_bytes"]["most"] + cost["answer_bytes"]["most"]) // 4


@pytest.mark.parametrize(
    ("name", "calls", "batches"), [("auto", 7, 2), ("mac", 5, 2), ("medagents", 19, 6), ("dual-inf", 7, 4)]
)
def test_the_least_is_that_of_agents_who_agree_at_once(name: str, calls: int, batches: int) -> None:
    (cost,) = costs(job(name))
    assert (cost["calls"]["least"], cost["batches"]["least"]) == (calls, batches)


def test_a_longer_case_costs_more() -> None:
    short, long = costs(job("zero-shot", Case("a", example().text), Case("b", example().text * 3)))
    assert (short["case"], long["case"]) == ("a", "b")
    assert long["tokens"]["least"] > short["tokens"]["least"]


def test_a_dry_run_that_fails_is_an_error_and_no_low_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    from ddx_local.cli import forecast

    monkeypatch.setattr(forecast, "by_policy", lambda policy: lambda request: "")  # noqa: ARG005
    with pytest.raises(CaseError, match="dry run of case `example`: step `zero_shot/differential`"):
        costs(job("zero-shot"))


# --- the command line ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


def shown(command: Command, *words: Any) -> Done:
    done = command.run("methods", "show", *words)
    assert done.code == 0, done.err
    assert done.err == ""
    return done


def test_a_method_is_shown_with_its_cost_options_roles_and_differences(command: Command) -> None:
    text = shown(command, "dmoa").out
    for part in (
        "\nSource: A Structured Debate-Mixture-of-Agents",
        "\nRounds:\n  present: ",
        "  example: 13 .. ",
        " depth 4 .. ",
        "\n  rebutter = on  (on or off) off leaves out",
        "\nRoles (--role ROLE=MODEL):\n  presenter, rebutter, aggregator, summarizer, physician\n",
        "\n  - a reward model, which didn't help / left out",
        "\nDiffers from the authors' program:\n  - none is published.",
    ):
        assert part in text, part


def test_the_same_as_json_for_a_case_of_one_s_own(command: Command, tmp_path: Path) -> None:
    case = tmp_path / "fever.txt"
    case.write_text("A 30-year-old woman has a fever of 39.1 C since Monday and a stiff neck.")
    data = shown(command, "zero-shot", case, "--json").json
    assert [cost["case"] for cost in data["cost"]] == ["fever"]
    assert data["cost"][0]["calls"] == {"least": 1, "most": 1}
    assert data["options"]["k"] == {"type": "whole number", "default": 5, "meaning": "Diagnoses at most."}
    assert data["roles"] == ["physician"]
    assert data["differences"]["paper"][0]["paper"].startswith("zero-shot: ")
    assert command.run("methods", "show", "zero-shot", case).out.count("fever: 1 .. 1 calls") == 1


def test_a_case_that_is_not_there_ends_in_one_paragraph(command: Command) -> None:
    done = command.run("methods", "show", "zero-shot", "nowhere.txt")
    assert done.code == 3
    assert "nowhere.txt" in done.paragraph
    assert done.out == ""
