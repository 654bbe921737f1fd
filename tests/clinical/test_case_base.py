"""Past cases: files that can be read, the nearest ones, and a case that is never retrieved for itself."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ddx_local.clinical.case_base import CaseBases, one_case, read_base
from ddx_local.errors import InputError
from ddx_local.flow import Retrieve, Similarity

GOUT = (
    "A 61-year-old man woke at four in the morning with severe pain at the base of his right big toe after a wedding with "
    "several beers. The joint is red, hot and swollen, uric acid is 9.4 mg/dL and the film shows a punched-out erosion."
)
TOE = GOUT.replace("61-year-old man", "44-year-old woman").replace("wedding", "hike").replace("beers", "falls")
STROKE = "A 70-year-old woman suddenly cannot move her left arm and her speech is slurred; she takes no anticoagulant at all."


def write(path: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def row(name: str, text: str, *diagnoses: str) -> dict[str, Any]:
    return {"id": name, "text": text, "diagnoses": list(diagnoses)}


async def shared_words(about: Similarity) -> list[float]:
    """A plain likeness: words in common."""
    return [float(len(set(a.split()) & set(b.split()))) for a, b in about.pairs]


def retrieved(base: Path, text: str, count: int = 3, without: tuple[str, ...] = ()) -> list[str]:
    found = asyncio.run(CaseBases(shared_words)(Retrieve(text, count, str(base), without)))
    assert found == json.loads(json.dumps(found))
    scores = [item[3] for item in found]
    assert scores == sorted(scores, reverse=True)
    return [item[0] for item in found]


def test_the_most_similar_come_first_and_at_most_so_many(tmp_path: Path) -> None:
    other = "A man of 50 years has pain and swelling of the big toe at night; uric acid is high."
    base = write(
        tmp_path / "past.jsonl", [row("s", STROKE, "stroke"), row("o", other, "gout"), row("g", "toe", "gout")]
    )
    assert retrieved(base, GOUT, 2) == ["o", "s"]
    assert retrieved(base, GOUT, 9) == ["o", "s", "g"]


@pytest.mark.parametrize(
    "copy",
    [
        GOUT,
        GOUT.upper().replace(",", " ;"),
        f"Case report.\n\n{GOUT}\n\nWhat is the diagnosis? " + STROKE,
        GOUT[: len(GOUT) // 2],
        GOUT.replace("61", "62").replace("several", "many"),
    ],
)
def test_a_base_that_holds_the_test_case_does_not_give_it_back(tmp_path: Path, copy: str) -> None:
    base = write(tmp_path / "past.jsonl", [row("same", copy, "gout"), row("s", STROKE.replace("70", "71"), "stroke")])
    assert "same" not in retrieved(base, GOUT)
    assert one_case(GOUT, copy)
    assert one_case(copy, GOUT)


def test_another_case_of_the_same_disease_is_given(tmp_path: Path) -> None:
    base = write(tmp_path / "past.jsonl", [row("s", STROKE, "stroke")])
    assert not one_case(GOUT, STROKE)
    assert retrieved(base, GOUT) == ["s"]
    assert retrieved(base, STROKE) == []


def test_a_case_with_an_excluded_id_is_never_given(tmp_path: Path) -> None:
    base = write(tmp_path / "past.jsonl", [row("s", STROKE, "stroke"), row("t", "A cough of two weeks.", "bronchitis")])
    assert retrieved(base, GOUT, 3, ("s",)) == ["t"]


def test_the_benchmarks_field_names_and_a_single_name_are_read_too(tmp_path: Path) -> None:
    base = write(
        tmp_path / "past.jsonl", [{"case": GOUT, "gold": ["gout", "pseudogout"]}, {"text": TOE, "gold": "gout"}]
    )
    assert [(past.id, past.diagnoses) for past in read_base(base)] == [("1", ("gout", "pseudogout")), ("2", ("gout",))]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "holds no case"),
        (["not json"], "line 1: is not valid JSON"),
        ([row("a", STROKE, "stroke"), "[" * 100_000], "line 2: its JSON is nested too deeply"),
        (
            ['{"text": "speech", "diagnoses": ["a"], "diagnoses": ["b"]}'],
            "line 1: an object has the key `diagnoses` twice",
        ),
        (['{"text": "speech \\ud800", "diagnoses": ["a"]}'], "line 1: `text` holds characters that are no text"),
        (['{"text": "speech", "diagnoses": ["\\u0000"]}'], "`diagnoses`"),
        (["[1]"], "line 1: is not an object"),
        ([row("a", STROKE, "stroke"), {"text": STROKE}], "line 2: `diagnoses` is missing or no list of names"),
        ([{"diagnoses": ["x"]}], "line 1: `text` is missing"),
        ([{"text": STROKE, "diagnoses": [""]}], "`diagnoses`"),
        ([{"text": STROKE, "diagnoses": {}}], "`diagnoses`"),
    ],
)
def test_a_wrong_line_is_named_and_its_text_is_not_shown(
    tmp_path: Path, rows: Sequence[Mapping[str, Any] | str], reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_base(write(tmp_path / "past.jsonl", rows))
    assert reason in caught.value.message
    assert "speech" not in caught.value.message
    assert caught.value.hint


def test_a_byte_order_mark_and_a_separator_within_a_text_are_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "past.jsonl"
    file.write_text('\ufeff{"text": "speech\u2028and gait", "diagnoses": "stroke"}\r\n\n', "utf-8")
    assert [past.text for past in read_base(file)] == ["speech\u2028and gait"]


def test_a_missing_file_is_an_error_of_the_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_base(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no file can have that name"):
        read_base(tmp_path / "a\0b")
