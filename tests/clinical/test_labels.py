"""Diagnosis labels: what must match, what must never match, and the measured error on the shared pairs.

The shared pairs check the instrument; nothing of them went into the synonyms (ddx_local/clinical/synonyms.txt).
"""

import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddx_local.clinical.label_lexicon import groups, lexicon
from ddx_local.clinical.label_qualifiers import NEGATIONS, clash, opposed
from ddx_local.clinical.label_words import singular, words
from ddx_local.clinical.labels import conflicting, mentions, merge, normalise, same

# Different diagnoses, in one way or another easy to confuse; the second part also tells whether they conflict (a
# qualifier, a prefix, a number) or are just different words.
CONFLICTING = [
    ("acute pancreatitis", "chronic pancreatitis"),
    ("type 1 diabetes", "type 2 diabetes"),
    ("type I diabetes mellitus", "type II diabetes mellitus"),
    ("T1DM", "type 2 diabetes"),
    ("bipolar I disorder", "bipolar II disorder"),
    ("hepatitis A", "hepatitis B"),
    ("hepatitis B", "hepatitis C"),
    ("hepatitis (A)", "hepatitis (B)"),
    ("haemophilia A", "hemophilia B"),
    ("viral pneumonia", "bacterial pneumonia"),
    ("viral meningitis", "bacterial meningitis"),
    ("pneumonia (viral)", "pneumonia (bacterial)"),
    ("pneumonia (likely viral)", "pneumonia (likely bacterial)"),
    ("primary hyperparathyroidism", "secondary hyperparathyroidism"),
    ("primary adrenal insufficiency", "secondary adrenal insufficiency"),
    ("gout", "pseudogout"),
    ("hyperthyroidism", "hypothyroidism"),
    ("hyperkalemia", "hypokalaemia"),
    ("hyperglycemia", "hypoglycaemia"),
    ("hypocalcemia", "hypercalcemia"),
    ("hypocalcemia", "hypokalemia"),
    ("anterior uveitis", "posterior uveitis"),
    ("IgA deficiency", "IgG deficiency"),
    ("basal cell carcinoma", "squamous cell carcinoma"),
    ("ACL tear", "PCL tear"),
    ("upper gastrointestinal bleeding", "lower gastrointestinal bleeding"),
    ("left hip fracture", "right hip fracture"),
    ("stable angina", "unstable angina"),
    ("benign ovarian tumor", "malignant ovarian tumor"),
    ("systolic heart failure", "diastolic heart failure"),
    ("gastric ulcer", "duodenal ulcer"),
    ("malaria", "dengue"),
    ("gonorrhea", "chlamydia"),
    ("Crohn's disease", "ulcerative colitis"),
    ("direct inguinal hernia", "indirect inguinal hernia"),
    ("ectopic pregnancy", "intrauterine pregnancy"),
    ("migraine with aura", "migraine without aura"),
    ("sensorineural hearing loss", "conductive hearing loss"),
    ("central vertigo", "peripheral vertigo"),
    ("iron deficiency anemia", "vitamin B12 deficiency anemia"),
    ("21-hydroxylase deficiency", "11-beta-hydroxylase deficiency"),
    ("stage 2 pressure ulcer", "stage 3 pressure ulcer"),
    ("MEN 2A", "MEN IIB"),
    ("first degree AV block", "third degree AV block"),
    ("B-cell lymphoma", "T-cell lymphoma"),
    ("Hodgkin lymphoma", "non-Hodgkin lymphoma"),
    ("pneumonia", "no pneumonia"),
    ("diabetes mellitus", "diabetes insipidus"),
    ("acalculous cholecystitis", "calculous cholecystitis"),
    ("microcytic anemia", "macrocytic anemia"),
    ("tachycardia", "bradycardia"),
    ("diverticulosis", "diverticulitis"),
    ("pemphigus vulgaris", "pemphigus foliaceus"),
    ("dysphagia", "dysphasia"),
    ("Cushing's disease", "Cushing's syndrome"),
    ("inflammatory bowel disease (IBD)", "inflammatory bowel syndrome"),
    ("thyroid adenoma", "parathyroid adenoma"),
    ("lung abscess", "liver abscess"),
]
DIFFERENT = [
    ("rib fracture", "costochondritis"),
    ("pancreatitis", "acute pancreatitis"),
    ("hydroxylase deficiency", "21-hydroxylase deficiency"),
    ("gastric/duodenal ulcer", "gastric ulcer"),
    ("acute/chronic pancreatitis", "acute pancreatitis"),
    ("syncope (causing falls)", "arrhythmia (causing falls)"),
    ("mitral stenosis (MS)", "multiple sclerosis"),
    ("mitral stenosis (MS)", "multiple sclerosis (MS)"),
    ("atopic dermatitis (AD)", "Alzheimer disease (AD)"),
    ("Meniere disease", "Menetrier disease"),
    ("disease", "syndrome"),
    ("???", "!!!"),
    ("gout", ""),
    ("bronchitis", "bronchiolitis"),
]
EQUAL = [
    ("MI", "myocardial infarction"),
    ("heart attack", "MI"),
    ("Anemia, iron deficiency", "iron deficiency anemia"),
    ("iron-deficiency anaemia", "Iron deficiency anemia"),
    ("anemia due to iron deficiency", "iron deficiency anemia"),
    ("pneumonia, bacterial", "bacterial pneumonia"),
    ("Crohn's disease", "Crohn disease"),
    ("Crohn’s disease", "crohns disease"),
    ("Parkinson's", "Parkinson disease"),
    ("GOUT", " gout. "),
    ("ＧＯＵＴ", "gout"),
    ("α-thalassemia", "alpha thalassemia"),
    ("β-thalassaemia major", "Cooley's anemia"),
    ("acute kidney injury (AKI)", "AKI"),
    ("acute kidney injury (AKI)", "acute kidney injury"),
    ("AKI (acute kidney injury)", "acute renal failure"),
    ("type II diabetes", "type 2 diabetes mellitus"),
    ("Type-2 diabetes", "T2DM"),
    ("seborrheic keratoses", "seborrhoeic keratosis"),
    ("oesophageal varices", "esophageal varix"),
    ("diarrhoea", "diarrhea"),
    ("tumours of the lung", "lung tumor"),
    ("Sjögren's syndrome", "Sjogren syndrome"),
    ("Guillain–Barré syndrome", "GBS"),
    ("non-Hodgkin lymphoma", "nonhodgkin lymphoma"),
    ("hydro nephrosis", "hydronephrosis"),
    ("tinea pedis (athlete's foot)", "tinea pedis"),
    ("tinea pedis (athlete's foot)", "athletes foot"),
    ("DVT of the left leg", "left leg deep venous thrombosis"),
    ("hives / urticaria", "urticaria"),
    ("renal stones aka nephrolithiasis", "kidney stone"),
    ("1. Gout", "gout"),
    ("**Gout**", "gout"),
    ("Final diagnosis: gout", "gout"),
    ("diverticulitus", "diverticulitis"),
    ("apendicitis", "appendicitis"),
    ("ALL", "acute lymphocytic leukemia"),
    ("dress syndrome", "drug reaction with eosinophilia and systemic symptoms"),
    ("post-traumatic stress disorder", "PTSD"),
    ("third-degree AV block", "complete heart block"),
    ("AIDS", "acquired immunodeficiency syndrome"),
    ("Marfan disease", "Marfan syndrome"),
    ("糖尿病", " 糖尿病"),
]
PIECES = sorted(
    {word for pair in CONFLICTING + EQUAL for label in pair for word in label.split()} | {"/", "(", ")", ","}
)
labels = st.one_of(st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join), st.text(max_size=40))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("a", "b"), CONFLICTING)
def test_labels_that_differ_in_a_qualifier_are_different_and_conflict(a: str, b: str) -> None:
    assert not same(a, b)
    assert conflicting(a, b)
    assert conflicting(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_other_confusable_labels_are_different(a: str, b: str) -> None:
    assert not same(a, b)
    assert not same(b, a)


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_other_ways_to_write_a_diagnosis_are_the_same_and_never_conflict(a: str, b: str) -> None:
    assert same(a, b)
    assert same(b, a)
    assert not conflicting(a, b)


@pytest.mark.parametrize(
    ("a", "b"), [("rib fracture", "costochondritis"), ("gout", "psoriasis"), ("pancreatitis", "acute pancreatitis")]
)
def test_just_different_words_and_a_broader_name_do_not_conflict(a: str, b: str) -> None:
    assert not conflicting(a, b)


@given(labels, labels)
def test_same_is_symmetric(a: str, b: str) -> None:
    assert same(a, b) == same(b, a)
    assert conflicting(a, b) == conflicting(b, a)


@given(labels)
def test_same_is_reflexive_and_spaces_do_not_matter(label: str) -> None:
    assert same(label, label)
    assert same(label, f" {label} ")
    assert not conflicting(label, label)


@given(labels, labels)
def test_the_same_diagnosis_never_conflicts(a: str, b: str) -> None:
    assert not (same(a, b) and conflicting(a, b))


@given(st.lists(labels, max_size=8))
def test_merge_returns_every_index_once_in_order_and_joins_all_equal_pairs(names: list[str]) -> None:
    groups_found = merge(names)
    assert sorted(index for group in groups_found for index in group) == list(range(len(names)))
    assert [group[0] for group in groups_found] == sorted(group[0] for group in groups_found)
    assert all(list(group) == sorted(group) for group in groups_found)
    home = {index: number for number, group in enumerate(groups_found) for index in group}
    assert all(home[i] == home[j] for i, j in combinations(range(len(names)), 2) if same(names[i], names[j]))


def test_merge_joins_two_names_by_a_label_that_has_both() -> None:
    assert merge(["tinea of Zog", "gout", "blue rash", "blue rash (tinea of Zog)", "GOUT"]) == ((0, 2, 3), (1, 4))
    assert merge([]) == ()


@pytest.mark.parametrize(
    "word",
    "sepsis sclerosis herpes diabetes pancreas lupus rabies scabies measles mumps rickets psoriasis ascites".split(),
)
def test_words_that_only_look_like_plurals_stay(word: str) -> None:
    assert singular(word) == word


def test_digits_numerals_single_letters_and_sides_are_never_dropped() -> None:
    assert words("hepatitis A") == ("hepatitis", "a")
    assert words("type II") == ("type", "2")
    assert words("21-hydroxylase") == ("21", "hydroxylase")
    assert {"anterior", "hypotension"} <= set(words("anterior hypotension"))
    assert normalise("Type II diabetes (T2DM)") == normalise("diabetes mellitus, type 2") == "2 diabetes mellitus type"


def test_the_normal_form_of_a_label_without_a_word_is_its_text() -> None:
    assert normalise(" ?? ") == "??"


def test_every_group_of_the_synonyms_file_is_the_same_diagnosis_and_no_name_is_in_two_groups() -> None:
    seen: dict[tuple[str, ...], str] = {}
    for group in groups():
        assert all(words(member) for member in group), f"a member without words in {group}"
        if len(group) == 1:
            continue
        for member in group:
            assert same(member, group[0]), f"{member} is not {group[0]}"
            name = tuple(lexicon().word.get(token, token) for token in words(member))
            assert seen.setdefault(name, group[0]) == group[0], f"{member} is in the groups of two names"


def test_the_canonical_names_of_two_groups_are_never_the_same_diagnosis() -> None:
    canonical = [group[0] for group in groups() if len(group) > 1]
    assert len(canonical) > 700
    assert [pair for pair in combinations(canonical, 2) if same(*pair)] == []


def test_an_organ_and_its_adjective_stand_at_the_same_place_of_an_axis() -> None:
    long = [pair for pair in lexicon().word.items() if min(map(len, pair)) > 5]
    assert len(long) > 50
    for word, other in long:
        assert opposed(word, other) or not clash({word}, {other}), f"{word} and {other} clash"


def test_negations_are_words_of_a_label() -> None:
    assert all(words(f"x {word} y")[1] == word for word in NEGATIONS)


MENTIONS = [
    ("Acute appendicitis", "appendicitis", True),
    ("apendicitis", "appendicitis", True),
    ("Appendicitis was ruled out.", "appendicitis", False),
    ("Appendicitis is unlikely", "appendicitis", False),
    ("Unlikely to be appendicitis", "appendicitis", False),
    ("No cholecystitis, appendicitis or pancreatitis", "appendicitis", False),
    ("No fever, acute appendicitis", "appendicitis", True),
    ("Acute appendicitis without perforation", "appendicitis", True),
    ("Not only appendicitis but also peritonitis", "appendicitis", True),
    ("Cholecystitis rather than appendicitis", "appendicitis", False),
    ("Cholecystitis instead of appendicitis", "appendicitis", False),
    ("CT ruled out cholecystitis but showed appendicitis", "cholecystitis", False),
    ("CT ruled out cholecystitis but showed appendicitis", "appendicitis", True),
    ("The patient does not have appendicitis", "appendicitis", False),
    ("Appendicitis: no", "appendicitis", False),
    ("Appendicitis cannot be ruled out", "appendicitis", True),
    ("Final Diagnosis: Cholecystitis\nDifferential: appendicitis", "appendicitis", False),
    ("Differential diagnosis: appendicitis\nFinal Diagnosis: Cholecystitis", "appendicitis", False),
    ("**Final Diagnosis:**\nAcute appendicitis\n\nTreatment:\nSurgery", "appendicitis", True),
    ("Diagnosis: colic\nTreatment: as for cholecystitis", "cholecystitis", False),
    ("Perforated appendix", "appendicitis", True),
    ("No rupture of the appendix", "appendicitis", False),
    ("Normal appendix, inflamed gallbladder", "appendicitis", False),
    ("Liver abscess", "hepatitis", False),
    ("Hypothyroidism", "hyperthyroidism", False),
    ("Pseudogout", "gout", False),
    ("type 1 diabetes", "type 2 diabetes", False),
    ("T2DM, poorly controlled", "type 2 diabetes mellitus", True),
    ("acute on chronic pancreatitis", "chronic pancreatitis", True),
    ("Diverticulosis", "diverticulitis", False),
    ("", "appendicitis", False),
    ("appendicitis", "", False),
]


@pytest.mark.parametrize(("text", "label", "expected"), MENTIONS)
def test_a_text_mentions_a_diagnosis_only_where_it_affirms_it(text: str, label: str, expected: bool) -> None:
    assert mentions(text, label) is expected


@given(st.text(max_size=200), labels)
def test_mentions_takes_any_text(text: str, label: str) -> None:
    assert isinstance(mentions(text, label), bool)


def test_precision_and_recall_on_the_pairs_judged_by_a_dermatologist(shared_data: Path) -> None:
    rows = _rows(shared_data / "same-diagnosis-pairs-dev.jsonl")
    answers = [(same(row["pred"], row["gold"]), row["label"] == 1) for row in rows]
    hits = sum(found and equal for found, equal in answers)
    assert hits / sum(found for found, _ in answers) >= 0.99
    assert hits / sum(equal for _, equal in answers) >= 0.70


def test_at_most_one_false_match_in_a_thousand_pairs_of_different_diagnoses(shared_data: Path) -> None:
    rows = _rows(shared_data / "different-diagnosis-pairs-dev.jsonl")
    false = [row["case"] for row in rows if same(row["a"], row["b"])]
    assert len(false) <= len(rows) / 1000


def test_every_scored_model_output_string_is_right(shared_data: Path) -> None:
    rows = [row for row in _rows(shared_data / "diagnosis-strings-dev.jsonl") if "scores.Diagnosis" in row["expect"]]
    wrong = [
        row["test"]
        for row in rows
        if mentions(row["diagnosis"] or row["prediction"], row["pathology"]) != bool(row["expect"]["scores.Diagnosis"])
    ]
    assert rows
    assert wrong == []


def test_same_answers_more_than_twenty_thousand_calls_a_second() -> None:
    names = [member for group in groups()[:200] for member in group]
    pairs = list(combinations(names, 2))[:20_000]
    for a, b in pairs:
        same(a, b)
    begin = time.perf_counter()
    for a, b in pairs:
        same(a, b)
    assert len(pairs) / (time.perf_counter() - begin) > 20_000
