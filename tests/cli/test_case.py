"""`ddx-local case` as people and programs use it, and `diagnose` with every kind of input."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddx_local.clinical.sections import NAMES, Section, check
from tests.clinical.fhir import bundle, condition, observation, patient, quantity, vital, whole
from tests.command import Command, Done
from tests.toy import CANARY

TEXT = f"Chief complaint: {CANARY} fever and cough for two days.\nPhysical examination: 38.9 °C, crackles.\nHe likes tea.\n"
QUICK = ("--engine", "scripted", "--method", "zero-shot", "--option", "k=2", "--no-store")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes of diagnoses are no part of these tests, and their tables take seconds to load."""
    monkeypatch.setenv("DDX_LOCAL_ICD10", "false")


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), "utf-8")
    return path


def refused(done: Done, code: int) -> str:
    """One paragraph on standard error, nothing on standard output, no clinical text."""
    assert done.code == code, done.err
    assert done.out == ""
    assert done.err.startswith("ddx-local: ")
    assert "Traceback" not in done.err
    assert CANARY not in done.err
    return done.paragraph


def spans(document: Any) -> list[Section]:
    return [Section(item["name"], item["start"], item["end"], item["by"]) for item in document["sections"]]


# --- split --------------------------------------------------------------------------------------------------------------


def test_split_prints_the_sections_as_a_table(command: Command, tmp_path: Path) -> None:
    done = command.run("case", "split", write(tmp_path / "a.txt", TEXT))
    assert done.code == 0
    for part in ("a (text,", "Clinical presentation", "Physical examination", "heading", "crackles"):
        assert part in done.out
    assert done.err == ""


def test_split_as_json_is_a_split_of_the_text_and_a_case_again(command: Command, tmp_path: Path) -> None:
    done = command.run("case", "split", "-", "--json", stdin=TEXT.encode())
    document = done.json
    assert document["schema"] == "ddx-local/sections/1"
    assert document["text"] == TEXT
    assert check(TEXT, spans(document)) == ()
    again = command.run("case", "split", write(tmp_path / "s.json", document), "--json").json
    assert [(part.name, part.start, part.end) for part in spans(again)] == [
        (part.name, part.start, part.end) for part in spans(document)
    ]
    assert again["text"] == TEXT


def test_split_writes_a_file_that_only_its_owner_reads_and_diagnose_takes(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    done = command.run("case", "split", write(tmp_path / "a.txt", TEXT), "--out", out)
    assert (done.code, done.out) == (0, "")
    assert out.stat().st_mode & 0o777 == 0o600
    assert command.run("diagnose", out, *QUICK, "--quiet", "--json", "-").json["case_id"] == "a"


def test_split_by_a_model_assigns_what_is_open_and_moves_nothing_else(command: Command, tmp_path: Path) -> None:
    text = "He fell off a ladder. The dog barked. On examination he was pale and his pulse was 120/min."
    file = write(tmp_path / "a.txt", text)
    done = command.run("case", "split", file, "--engine", "scripted", "--json")
    assert done.code == 0
    assert check(text, spans(done.json)) == ()
    assert done.json["sections"][-1]["by"] == "cue"
    assert {part["by"] for part in done.json["sections"][:-1]} <= {"model", "none"}
    same = command.run("case", "split", file, "--engine", "scripted", "--json")
    assert same.json == done.json
    # Another seed is another answer; of 7 to the power of 2 answers a few seeds give more than one.
    seeds = {
        command.run("case", "split", file, "--engine", "scripted", "--seed", str(n), "--json").out for n in range(4)
    }
    assert len(seeds) > 1


def test_split_opens_no_engine_where_nothing_is_open(command: Command, tmp_path: Path) -> None:
    done = command.run("case", "split", write(tmp_path / "a.txt", "Labs: normal."), "--engine", "scripted", "--json")
    assert "scripted engine" not in done.err


def test_split_refuses_options_that_say_nothing_without_a_model(command: Command, tmp_path: Path) -> None:
    done = command.run("case", "split", write(tmp_path / "a.txt", TEXT), "--seed", "3")
    assert "go with --model" in refused(done, 2)
    done = command.run("case", "split", tmp_path / "a.txt", "--model", "nonesuch")
    assert "nonesuch" in refused(done, 4)
    done = command.run("case", "split", tmp_path / "a.txt", "--out", tmp_path / "no" / "s.json")
    assert "--out" in refused(done, 2)


# --- show ---------------------------------------------------------------------------------------------------------------


def test_show_prints_the_text_as_methods_read_it(command: Command, tmp_path: Path) -> None:
    odd = "no line feed at its end\r\ntab\there"
    assert command.run("case", "show", write(tmp_path / "a.txt", odd)).out.encode() == odd.encode() + b"\n"
    done = command.run("case", "show", write(tmp_path / "b.json", whole()))
    assert done.out.startswith("Basic information:\nFemale, 53 years old.\n\nClinical presentation:\n")
    assert done.err.startswith("ddx-local: left out: Condition: it is a diagnosis")
    assert "Pneumonia" not in done.out + done.err
    assert "Pneumonia" in command.run("case", "show", tmp_path / "b.json", "--with-diagnoses").out


def test_show_tells_several_cases_apart(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "no,story,dx\nx,fever,gout\ny,cough,gout\n")
    done = command.run("case", "show", file, "--column", "text=story,id=no")
    assert done.out == "== x ==\nfever\n== y ==\ncough\n"
    assert done.err == "ddx-local: left out: `dx` (2 times): it is named like the answer, which a case cannot hold\n"
    assert [item["text"] for item in command.run("case", "show", file, "--column", "text=story", "--json").json] == [
        "fever",
        "cough",
    ]


# --- check --------------------------------------------------------------------------------------------------------------


def test_check_says_what_a_file_is_and_that_it_can_be_diagnosed(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    done = command.run("case", "check", file)
    assert done.code == 0
    assert "a: text in UTF-8," in done.out
    assert "clinical presentation" in done.out
    assert f"1 case can be diagnosed: `ddx-local diagnose {file}`" in done.out
    document = command.run("case", "check", file, "--json").json
    assert document["can_be_diagnosed"] is True
    assert document["cases"][0]["characters"] == len(TEXT)
    assert sum(document["cases"][0]["sections"].values()) == pytest.approx(1, abs=0.01)


def test_check_lists_what_was_not_understood(command: Command, tmp_path: Path) -> None:
    data = bundle(
        patient(), condition("c", "Gout"), {"resourceType": "Questionnaire"}, {"resourceType": "Practitioner"}
    )
    done = command.run("case", "check", write(tmp_path / "a.json", data))
    assert "not understood: Questionnaire: this kind of resource is not read" in done.out
    assert "left out: Practitioner" in done.out


BAD: list[tuple[str, bytes, str]] = [
    ("a.txt", b"", "is empty"),
    ("a.txt", b" \n", "is empty"),
    ("a.txt", b"MZ\0\1", "is a binary file"),
    ("a.txt", CANARY.encode() + b" 38.9 \xb0C", "is not UTF-8 (byte"),
    ("a.txt", (CANARY * 30_000).encode("utf-16"), "is UTF-16"),
    ("a.txt", CANARY.encode() * 200_000, "is larger than 1,000,000 bytes"),
    ("a.txt", b"word " * 120_000, "tokens, but the context of smollm2-135m holds"),
    ("a.txt", b"%PDF-1.4 x", "is a PDF file"),
    ("a.json", b"{", "is not valid JSON"),
    ("a.json", b"{}", "has no text field"),
    ("a.csv", b"id,text\nx\n", "line 2: has 1 fields"),
    ("a.json", json.dumps(patient()).encode(), "is a FHIR Patient, not a Bundle"),
    ("a.json", json.dumps(bundle(condition("c", CANARY))).encode(), "holds no Patient"),
    ("a.json", json.dumps(bundle(patient(), patient(id="q"))).encode(), "holds 2 patients"),
    ("a.json", json.dumps(bundle(patient(), {"resourceType": "MedicationOrder"})).encode(), "is FHIR DSTU2, not R4"),
    ("a.json", json.dumps(bundle(patient(), vital("t", CANARY, "8310-5", quantity(98.6, "°C", "Cel")))).encode(),
     "cannot be what its value says"),
    ("a.json", json.dumps(bundle(patient(), observation("t", CANARY, quantity(9, "mg", "mmol")))).encode(), "are different units"),
    ("a.json", json.dumps({"text": CANARY, "sections": [{"name": "unassigned", "start": 0, "end": 2}]}).encode(), "are in no section"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_a_file_that_cannot_be_diagnosed_is_refused_and_says_why(
    name: str, data: bytes, message: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    done = command.run("case", "check", tmp_path / name, "--json")
    assert done.code == 3
    assert done.json["can_be_diagnosed"] is False
    assert message in done.json["error"]["message"]
    assert done.json["error"]["hint"]
    assert CANARY not in done.out + done.err


def test_the_same_refusal_ends_every_verb_in_one_paragraph(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", bundle(patient(), patient(id="q"), condition("c", CANARY)))
    for words in (("case", "check", file), ("case", "show", file), ("case", "split", file), ("diagnose", file, *QUICK)):
        assert "a.json: holds 2 patients; a case is one. Give one bundle for each patient." in refused(
            command.run(*words), 3
        )


def test_a_context_that_is_given_decides_what_is_too_long(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "word " * 2000)
    assert command.run("case", "check", file).code == 0
    done = command.run("case", "check", file, env={"DDX_LOCAL_MAX_MODEL_LEN": "1000"})
    assert "the context of smollm2-135m holds 1,000" in refused(done, 3)


# --- diagnose -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", f"# Chief complaint\n{CANARY} fever\n"),
        ("a.json", whole()),
        ("a.json", {name: f"{CANARY} {name}" for name in NAMES}),
        ("a.json", {"story": f"{CANARY} fever", "more": "cough", "answer": "gout"}),
        ("a.csv", f"id,text,answer\na,{CANARY} fever,gout\n"),
        ("a.ndjson", "\n".join(json.dumps(entry["resource"]) for entry in whole()["entry"])),
    ],
)
def test_diagnose_takes_every_kind_of_input(name: str, data: Any, command: Command, tmp_path: Path) -> None:
    done = command.run("diagnose", write(tmp_path / name, data), *QUICK, "--json", "-", "--quiet")
    assert done.code == 0, done.err
    assert done.json["case_id"] == "a"
    assert done.json["status"] == "finished"
    assert "gout" not in json.dumps(done.json).lower()


def test_diagnose_says_what_it_left_out_unless_it_is_to_be_quiet(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", {"text": f"{CANARY} fever", "diagnosis": "gout"})
    assert "left out: `diagnosis`" in command.run("diagnose", file, *QUICK).err
    assert "left out" not in command.run("diagnose", file, *QUICK, "--quiet", "--json", "-").err
    assert "--column text=diagnosis" in refused(command.run("diagnose", file, *QUICK, "--column", "text=diagnosis"), 2)


@pytest.mark.parametrize("verb", ["split", "show", "check"])
def test_every_verb_has_examples(verb: str, command: Command) -> None:
    done = command.run("case", verb, "--help")
    assert f"ddx-local case {verb} " in done.out
    assert "FHIR R4" in done.out
