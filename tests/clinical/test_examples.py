"""The program's own examples: eight solved cases that are none of the bench, and who is asked about which base."""

import asyncio
import json
import unicodedata
from itertools import combinations
from typing import Any

import pytest

from ddx_local.clinical import labels
from ddx_local.clinical.case_base import CaseBases, one_case, read_base
from ddx_local.clinical.examples import nearly_equal, own_examples, with_own_examples
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.data import data_dir
from ddx_local.flow import OWN_EXAMPLES, Retrieve


@pytest.mark.parametrize(("base", "asked"), [(OWN_EXAMPLES, str(own_examples())), ("mine.jsonl", "mine.jsonl")])
def test_the_own_examples_are_a_base_beside_files(base: str, asked: str) -> None:
    seen: list[Retrieve] = []

    async def answer(about: Retrieve) -> list[list[Any]]:
        seen.append(about)
        return []

    asyncio.run(with_own_examples(answer)(Retrieve("A text.", 2, base, ("x",))))
    (about,) = seen
    assert (about.text, about.base, about.without) == ("A text.", asked, ("x",))
    assert about.count >= 2


def past(number: int, text: str) -> list[Any]:
    return [f"p{number}", text, ["Gout"], 0.5]


def given(pool: list[list[Any]], text: str, count: int) -> list[str]:
    async def answer(about: Retrieve) -> list[list[Any]]:
        return pool[: about.count]

    return [item[0] for item in asyncio.run(with_own_examples(answer)(Retrieve(text, count, "x.jsonl")))]


GERMAN = (
    "Ein 61-jähriger Mann klagt über drückende Brustschmerzen, Übelkeit und Kälteschweiß seit gestern früh, außerdem "
    "schläft er seit Wochen schlecht."
)
CHINESE = "患者男性五十八岁,突发胸痛三小时,伴大汗淋漓,既往高血压病史十年,否认糖尿病史。"
OTHER_CHINESE = "女性患者二十六岁,反复上腹部隐痛半年,餐后加重,伴反酸嗳气,体重无明显下降。"
ENGLISH = (
    "A 61-year-old man has crushing chest pain since yesterday and vomits twice after lunch. His left calf is swollen."
)
OTHER_ENGLISH = (
    "A 61-year-old man has had a swollen left knee since yesterday and a fever. He walks with a stick and sleeps well."
)


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        (GERMAN, unicodedata.normalize("NFD", GERMAN)),
        (GERMAN, GERMAN.upper()),
        (CHINESE, CHINESE.replace("三小时", "四小时")),
        (CHINESE, CHINESE[:24]),
        (CHINESE[:24], CHINESE),
        (ENGLISH, ENGLISH.replace("61", "62").replace("twice", "once")),
        (ENGLISH, "Emergency room, 9 pm: " + ENGLISH + " He lives alone with his dog and smokes."),
        ("fever 39", "Fever, 39."),
    ],
)
def test_a_near_copy_is_not_given_in_any_script_or_encoding_and_another_case_takes_its_place(
    text: str, copy: str
) -> None:
    assert nearly_equal(text, copy)
    assert nearly_equal(copy, text)
    assert given([past(1, copy), past(2, OTHER_CHINESE), past(3, OTHER_ENGLISH)], text, 2) == ["p2", "p3"]


def test_other_cases_are_no_copies() -> None:
    texts = [GERMAN, CHINESE, OTHER_CHINESE, ENGLISH, OTHER_ENGLISH, "fever 39", "cough"]
    texts += [file.read_text("utf-8") for file in (data_dir("bench") / "cases").glob("*.txt")]
    texts += [item.text for item in read_base(own_examples())]
    pairs = list(combinations(texts, 2))
    assert not [(a[:30], b[:30]) for a, b in pairs if nearly_equal(a, b)]


def test_however_many_copies_a_pool_holds_none_is_given() -> None:
    pool = [past(number, f"{ENGLISH} Seen {number}.") for number in range(30)]
    assert given([*pool, past(99, OTHER_ENGLISH)], ENGLISH, 3) == []


def test_an_own_example_is_not_given_for_itself() -> None:
    answer = with_own_examples(CaseBases(spelling_similarity))
    for example in read_base(own_examples()):
        found = asyncio.run(answer(Retrieve(example.text, 8, OWN_EXAMPLES)))
        assert len(found) == 7
        assert example.id not in [item[0] for item in found]


def test_the_programs_own_examples_are_eight_cases_that_are_none_of_the_bench_and_do_not_tell_their_answer() -> None:
    own = read_base(own_examples())
    assert len({example.id for example in own}) == len(own) == 8
    bench = [file.read_text("utf-8") for file in (data_dir("bench") / "cases").glob("*.txt")]
    assert len(bench) >= 14
    for example in own:
        assert example.text.isascii(), "letters beyond ASCII would widen what answers may hold"
        assert 40 <= len(example.text.split()) <= 90
        assert not any(one_case(example.text, text) for text in bench)
        assert not [name for name in example.diagnoses if labels.mentions(example.text, name)]
    assert not [
        example.id
        for example in own
        if any(one_case(example.text, other.text) for other in own if other is not example)
    ]


def test_no_first_diagnosis_of_the_own_examples_is_the_answer_of_a_case_of_the_bench() -> None:
    answers = [json.loads(file.read_text("utf-8")) for file in (data_dir("bench") / "answers").glob("*.json")]
    for example in read_base(own_examples()):
        assert not [item["primary"] for item in answers if labels.same(item["primary"], example.diagnoses[0])]
