"""From files to cases: what is taken, with which id, and what is refused, in words that do not repeat the case."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddx_local.clinical.intake import LONGEST_ID, MOST_BYTES, read_all, read_cases
from ddx_local.clinical.taken import shown
from ddx_local.errors import InputError

TEXT = "A man of 54 with Zanthoxylum fever.\r\nBP 120/80, “38.9 °C” 漢字\n"


def write(path: Path, data: bytes | str) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def refused(*sources: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read_cases(sources)
    error = caught.value
    assert error.exit_code == 3
    assert error.hint
    assert "Zanthoxylum" not in error.message + error.hint
    return error


def from_stdin(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return read_cases(["-"])


# --- what is taken ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fever.txt", "fever.md", "fever", "fever.TXT", "fever.note"])
def test_a_text_is_taken_to_the_letter_under_its_file_s_stem(name: str, tmp_path: Path) -> None:
    (case,) = read_cases([write(tmp_path / name, TEXT)])
    assert (case.id, case.text) == ("fever", TEXT)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (case,) = read_cases([write(tmp_path / "a.txt", b"\xef\xbb\xbf" + TEXT.encode())])
    assert case.text == TEXT
    (case,) = read_cases([write(tmp_path / "b.json", b"\xef\xbb\xbf" + json.dumps({"text": TEXT}).encode())])
    assert case.text == TEXT


@pytest.mark.parametrize("key", ["text", "case"])
def test_a_json_object_is_one_case_with_its_own_id_or_the_file_s(key: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", json.dumps([{key: TEXT, "id": "p1"}, {key: TEXT, "id": 7}, {key: TEXT}]))
    assert [(case.id, case.text) for case in read_cases([file])] == [("p1", TEXT), ("7", TEXT), ("a-3", TEXT)]
    (case,) = read_cases([write(tmp_path / "b.JSON", json.dumps({key: TEXT, "answer": "gout"}))])
    assert (case.id, case.text) == ("b", TEXT)


def test_an_array_of_one_has_the_file_s_stem(tmp_path: Path) -> None:
    assert read_cases([write(tmp_path / "a.json", json.dumps([{"text": TEXT}]))])[0].id == "a"


def test_json_lines_are_cases_blank_lines_are_none_and_only_line_feeds_end_one(tmp_path: Path) -> None:
    odd = "A cough\u2028and fever\x85since\u2029Monday"
    lines = [json.dumps({"text": odd}, ensure_ascii=False), "", "  ", json.dumps({"text": TEXT, "id": "x"}), ""]
    cases = read_cases([write(tmp_path / "a.jsonl", "\r\n".join(lines))])
    assert [(case.id, case.text) for case in cases] == [("a-1", odd), ("x", TEXT)]


def test_standard_input_is_a_text_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = from_stdin(TEXT.encode(), monkeypatch)
    assert (case.id, case.text) == ("stdin", TEXT)
    cases = from_stdin(json.dumps([{"text": TEXT}, {"text": "b", "id": "two"}]).encode(), monkeypatch)
    assert [(case.id, case.text) for case in cases] == [("stdin-1", TEXT), ("two", "b")]
    (case,) = from_stdin(b' \n { "text": "a cough" }', monkeypatch)
    assert case.text == "a cough"


@pytest.mark.parametrize("note", ["[Chief complaint] cough", "{sic} cough", "[2 days] cough", "[x"])
def test_a_note_that_begins_with_a_bracket_is_a_text(
    note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert from_stdin(note.encode(), monkeypatch)[0].text == note
    assert read_cases([write(tmp_path / "note", note)])[0].text == note
    assert read_cases([write(tmp_path / "note.txt", '{"text": "quoted"}')])[0].text == '{"text": "quoted"}'


def test_a_folder_stands_for_its_case_files_by_name_and_hidden_ones_are_none(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "c.JSON", "._b.txt", ".a.txt", "notes.pdf", "d.jsonl"):
        data = b"\0\5\x16\7" if name.startswith(".") else json.dumps({"text": name}).encode()
        write(tmp_path / name, data)
    (tmp_path / "e.txt").mkdir()
    cases = read_cases([str(tmp_path)])
    assert [case.id for case in cases] == ["a", "b", "c", "d-1"]


def test_ids_are_distinct_in_the_order_given(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    sources = [write(tmp_path / folder / "a.txt", f"{folder} cough") for folder in ("one", "two")]
    sources += [write(tmp_path / "a-2.txt", "third"), sources[0], write(tmp_path / "a-2.md", "fifth")]
    cases = read_cases(sources)
    assert [case.text for case in cases] == ["one cough", "two cough", "third", "one cough", "fifth"]
    assert len({case.id for case in cases}) == 5
    assert [case.id for case in cases[:2]] == ["a", "a-2"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", "a"),
        ("  ", "a"),
        (True, "a"),
        (None, "a"),
        (["x"], "a"),
        (1.5, "a"),
        ("bad\x1b[31m\nid", "bad_[31m_id"),
        ("lone \ud800", "lone _"),
        ("x" * 5000, "x" * LONGEST_ID),
        ("Müller 漢", "Müller 漢"),
    ],
)
def test_an_id_can_be_stored_and_shown_whatever_was_given(given: Any, shown: str, tmp_path: Path) -> None:
    (case,) = read_cases([write(tmp_path / "a.json", json.dumps({"text": TEXT, "id": given}))])
    assert case.id == shown
    assert case.id.encode()


def test_a_file_name_that_is_no_text_gives_an_id_that_is_one(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(path, "w") as file:  # noqa: PTH123  # a path of bytes
        file.write("a cough")
    (case,) = read_cases([str(tmp_path)])
    assert case.id == "caf_"


def test_a_case_can_come_through_a_pipe() -> None:
    code = "import sys; from ddx_local.clinical.intake import read_cases; print(read_cases(sys.argv[1:])[0].text)"
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" <(echo a cough)', sys.executable, code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "a cough"


# --- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n ", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a"])
def test_an_empty_or_blank_file_is_refused(data: bytes, name: str, tmp_path: Path) -> None:
    error = refused(write(tmp_path / name, data))
    assert error.message == f"{tmp_path / name}: is empty"


@pytest.mark.parametrize("text", ["[]", '{"text": " "}'])
def test_json_without_a_case_in_it_is_refused(text: str, tmp_path: Path) -> None:
    assert refused(write(tmp_path / "a.json", text)).message.endswith("a.json: is empty")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.json", '[{"text": "a"}, {"text": ""}]', "a.json, case 2: is empty"),
        ("a.json", '[{"text": "a"}, 5]', "a.json, case 2: has no text field `text`"),
        ("a.json", '[{"text": "a"}, {"text": "\\ud800"}]', "a.json, case 2: its text holds characters"),
        ("a.jsonl", '{"text": "a"}\n\n{"text": " "}\n', "a.jsonl, line 3: is empty"),
        ("a.csv", "id,text\n1,a\n2,\n3,b\n", "a.csv, line 3: is empty"),
    ],
)
def test_of_several_cases_the_one_that_is_none_is_named(name: str, text: str, place: str, tmp_path: Path) -> None:
    assert place in refused(write(tmp_path / name, text)).message


@pytest.mark.parametrize("data", ["\u200b\u200b\n", "- - -\n", "…"])
def test_a_text_without_a_letter_or_a_digit_is_no_case(data: str, tmp_path: Path) -> None:
    assert refused(write(tmp_path / "a.txt", data)).message.endswith("a.txt: holds no word, only marks and blanks")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.json", '{"text": "Zanthoxylum", "text": "b"}', "a.json: an object has the key `text` twice"),
        ("a.json", '{"sections": {"medical_history": "a", "medical_history": "b"}}', "the key `medical_history` twice"),
        ("a.json", '{"text": "a", "\\u001b": 1, "\\u001b": 1}', "the key `_` twice"),
        ("a.jsonl", '{"text": "a"}\n{"text": "a", "text": "b"}', "a.jsonl, line 2: an object has the key `text` twice"),
    ],
)
def test_a_key_that_stands_twice_is_refused_and_neither_is_dropped(
    name: str, text: str, place: str, tmp_path: Path
) -> None:
    assert place in refused(write(tmp_path / name, text)).message


def test_an_empty_argument_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.txt", TEXT)
    monkeypatch.chdir(tmp_path)
    assert len(read_cases(["."])) == 1
    for source in ("", "  "):
        assert refused(source).message == "the argument CASE is empty"


def test_what_a_folder_holds_beside_its_cases_is_listed_once(tmp_path: Path) -> None:
    for name in ("b.txt", "c.txt", "scan.pdf", "Quillfeather.pdf", ".hidden.pdf", "readme"):
        write(tmp_path / name, TEXT)
    (tmp_path / "more.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    first, second = read_all([str(tmp_path)])
    folder = shown(str(tmp_path))
    assert [(remark.kind, remark.what, remark.count) for remark in first.remarks] == [
        ("left out", f"a file `*.pdf` in {folder}", 2),
        ("left out", f"a file `*.txt` in {folder}", 1),
        ("left out", f"a file `*` in {folder}", 1),
        ("left out", f"a folder in {folder}", 1),
    ]
    assert second.remarks == ()
    assert [Path(taken.source) for taken in (first, second)] == [tmp_path / "b.txt", tmp_path / "c.txt"]


@pytest.mark.parametrize("given", [True, ["x"], 1.5, {"a": 1}, "x" * (LONGEST_ID + 1), "a\nb"])
def test_an_id_that_a_case_does_not_have_as_it_was_given_is_said(given: Any, tmp_path: Path) -> None:
    (taken,) = read_all([write(tmp_path / "a.json", json.dumps({"text": TEXT, "id": given}))])
    assert [(remark.kind, remark.what) for remark in taken.remarks] == [("left out", "`id`, or a part of it")]


@pytest.mark.parametrize("given", ["p1", " p1 ", 7, None, "", "x" * LONGEST_ID])
def test_an_id_that_a_case_has_is_not_worth_a_word(given: Any, tmp_path: Path) -> None:
    (taken,) = read_all([write(tmp_path / "a.json", json.dumps({"text": TEXT, "id": given}))])
    assert taken.remarks == ()


def test_empty_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"", b"\n"):
        with pytest.raises(InputError, match="standard input: is empty"):
            from_stdin(data, monkeypatch)
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input: is closed" in refused("-").message


@pytest.mark.parametrize("data", [b"MZ\0\0", b"%PDF-1.7\0", b"a cough\0", bytes(range(256)), b"\0" * 5000])
def test_a_binary_file_is_refused(data: bytes, tmp_path: Path) -> None:
    assert "a.txt: is a binary file" in refused(write(tmp_path / "a.txt", data)).message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_and_32_are_refused(encoding: str, tmp_path: Path) -> None:
    error = refused(write(tmp_path / "a.txt", "A man of 54 with Zanthoxylum fever".encode(encoding)))
    named = encoding == "utf-16" or (encoding == "utf-32" and sys.byteorder == "little")
    assert ("is UTF-16, not UTF-8" if named else "is a binary file") in error.message


def test_another_8_bit_encoding_is_refused_with_the_place(tmp_path: Path) -> None:
    error = refused(write(tmp_path / "a.txt", "Zanthoxylum 38.9 °C".encode("latin-1")))
    assert error.message.endswith("a.txt: is not UTF-8 (byte 17)")
    assert "UTF-8" in error.hint


def test_a_text_of_5_mb_is_refused_and_one_at_the_limit_is_not(tmp_path: Path) -> None:
    error = refused(write(tmp_path / "a.txt", b"Zanthoxylum " * 420_000))
    assert f"is larger than {MOST_BYTES:,} bytes" in error.message
    assert "part that matters" in error.hint
    assert "is larger" in refused(write(tmp_path / "b.txt", b"x" * (MOST_BYTES + 1))).message
    (case,) = read_cases([write(tmp_path / "c.txt", b"x" * MOST_BYTES)])
    assert len(case.text) == MOST_BYTES


def test_an_endless_standard_input_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/zero").open(encoding="utf-8") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        assert "is larger" in refused("-").message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "Zanthoxylum', "is not valid JSON (at character 10)"),
        ('{"text":\n"Zanthoxylum",}', "is not valid JSON (line 2)"),
        ("Zanthoxylum", "is not valid JSON (at character 1)"),
        ('"Zanthoxylum"', "has no text field `text`"),
        ("7", "has no text field `text`"),
        ("null", "has no text field `text`"),
        ('{"note": "Zanthoxylum"}', "has no text field `text`"),
        ('{"text": ["Zanthoxylum"]}', "has no text field `text`"),
        ('[{"text": "a"}, "Zanthoxylum"]', "has no text field `text`"),
        ("[" * 100_000, "its JSON is nested too deeply"),
        ('{"a":' * 50_000, "its JSON is nested too deeply"),
        ("1" * 5000, "holds a number that is too large"),
        ('{"text": "a", "n": 1e999999999999999999999}', "holds a number that is too large"),
        ('{"text": "Zanthoxylum \\ud800"}', "its text holds characters that are no text"),
        ('{"text": "Zanthoxylum \\u0000"}', "its text holds characters that are no text"),
    ],
)
def test_json_that_is_no_case_is_refused_without_repeating_it(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(write(tmp_path / "a.json", text)).message


def test_a_faulty_line_of_json_lines_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "a"}\n\n{"text": Zanthoxylum}\n')
    assert "a.jsonl, line 3: is not valid JSON" in refused(file).message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "nowhere.txt"))
    assert error.message == f"{tmp_path / 'nowhere.txt'}: cannot be read: No such file or directory"


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.pdf", "x")
    write(tmp_path / ".hidden.txt", "x")
    assert "holds no case file (.txt, .md, .json, .jsonl, .ndjson, .csv, .tsv)" in refused(str(tmp_path)).message


def test_one_faulty_file_of_several_is_named_and_nothing_runs(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "a cough")
    write(tmp_path / "b.txt", "")
    assert f"{tmp_path / 'b.txt'}: is empty" in refused(str(tmp_path)).message


@pytest.mark.parametrize(
    "text",
    [
        "A man of 54 with Zanthoxylum fever, a cough and a rash since Monday.",
        "Zanthoxylum\nfever",
        "Zanthoxylum" * 30,
        "Zanthoxylum fever, " * 400,
    ],
)
def test_a_case_text_in_place_of_a_path_is_recognised_and_not_repeated(text: str) -> None:
    error = refused(text)
    assert "is a text, not the path of a file" in error.message
    assert "diagnose - <" in error.hint


def test_no_source_is_no_case() -> None:
    assert refused().message == "no case was given"
