"""ICD-10-CM: codes that exist, names that fit, corrections, what is left uncoded; a made-up code never comes out."""

import asyncio
import json
from pathlib import Path

import pytest
import simple_icd_10_cm as cm  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.icd10 import diagnoses
from ddx_local.clinical import icd10, icd10_table, labels
from ddx_local.clinical.icd10_names import readings, uncomplicated
from ddx_local.clinical.icd10_table import table
from ddx_local.flow import Codes, Similarity

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def real(code: str) -> bool:
    return bool(cm.is_category_or_subcategory(code))


# How names of the classification are read


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Pneumonia, unspecified organism", ("Pneumonia",)),
        ("Urinary tract infection, site not specified", ("Urinary tract infection",)),
        ("Otitis media, unspecified, unspecified ear", ("Otitis media",)),
        ("Obstructive sleep apnea (adult)", ("Obstructive sleep apnea", "Obstructive sleep apnea adult")),
        ("Varicella [chickenpox]", ("Varicella", "chickenpox")),
        ("Chronic obstructive pulmonary disease [COPD]", ("Chronic obstructive pulmonary disease", "COPD")),
        ("Malignant neoplasm of breast of unspecified site", ("Malignant neoplasm of breast", "cancer of breast")),
        ("Encounter for screening for human immunodeficiency virus [HIV]",
         ("Encounter for screening for human immunodeficiency virus",)),
        ("Other chronic pancreatitis", ()),
        ("Sexual abuse, suspected", ()),
    ],
)  # fmt: skip
def test_names_lose_what_says_nothing_and_keep_their_aliases(name: str, expected: tuple[str, ...]) -> None:
    assert readings(name) == expected


@pytest.mark.parametrize(
    "name", ["Idiopathic gout, unspecified hand", "Pain in unspecified knee", "Unspecified injury of shoulder"]
)
def test_a_part_of_the_body_is_never_dropped_with_its_unspecified_side(name: str) -> None:
    part = name.split()[-1]
    assert all(part in reading for reading in readings(name))


def test_only_the_ending_without_complications_is_optional() -> None:
    assert uncomplicated("Type 2 diabetes mellitus without complications") == "Type 2 diabetes mellitus"
    assert uncomplicated("Appendicitis without perforation") is None


# Codes


@pytest.mark.parametrize("written", ["I21.9", "i219", " I219 "])
def test_a_code_is_found_however_it_is_written(written: str) -> None:
    assert icd10.find(written) == icd10.Code("I21.9", "Acute myocardial infarction, unspecified")


@pytest.mark.parametrize("written", ["", "I21.99", "A00-A09", "1", "ZZZ", "I21.9 ", "999.9", "I2.19", "I21.9; DROP"])
def test_what_is_no_code_is_not_found(written: str) -> None:
    assert (icd10.find(written) is None) == (written.strip() != "I21.9")


def test_a_category_that_is_a_block_of_its_own_is_a_code() -> None:
    assert icd10.find("B99") is not None
    assert icd10.parents("B99") == ()


def test_parents_go_up_to_the_category_through_an_extension() -> None:
    assert [code.code for code in icd10.parents("S72.001A")] == ["S72.001", "S72.00", "S72.0", "S72"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("MI", "I21.9"),
        ("heart attack", "I21.9"),
        ("Acute kidney injury (AKI)", "N17.9"),
        ("hypertension", "I10"),
        ("Type 2 diabetes", "E11"),
        ("type 1 diabetes mellitus", "E10"),
        ("community-acquired pneumonia", "J18.9"),
        ("pancreatic cancer", "C25.9"),
        ("Prostate cancer", "C61"),
        ("Systemic lupus erythematosus", "M32.9"),
        ("Henoch-Schönlein purpura", "D69.0"),
        ("gout", "M10.9"),
        ("pseudogout", "M11.20"),
        ("hyperprolacrinemia", "E22.1"),
    ],
)
def test_names_have_the_code_of_the_classification(name: str, code: str) -> None:
    found = icd10.coded(name)
    assert found is not None
    assert found.code == code
    assert icd10.fits(code, name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "qwertz",
        "a problem of the patient",
        "bacterial or viral infection",
        "acute meningitis",  # not myringitis
        "vasculitis",  # not vesiculitis
        "Hyper IgM syndrome",  # not hyper-IgE
        "sexual abuse",  # not the suspected one
        "Gastritis/GERD",  # two diseases
        "pyloric stenosis",  # of infants or adults
        "Infectious diarrhea (gastroenteritis), bacterial or viral",
        "diabetic nephropathy",  # of which type?
        "患者", "🫀", "(", "[]", "/", "(((",
    ],
)  # fmt: skip
def test_what_cannot_be_coded_has_no_code(name: str) -> None:
    assert icd10.coded(name) is None


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("K85.9", "chronic pancreatitis"),
        ("E10", "type 2 diabetes mellitus"),
        ("B15.9", "hepatitis B"),
        ("M10.9", "pseudogout"),
        ("E24.9", "Cushing's disease"),
        ("J15.9", "viral pneumonia"),
        ("N08", "glomerulonephritis"),
    ],
)
def test_a_code_of_a_look_alike_does_not_fit(code: str, name: str) -> None:
    assert not icd10.fits(code, name)


def test_an_extension_fits_what_the_code_above_it_says() -> None:
    name = "fracture of unspecified part of neck of right femur"
    assert icd10.fits("S72.001", name) == icd10.fits("S72.001A", name)
    assert icd10.fits("S72.001A", "Fracture of unspecified part of neck of right femur")


def test_a_code_that_does_not_exist_or_fit_is_corrected_from_the_name_and_told() -> None:
    assert icd10.check("I21.9", "myocardial infarction") == icd10.Checked(icd10.find("I21.9"))
    assert icd10.check("i21", "acute myocardial infarction").fault == ""
    made_up = icd10.check("I21.77", "myocardial infarction")
    assert made_up == icd10.Checked(icd10.find("I21.9"), "there is no such code")
    wrong = icd10.check("J18.9", "myocardial infarction")
    assert wrong == icd10.Checked(icd10.find("I21.9"), "it does not fit the name")
    assert icd10.check("X99.99", "qwertz") == icd10.Checked(None, "there is no such code")


# Consultations


def consult(about: Codes, scores: dict[str, float] | None = None) -> list[list[list[str | bool]]]:
    async def alike(pairs: Similarity) -> list[float]:
        return [(scores or {}).get(b, 0.0) for _, b in pairs.pairs]

    return asyncio.run(icd10.Icd10(alike if scores is not None else None)(about))


def test_close_codes_come_with_those_that_fit_first_and_are_json() -> None:
    (found,) = consult(Codes(("acute pancreatitis",), 5))
    assert found == json.loads(json.dumps(found))
    assert len(found) == 5
    assert found[0] == ["K85.9", "Acute pancreatitis, unspecified", True]
    assert [item[2] for item in found] == sorted([item[2] for item in found], reverse=True)
    assert all(real(str(item[0])) and item[1] == cm.get_description(str(item[0])) for item in found)


def test_an_embedding_orders_those_that_do_not_fit_only() -> None:
    (plain,) = consult(Codes(("acute pancreatitis",), 5))
    last = str(plain[-1][1])
    (found,) = consult(Codes(("acute pancreatitis",), 5), {last: 1.0})
    fitting = sum(bool(item[2]) for item in plain)
    assert found[:fitting] == plain[:fitting]
    assert found[fitting][1] == last


def test_only_fitting_codes_where_only_these_are_wanted() -> None:
    found = consult(Codes(("acute pancreatitis", "qwertz"), 8, fitting_only=True))
    assert all(item[2] for item in found[0])
    assert found[1] == []


# A made-up code never comes out

LABELS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from("acute chronic type 1 2 left pneumonia fracture of femur infection viral (AKI) / I21.9 X99".split()),
        max_size=6,
    ).map(" ".join),
    st.sampled_from(list(table().texts)[:5000]),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    name=LABELS, code=st.one_of(st.text(max_size=8), st.from_regex(r"[A-Z][0-9]{2}\.?[0-9A-Z]{0,4}", fullmatch=True))
)
def test_a_fake_code_never_leaves_the_program(name: str, code: str) -> None:
    checked = icd10.check(code, name).code
    found = [item for item in (icd10.find(code), icd10.coded(name), checked) if item is not None]
    assert all(real(item.code) and item.name == cm.get_description(item.code) for item in found)
    assert checked is None or icd10.fits(checked.code, name)
    assert all(real(item.code) for item in icd10.closest(name, 3))


@settings(max_examples=60, deadline=None)
@given(text=st.sampled_from(list(table().texts)))
def test_a_code_that_fits_a_name_of_the_classification_never_conflicts_with_it(text: str) -> None:
    for named in table().named(table().texts[text]):
        code = icd10.coded(named.reading)
        if code is not None:
            assert any(
                not labels.conflicting(named.reading, other.reading)
                for other in table().named(table().texts[text])
                if other.code == code.code
            )


def test_our_own_names_stand_under_codes_that_exist() -> None:
    text = (Path(icd10.__file__).parent / "icd10_names.txt").read_text("utf-8")
    rows = [line.split(" = ") for line in text.splitlines() if line and not line.startswith("#")]
    assert len(rows) > 200
    assert [code for code, *_ in rows if not real(code)] == []
    assert [code for code, *_ in rows] == sorted({code for code, *_ in rows})
    assert all(names and all(name == name.strip() for name in names) for _, *names in rows)


def test_six_in_ten_of_the_benchmarks_labels_have_a_code_and_every_code_is_real() -> None:
    path = DATA / "open-xddx-dev.jsonl"
    if not path.is_file():
        pytest.skip(f"shared data not found at {DATA}")
    names = diagnoses(path)
    assert len(names) == 991
    codes = {name: icd10.coded(name) for name in names}
    found = [code for code in codes.values() if code is not None]
    assert all(real(code.code) for code in found)
    assert 0.6 <= len(found) / len(names) <= 0.75


# The table is made once and kept


def test_the_table_is_kept_in_a_file_and_read_from_it_and_a_damaged_or_forbidden_one_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = frozenset(next(iter(table().texts)).split(" "))
    expected = table().named(words)
    monkeypatch.setattr(icd10_table, "_folder", lambda: tmp_path / "cache")
    icd10_table.keep.__wrapped__()
    (kept,) = (tmp_path / "cache").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(icd10_table, "rows", lambda: pytest.fail("made again"))
        read = icd10_table.table.__wrapped__()
    assert read.named(words) == expected
    assert read.texts == table().texts
    kept.write_bytes(b"not a database" * 100)
    assert icd10_table.table.__wrapped__().named(words) == expected
    monkeypatch.setattr(icd10_table, "_folder", lambda: Path("/proc/nowhere"))
    icd10_table.keep.__wrapped__()
