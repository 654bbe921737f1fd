"""A person's comments between rounds: what they reach, how they are kept, and how they come back."""

import asyncio
import contextlib
import errno
import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddx_local.assets import Assets
from ddx_local.case import Differential
from ddx_local.cli.supervise import at_terminal, parse
from ddx_local.engines.scripted import ScriptedEngine
from ddx_local.errors import UsageError
from ddx_local.events import Commented, RoundStarted
from ddx_local.request import Request
from ddx_local.supervise import LONGEST_COMMENT, Comment, RoundDone
from tests.toy import CASES, Toy, said

ROOT = Path(__file__).resolve().parents[1]
WORD = "Ask about the journey to the lake."


class Person:
    """Comments once, after the first round it is asked about; keeps what it was shown."""

    def __init__(self, *comments: Comment, at: int = 0) -> None:
        self.comments = comments
        self.at = at
        self.shown: list[RoundDone] = []

    async def __call__(self, done: RoundDone) -> Sequence[Comment]:
        self.shown.append(done)
        return self.comments if len(self.shown) == self.at + 1 else ()


def prompts(engine: ScriptedEngine) -> list[str]:
    return [request.messages[-1].content for request in engine.requests]


def test_a_comment_enters_every_later_question_to_a_role_and_none_before(tmp_path: Path) -> None:
    person, engine = Person(Comment("dr", WORD, "b"), at=1), ScriptedEngine(said)
    toy = Toy(tmp_path, cases=CASES[:1], supervise=person).start()
    (answer,) = toy.drive(engine).values()
    assert isinstance(answer, Differential)
    assert [f"on the b: {WORD}" in prompt for prompt in prompts(engine)] == [False, False, False, True]
    last = prompts(engine)[-1]
    # After what all prompts of the case share, so that the shared prefix stays in the KV cache.
    assert last.index("CASE") < last.index(WORD) < last.index("Say anything")


def test_the_person_sees_every_round_of_questions_with_who_said_what_and_no_other_round(tmp_path: Path) -> None:
    person = Person()
    toy = Toy(tmp_path, cases=CASES[:1], supervise=person).start()
    toy.drive()
    assert [done.name for done in person.shown] == ["toy/say", "toy/say", "toy/rate", "toy/free"]
    assert [role for role, _, _ in person.shown[1].answers] == ["a", "b"]
    assert all("said" in text for _, _, text in person.shown[1].answers)
    assert person.shown[2].answers == (("which", "toy/rate", ""),)


def test_label_probabilities_are_taken_without_comments(tmp_path: Path) -> None:
    class Weighing(ScriptedEngine):
        prompts: list[str] = []  # noqa: RUF012

        async def loglikelihood(self, requests):  # type: ignore[no-untyped-def]
            self.prompts += [request.messages[-1].content for request in requests]
            return await super().loglikelihood(requests)

    engine = Weighing(said)
    toy = Toy(tmp_path, cases=CASES[:1], supervise=Person(Comment("dr", WORD))).start()
    toy.drive(engine)
    assert engine.prompts
    assert all(WORD not in prompt for prompt in engine.prompts)


def test_a_comment_is_recorded_with_its_round_and_author_and_never_twice(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1], supervise=Person(Comment("dr", WORD, "a"), at=1)).start()
    toy.drive()
    (event,) = [event for event in toy.events() if isinstance(event, Commented)]
    assert (event.round, event.by, event.about, event.text) == (2, "dr", "a", WORD)
    assert event.at
    assert event.case_id == "ann"


class Killed(Exception):
    pass


@pytest.mark.parametrize("answers", range(1, 4))
def test_a_resumed_case_keeps_its_comment_and_asks_for_none_where_it_has_gone_on(answers: int, tmp_path: Path) -> None:
    whole = Toy(tmp_path / "whole", cases=CASES[:1], supervise=Person(Comment("dr", WORD))).start()
    (expected,) = whole.drive().values()

    def dying(request: Request) -> str:
        if len(engine.requests) > answers:
            raise KeyboardInterrupt
        return said(request)

    engine = ScriptedEngine(dying)
    toy = Toy(tmp_path / "cut", cases=CASES[:1], supervise=Person(Comment("dr", WORD))).start()
    with pytest.raises(KeyboardInterrupt):
        toy.drive(engine)
    late = Person(Comment("dr", "too late"))
    toy.supervise = late
    (answer,) = toy.drive().values()
    assert answer == expected
    comments = [event.text for event in toy.events() if isinstance(event, Commented)]
    assert comments.count(WORD) == 1
    first_new = max(done.number for done in late.shown) if late.shown else 99
    assert all(done.number > 0 for done in late.shown), first_new


def test_a_case_that_was_stopped_while_the_person_was_thinking_asks_again(tmp_path: Path) -> None:
    async def away(_: RoundDone) -> Sequence[Comment]:
        raise KeyboardInterrupt

    toy = Toy(tmp_path, cases=CASES[:1], supervise=away).start()
    with pytest.raises(KeyboardInterrupt):
        toy.drive()
    back = Person(Comment("dr", WORD))
    toy.supervise = back
    engine = ScriptedEngine(said)
    toy.drive(engine)
    assert back.shown[0].number == 0
    assert [WORD in prompt for prompt in prompts(engine)] == [True, True, True], "the first answer is not asked again"


def test_a_changed_comment_text_changes_what_was_asked_so_that_a_replay_without_it_is_refused(tmp_path: Path) -> None:
    toy = Toy(tmp_path, cases=CASES[:1], supervise=Person(Comment("dr", WORD))).start()
    toy.drive()
    asked = {event.round: event.digest for event in toy.events() if hasattr(event, "digest") and hasattr(event, "seed")}
    without = Toy(tmp_path / "b", cases=CASES[:1]).start()
    without.drive()
    plain = {
        event.round: event.digest for event in without.events() if hasattr(event, "digest") and hasattr(event, "seed")
    }
    assert asked[0] == plain[0]
    assert all(asked[number] != plain[number] for number in (2, 6))
    assert len([event for event in toy.events() if isinstance(event, RoundStarted)]) == 7


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (("dr", "  "), "`text` is empty"),
        (("", "x"), "`by` is empty"),
        (("dr", "x" * 10_000), "10,000 characters, but at most 2,000"),
        (("dr", "caf\udce9"), "characters that are no text"),
        (("dr", "a\0b"), "characters that are no text"),
        (("d\udce9r", "x"), "characters that are no text"),
    ],
)
def test_a_comment_that_is_none_or_too_long_is_refused_with_the_numbers(values: tuple[str, str], reason: str) -> None:
    with pytest.raises(UsageError) as error:
        Comment(*values)
    assert reason in error.value.message
    assert error.value.hint


def test_the_longest_comment_is_taken_whole() -> None:
    assert len(Comment("dr", "x" * LONGEST_COMMENT).text) == LONGEST_COMMENT


@pytest.mark.parametrize(
    ("line", "about", "text"),
    [
        ("Cardiology: look again", "Cardiology", "look again"),
        ("cardiology : not a role", "", "cardiology : not a role"),
        ("Cardiology 2:x", "Cardiology 2", "x"),
        ("remember: travel", "", "remember: travel"),
    ],
)
def test_a_line_may_begin_with_the_role_that_it_is_about(line: str, about: str, text: str) -> None:
    comment = parse(line, ["Cardiology", "Cardiology 2"], "dr")
    assert (comment.about, comment.text, comment.by) == (about, text, "dr")


def typed(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, str]], list[str]]:
    """What is recorded of what a person types after a round, as (about, text), and what they are told."""
    leader, follower = pty.openpty()
    told: list[str] = []
    done = RoundDone("fever", 1, "toy/first", (("Cardiology", "first", "an answer"),))
    with os.fdopen(follower, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(leader, data)
        comments = asyncio.run(asyncio.wait_for(at_terminal("dr", told.append)(done), 20))
    os.close(leader)
    return [(comment.about, comment.text) for comment in comments], told


def test_the_lines_of_a_paste_are_one_comment_and_none_is_left_for_a_later_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, told = typed(b"Cardiology: think of TB\n\n  and ask for HIV\nplease\n", monkeypatch)
    assert found == [("Cardiology", "think of TB and ask for HIV please")]
    assert told[-1].startswith("recorded")


@pytest.mark.parametrize("data", [b"\n", b"  \n", b"\x04"])
def test_enter_and_ctrl_d_go_on_without_a_comment(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    found, told = typed(data, monkeypatch)
    assert (found, len(told)) == ([], 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("漢" * 1900, "a terminal passes at most 4,095 bytes of a line, and has cut this one"),
        ("x" * 4095, "a terminal passes at most 4,095 bytes of a line, and has cut this one"),
        ("x" * 4094, "4,094 characters, but at most 2,000 are allowed"),
        ("caf\udce9", "it is no text in the terminal's encoding"),
        ("Cardiology: ", "`text` is empty"),
    ],
)
def test_a_line_that_is_cut_or_no_text_is_refused_and_asked_for_again(
    line: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower = pty.openpty()
    told: list[str] = []

    def tell(said: str) -> None:
        told.append(said)
        if len(told) == 2:
            os.write(leader, b"shorter\n")

    with os.fdopen(follower, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(leader, line.encode(errors="surrogateescape")[:4095] + b"\n")
        done = RoundDone("fever", 1, "toy/first", (("Cardiology", "first", "an answer"),))
        comments = asyncio.run(asyncio.wait_for(at_terminal("dr", tell)(done), 20))
    os.close(leader)
    assert [comment.text for comment in comments] == ["shorter"]
    assert reason in told[1]


def test_a_terminal_that_is_gone_ends_the_run_and_fails_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    done = RoundDone("fever", 1, "toy/first", (("Cardiology", "first", "an answer"),))

    def gone(line: str) -> None:
        raise OSError(errno.EIO, f"cannot write {len(line)} letters")

    with pytest.raises(UsageError, match="--supervise: the terminal is gone"):
        asyncio.run(at_terminal("dr", gone)(done))
    leader, follower = pty.openpty()
    with os.fdopen(follower, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.close(leader)
        with contextlib.suppress(UsageError):  # Linux says EIO, or the end of the file
            assert asyncio.run(asyncio.wait_for(at_terminal("dr", lambda _: None)(done), 20)) == ()


def test_the_shipped_frame_of_comments_says_whose_they_are() -> None:
    text = Assets()._comments
    assert "{{comments}}" in text
    assert "supervising" in text.casefold()


def test_a_person_at_a_terminal_comments_and_the_result_shows_it(tmp_path: Path) -> None:
    case = tmp_path / "case.txt"
    case.write_text("Fever and cough for two days, rust colored sputum, crackles at the right base.")
    out, store = str(tmp_path / "out.json"), str(tmp_path / "s.sqlite")
    flags = ["--agents", "2", "--engine", "scripted", "--supervise", "--json", out, "--store", store]
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "ddx_local.cli.main", "diagnose", str(case), *flags],
        stdin=follower,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    assert child.stderr is not None
    lines: list[str] = []
    first = True
    for line in child.stderr:
        lines.append(line)
        if "Enter to go on" in line:
            os.write(leader, f"{WORD}\n".encode() if first else b"\n")
            first = False
    assert child.wait(60) == 0, "".join(lines)
    os.close(leader)
    os.close(follower)
    document = json.loads((tmp_path / "out.json").read_text())
    assert [(item["by"], item["about"], item["text"]) for item in document["comments"]] == [("supervisor", "", WORD)]
    assert sum("Enter to go on" in line for line in lines) == document["totals"]["batches"]
