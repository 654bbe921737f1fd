"""Similarity of meaning with the real embedding model, against sentence-transformers itself; spelling by hand."""

from itertools import pairwise

import pytest
import pytest_asyncio

from ddx_local import models
from ddx_local.clinical.similarity import Similarities, _parts
from ddx_local.flow import Similarity

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

NAMES = ("myocardial infarction", "heart attack", "acute coronary syndrome", "gout", "Myocardial infarction", "痛风")
SENTENCES = (
    "The patient is a 54-year-old man with a red, hot and swollen toe. ",
    "He takes a diuretic for high blood pressure and drank beer at a wedding. ",
    "There is no fever and no injury. ",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def similarities() -> Similarities:
    return Similarities(models.snapshot("all-minilm-l6-v2"))


async def test_values_are_the_cosines_of_sentence_transformers(similarities: Similarities) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import cos_sim

    model = SentenceTransformer(str(models.snapshot("all-minilm-l6-v2")), device="cpu", local_files_only=True)
    pairs = tuple((a, b) for a in NAMES for b in NAMES)
    theirs = [float(cos_sim(*model.encode([a, b]))) for a, b in pairs]
    assert await similarities(Similarity(pairs)) == pytest.approx(theirs, abs=2e-6)


async def test_what_means_the_same_is_nearer_than_what_does_not(similarities: Similarities) -> None:
    attack, syndrome, gout = await similarities(
        Similarity((("myocardial infarction", "heart attack"), ("heart attack", NAMES[2]), ("heart attack", "gout")))
    )
    assert attack > syndrome > gout
    assert attack > 0.5
    assert gout < 0.4


async def test_the_order_within_a_pair_does_not_matter_and_a_text_is_itself(similarities: Similarities) -> None:
    pairs = tuple((a, b) for a in NAMES for b in NAMES)
    forth = await similarities(Similarity(pairs))
    assert forth == await similarities(Similarity(tuple((b, a) for a, b in pairs)))
    assert [value for (a, b), value in zip(pairs, forth, strict=True) if a == b] == [1.0] * len(NAMES)


async def test_values_have_six_digits_so_that_a_replay_compares_alike(similarities: Similarities) -> None:
    pairs = tuple((a, b) for a in NAMES for b in NAMES)
    values = await similarities(Similarity(pairs))
    assert all(value == round(value, 6) for value in values)
    again = Similarities(similarities.folder)  # asked alone, and in another order
    single = [(await again(Similarity((pair,))))[0] for pair in reversed(pairs)]
    assert single[::-1] == pytest.approx(values, abs=1.5e-6)


async def test_the_end_of_a_text_beyond_the_models_window_counts(similarities: Similarities) -> None:
    case = SENTENCES[0] + "".join(f"On day {day} the pulse is {70 + day}. " for day in range(60))
    same, edited, other = await similarities(
        Similarity(((case, case), (case, case + "He has gout."), (case, case + "Massive hemoptysis. " * 20)))
    )
    assert same == 1.0
    assert other < edited < 1.0


async def test_no_pairs_give_no_values(similarities: Similarities) -> None:
    assert await similarities(Similarity(())) == []


async def test_the_empty_text_is_a_text_too(similarities: Similarities) -> None:
    (value,) = await similarities(Similarity((("", "gout"),)))
    assert -1 <= value < 0.5


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (
            "Hemoglobin 14 g/dL, leukocytes 16,400/mm3, eosinophils 11%, urea nitrogen 25 mg/dL, " * 12,
            "creatinine 9.1 mg/dL",
        ),
        ("患者男五十八岁突发胸痛三小时伴大汗既往有高血压病史十年" * 12, "今晨咯血"),
    ],
    ids=["a sentence without end", "no blanks"],
)
async def test_the_end_of_a_sentence_beyond_the_models_window_counts(
    similarities: Similarities, text: str, more: str
) -> None:
    same, edited = await similarities(Similarity(((text, text), (text, text + more))))
    assert same == 1.0
    assert edited < 0.9999


async def test_parts_are_the_whole_text_within_the_bound_and_cut_only_words_that_are_longer() -> None:
    text = "word " * 30 + "x" * 70 + " end"
    parts = _parts(text, 50)
    assert "".join(parts) == text
    assert all(len(part) <= 50 for part in parts)
    inside = [a for a, b in pairwise(parts) if not a[-1].isspace() and not b[0].isspace()]
    assert [part.strip("x") for part in inside] == [" "], "the endless word alone"
