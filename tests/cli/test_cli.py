"""The command line as people and programs use it: results, errors in one paragraph, exit codes, Ctrl-C, nothing that leaks."""

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddx_local import DISCLAIMER, __version__
from ddx_local.cli.failure import EXIT_CODES
from ddx_local.events import Answered, Asked
from ddx_local.result import schema
from ddx_local.store import Store
from tests.command import ROOT, Command, Done
from tests.toy import CANARY

TEXT = f"A man of 54 has had {CANARY} fever and a productive cough for two days, “38.9 °C”.\n"
QUICK = ("--engine", "scripted", "--method", "zero-shot", "--option", "k=2")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    found = Command(tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "fever.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store that all commands of a test use; in a folder of its own, which is not there yet."""
    path = tmp_path / "kept" / "runs.sqlite"
    monkeypatch.setenv("DDX_LOCAL_STORE", str(path))
    return path


def one_paragraph(done: Done, code: int) -> str:
    """A clean error: the exit code, one paragraph on standard error, nothing on standard output, no clinical text."""
    assert done.code == code, done.err
    assert code in EXIT_CODES
    assert done.out == ""
    assert done.err.count("ddx-local: ") == 1
    assert done.err.startswith("ddx-local: ")
    assert done.err.endswith("\n")
    assert "\n\n" not in done.err
    assert max(len(line) for line in done.err.splitlines()) <= 110 or len(done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert CANARY not in done.err
    return done.paragraph


# --- results ------------------------------------------------------------------------------------------------------------


def test_one_case_gives_a_report_the_live_view_beside_it_and_a_run_in_the_store(
    command: Command, case: Path, store: Path
) -> None:
    done = command.run("diagnose", case, *QUICK)
    assert done.code == 0
    for part in ("fever: zero-shot on scripted", "Differential", "The case", DISCLAIMER.split(".")[0]):
        assert " ".join(part.split()) in " ".join(done.out.split())
    assert "zero_shot/differential" in done.err
    run_id = Store(store).find("last").run_id
    assert f"ddx-local runs show {run_id}" in done.err
    again = command.run("runs", "show", "last")
    assert again.out == done.out


def test_json_on_standard_output_is_alone_there_and_obeys_the_schema(command: Command, case: Path, store: Path) -> None:
    for more in ((), ("--quiet",)):
        done = command.run("diagnose", case, *QUICK, "--json", "-", *more)
        assert done.code == 0
        jsonschema.validate(done.json, schema())
        assert done.json["case_id"] == "fever"
        for entry in done.json["differential"]:
            for item in entry["evidence"]:
                assert TEXT[item["start"] : item["end"]] == item["quote"]
        assert (done.err == "") == bool(more)
    shown = command.run("runs", "show", "last", "--json")
    assert shown.json == done.json
    assert store.exists()


def test_several_cases_give_a_list_in_the_order_given(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "a.txt").write_text("A cough and a rash since Monday.")
    (folder / "b.json").write_text(json.dumps({"id": "bea", "text": "Fever after a flight to Peru."}))
    done = command.run("diagnose", case, folder, "-", *QUICK, "--json", "-", stdin=b"Pain in the left big toe.")
    assert [item["case_id"] for item in done.json] == ["fever", "a", "bea", "stdin"]
    for item in done.json:
        jsonschema.validate(item, schema())
    assert len(Store(store).runs()) == 1
    assert "4 cases" in done.err


def test_the_json_file_is_private_whole_and_replaces_what_a_link_names(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    old = tmp_path / "results" / "old.json"
    old.parent.mkdir()
    old.write_text("old")
    old.chmod(0o644)
    link = tmp_path / "results" / "link.json"
    link.symlink_to(old)
    assert command.run("diagnose", case, *QUICK, "--quiet", "--json", link).code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    jsonschema.validate(json.loads(old.read_text("utf-8")), schema())
    assert sorted(path.name for path in old.parent.iterdir()) == ["link.json", "old.json"]
    assert store.exists()


def test_the_same_seed_gives_the_same_result_another_gives_another(command: Command, case: Path) -> None:
    def result(*more: str) -> Any:
        return command.run("diagnose", case, *QUICK, "--no-store", "--json", "-", "--quiet", *more).json["differential"]

    assert result() == result("--seed", "0") == result("--seed=0", "--at-once", "1")
    assert result("--seed", "1") != result()


def test_scot_with_options_runs_from_end_to_end(command: Command, case: Path, store: Path) -> None:
    words = ("--engine", "scripted", "--agents", "2", "-o", "k=1", "--option", "without=refinement", "--json", "-")
    done = command.run("diagnose", case, *words)
    assert done.code == 0
    jsonschema.validate(done.json, schema())
    options = done.json["options"]
    assert (options["agents"], options["k"], options["without"]) == (2, 1, ["refinement"])
    assert done.json["totals"]["batches"] <= 11
    for name in ("scot/panel", "scot/triage", "scot/vote"):
        assert f"{name}  " in done.err
    assert store.exists()


def test_a_settings_file_and_the_environment_count_and_a_flag_wins(
    command: Command, case: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('engine = "scripted"\ndefault_method = "zero-shot"\nseed = 3\n[method.zero-shot]\nk = 2\n')
    env = {"DDX_LOCAL_CONFIG": str(config), "DDX_LOCAL_SEED": "4"}
    done = command.run("diagnose", case, "--no-store", "--json", "-", "--quiet", env=env)
    assert (done.json["method"], done.json["seed"], done.json["options"]["k"]) == ("zero-shot", 4, 2)
    done = command.run("diagnose", case, "--no-store", "--json", "-", "-o", "k=1", "--seed", "5", "--quiet", env=env)
    assert (done.json["seed"], done.json["options"]["k"]) == (5, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[method.scto]\nk = 2\n", "settings, [method.scto]: no method `scto`: did you mean scot"),
        ("[method.zero-shot]\nk = 2.5\n", "settings, [method.zero-shot]: k=2.5: must be a whole number"),
        ("[method.zero-shot]\nk = 99\n", "settings, [method.zero-shot]: method `zero-shot`: k must be 1 to 10"),
        ("[method.zero-shot]\nkk = 2\n", "method `zero-shot` has no option `kk`: did you mean k?"),
        ('[roles]\nphysican = "x"\n', "settings, [roles]: physican=x: method `zero-shot` has no role `physican`"),
    ],
)
def test_a_fault_of_the_settings_is_told_as_theirs_and_not_as_a_flag_s(
    text: str, said: str, command: Command, case: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    words = ("diagnose", case, "--engine", "scripted", "--method", "zero-shot", "--no-store", "--quiet")
    env = {"DDX_LOCAL_CONFIG": str(config)}
    assert said in one_paragraph(command.run(*words, env=env), 2)
    wrong = one_paragraph(command.run(*words, "--option", "k=many", env=env), 2)
    assert ("scto" in wrong) == ("scto" in text)
    assert "scto" in text or "--option k=many: must be a whole number" in wrong


def test_a_dry_run_asks_nobody_stores_nothing_and_says_what_would_be_asked(
    command: Command, case: Path, store: Path
) -> None:
    done = command.run("diagnose", case, "--dry-run", "--method", "zero-shot")
    assert done.code == 0
    assert re.search(r"fever: 1 \.\. 1 calls, 1 \.\. 1 batches, [\d,]+ \.\. [\d,]+ prompt bytes", done.out)
    assert not store.parent.exists()


def test_a_dry_run_is_json_where_json_is_asked_for(command: Command, case: Path, tmp_path: Path, store: Path) -> None:
    flags = ("diagnose", case, "--dry-run", "--method", "zero-shot", "--json")
    done = command.run(*flags, "-")
    assert (done.code, done.err) == (0, "")
    assert done.json["method"] == "zero-shot"
    assert done.json["cost"][0]["calls"] == {"least": 1, "most": 1}
    written = command.run(*flags, tmp_path / "cost.json")
    assert (written.code, written.out) == (0, "")
    assert json.loads((tmp_path / "cost.json").read_text()) == done.json
    assert not store.parent.exists()


def test_a_result_replaces_neither_the_run_store_nor_a_file_of_cases_that_a_method_reads(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    assert command.run("diagnose", case, *QUICK).code == 0
    before = store.read_bytes()
    for words in (
        ("diagnose", case, *QUICK, "--json", store),
        ("diagnose", case, *QUICK, "--html", store),
        ("runs", "show", "last", "--html", store),
        ("runs", "export", "last", "--out", store),
        ("case", "split", case, "--out", store),
    ):
        assert "is a database, such as the run store, and would be replaced" in one_paragraph(command.run(*words), 2)
    assert store.read_bytes() == before
    pool = tmp_path / "pool.jsonl"
    pool.write_text('{"text": "a rash", "diagnoses": ["measles"]}\n')
    few = ("--engine", "scripted", "--method", "few-shot", "--option", f"pool={pool}")
    assert "is a file that is read here" in one_paragraph(command.run("diagnose", case, *few, "--json", pool), 2)
    assert "measles" in pool.read_text()
    assert "is a file that is read here" in one_paragraph(command.run("case", "split", case, "--out", case), 2)
    assert case.read_text() == TEXT


@pytest.mark.usefixtures("store")
def test_a_case_that_fails_says_why_though_nothing_else_is_to_be_said(command: Command, case: Path) -> None:
    done = command.run("diagnose", case, "--engine", "scripted", "--quiet", "--budget-tokens", "1")
    assert "case `fever` failed (BudgetSpent): " in one_paragraph(done, 6)
    assert "Raise --budget-tokens" in done.paragraph
    assert "case `fever` failed (BudgetSpent): " in one_paragraph(command.run("runs", "resume", "last", "--quiet"), 6)


# --- what stays behind --------------------------------------------------------------------------------------------------


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_no_store_leaves_no_file(command: Command, case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.delenv("DDX_LOCAL_STORE")
    env = {name: str(home / name) for name in ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    (home / "TMPDIR").mkdir()
    done = command.run("diagnose", case, *QUICK, "--no-store", env=env, cwd=home)
    assert done.code == 0
    assert "runs show" not in done.err
    assert files_below(home) == set()


def test_the_case_text_is_in_no_file_but_the_store_and_the_results_and_never_on_standard_error_when_quiet(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = {name: str(home / name) for name in ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    (home / "TMPDIR").mkdir()
    out = tmp_path / "results.json"
    done = command.run("diagnose", case, *QUICK, "--quiet", "--json", out, env=env)
    assert (done.code, done.out, done.err) == (0, "", "")
    command.run("diagnose", case, *QUICK, "--quiet", "--max-model-len", "300", env=env)
    holding = {path for path in files_below(tmp_path) if CANARY.encode() in path.read_bytes()}
    assert holding <= {case, out}, "in plain text only in the case's own file and the results"
    # In the cache folder is the table of codes, which holds nothing of a case.
    assert {path.parent for path in files_below(tmp_path)} <= {
        tmp_path,
        store.parent,
        home / "XDG_CACHE_HOME" / "ddx-local",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in files_below(store.parent)} == {0o600}
    opened = Store(store)
    texts = [text for row in opened.runs() for _, text in opened.all_texts(row.run_id)]
    assert TEXT in texts


def test_looking_at_runs_makes_no_store(command: Command, store: Path) -> None:
    done = command.run("runs", "list")
    assert (done.code, done.out) == (0, "No runs yet. Try: ddx-local diagnose case.txt\n")
    assert command.run("runs", "list", "--json").json == []
    assert "the store is empty" in one_paragraph(command.run("runs", "show", "last"), 2)
    assert not store.parent.exists()


# --- bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"MZ\0\0" + CANARY.encode(), "is a binary file"),
        (TEXT.encode("utf-16"), "is UTF-16, not UTF-8"),
        (TEXT.encode() * 60_000, "is larger than 1,000,000 bytes"),
        (f"{CANARY} caf".encode() + b"\xe9", "is not UTF-8"),
    ],
    ids=["empty", "blank", "binary", "utf-16", "5 MB", "latin-1"],
)
def test_a_file_that_is_no_case_is_an_error_of_the_input(
    data: bytes, said: str, command: Command, case: Path, store: Path
) -> None:
    case.write_bytes(data)
    paragraph = one_paragraph(command.run("diagnose", case, *QUICK), 3)
    assert f"{case}: {said}" in paragraph
    assert not store.parent.exists(), "nothing was begun"
    assert said in one_paragraph(command.run("diagnose", "-", *QUICK, stdin=data), 3)


BAD = [
    (["diagnose", "{case}", "--method", "scott"], 2, "no method `scott`: did you mean scot"),
    (["diagnose", "{case}", "--model", "smolm2-135m", "--method", "zero-shot"], 4, "did you mean smollm2-135m"),
    (["diagnose", "{case}", *QUICK, "-o", "kk=3"], 2, "has no option `kk`: did you mean k?"),
    (["diagnose", "{case}", *QUICK[:4], "-o", "k=many"], 2, "k=many: must be a whole number"),
    (["diagnose", "{case}", *QUICK[:4], "-o", "k=99"], 2, "k must be 1 to 10"),
    (["diagnose", "{case}", *QUICK[:4], "-o", "k"], 2, "write it as name=value"),
    (["diagnose", "{case}", *QUICK, "-o", "k=1"], 2, "given twice"),
    (["diagnose", "{case}", *QUICK, "--agents", "3"], 2, "has no option `agents`"),
    (["diagnose", "{case}", "--engine", "vlm"], 2, "setting `engine` (--engine)"),
    (["diagnose", "{case}", *QUICK, "--dtype", "int8"], 2, "setting `dtype` (--dtype)"),
    (["diagnose", "{case}", *QUICK, "--seed", "-1"], 2, "setting `seed` (--seed)"),
    (["diagnose", "{case}", *QUICK, "--seed", "x"], 2, "Invalid value for '--seed'"),
    (["diagnose", "{case}", "--modle", "x"], 2, "No such option: --modle (Possible options: --"),
    (["diagnose"], 2, "Missing argument 'CASE...'"),
    (["diagnoze", "{case}"], 2, "Did you mean 'diagnose'?"),
    (["diagnose", "{case}.txt", *QUICK], 3, "cannot be read: No such file or directory"),
    (["diagnose", "A man of 54 with " + CANARY + " fever, a cough and a rash.", *QUICK], 3, "is a text, not the path"),
    (["diagnose", "{folder}", *QUICK], 3, "holds no case file"),
    (["diagnose", "{case}", *QUICK, "--json", "{folder}"], 2, "--json {folder}: cannot be written"),
    (["diagnose", "{case}", *QUICK, "--json", "{folder}/no/o.json"], 2, "cannot be written"),
    (["diagnose", "{case}", *QUICK, "--json", "{folder}/../fever.txt"], 2, "fever.txt: is a file that is read here"),
    (["diagnose", "{case}", *QUICK, "--html", "{case}"], 2, "--html {case}: is a file that is read here"),
    (["diagnose", "{case}", *QUICK, "--dry-run", "--html", "x.html"], 2, "--html: a dry run has no result"),
    (["diagnose", "", *QUICK], 3, "the argument CASE is empty"),
    (["diagnose", "{case}", "--engine", "scripted", "-m", "ZERO-SHOT"], 2, "did you mean zero-shot"),
    (
        ["diagnose", "{case}", *QUICK, "--store", "{case}"],
        7,
        "{case} is no run store but another kind of file, or a damaged one",
    ),
    (["diagnose", "{case}", *QUICK, "--store", "{folder}"], 7, "{folder} cannot be used: Is a directory"),
    (["diagnose", "{case}", *QUICK, "--store", "{case}/runs.sqlite"], 7, "cannot be used"),
    (["runs", "show", "nothing"], 2, "no run `nothing`"),
    (["runs", "list", "--store", "{folder}/none.sqlite"], 7, "none.sqlite: no such file"),
    (["runs", "lst"], 2, "Did you mean 'list'?"),
    (["methods", "show", "zeroshot"], 2, "did you mean zero-shot"),
    (["models", "show", "smollm"], 4, "did you mean smollm2-"),
    (["models", "verify", "smollm"], 4, "did you mean smollm2-"),
]


@pytest.mark.parametrize(("words", "code", "said"), BAD, ids=[" ".join(words)[:60] for words, _, _ in BAD])
def test_a_wrong_command_is_one_paragraph_with_what_to_do(
    words: list[str], code: int, said: str, command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    places = {"{case}": str(case), "{folder}": str(folder)}

    def filled(text: str) -> str:
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    paragraph = one_paragraph(command.run(*map(filled, words)), code)
    assert filled(said) in paragraph
    hint = paragraph.partition(said[-8:])[2]
    assert re.search(r"\b(See|Give|Save|Check|Leave|write|given|must|is|--)\b|`", hint or paragraph)
    assert case.read_text() == TEXT
    assert not store.exists() or Store(store).runs() == ()


def test_a_missing_model_is_an_error_with_the_command_that_fetches_it(
    command: Command, case: Path, tmp_path: Path
) -> None:
    env = {"DDX_LOCAL_MODELS": str(tmp_path / "none")}
    paragraph = one_paragraph(command.run("diagnose", case, "--method", "zero-shot", "--no-store", env=env), 4)
    assert "smollm2-135m" in paragraph
    assert "ddx-local models pull smollm2-135m" in paragraph


def test_a_case_longer_than_the_context_is_refused_with_the_numbers(command: Command, case: Path, store: Path) -> None:
    done = command.run("diagnose", case, *QUICK, "--max-model-len", "300", "--json", "-")
    assert done.code == 6
    assert done.json["status"] == "failed"
    error = done.json["error"]
    assert error["kind"] == "ContextLengthExceeded"
    assert re.search(
        r"\d+ prompt tokens \+ \d+ for the longest answer = \d+, but the context holds 300", error["message"]
    )
    assert "failed: " in done.err
    assert CANARY not in done.err
    shown = command.run("runs", "show", "last")
    assert shown.code == 0
    assert "failed (ContextLengthExceeded)" in shown.out
    assert store.exists()


def test_one_failed_case_of_several_is_exit_code_6_and_the_others_are_there(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    long = tmp_path / "long.txt"
    long.write_text(TEXT * 100)
    done = command.run("diagnose", long, case, *QUICK, "--max-model-len", "3000", "--json", "-", "--quiet")
    assert done.code == 6
    assert [item["status"] for item in done.json] == ["failed", "finished"]
    for item in done.json:
        jsonschema.validate(item, schema())
    assert store.exists()


def test_a_folder_that_cannot_be_written_and_a_full_disk_are_one_paragraph(case: Path, tmp_path: Path) -> None:
    # Enough for the tables, not for a run.
    for options, said in (("ro", "Read-only file system"), ("size=72k", "full")):
        mount = f'mount -t tmpfs -o {options} tmpfs "$1" && shift && exec "$@"'
        place = tmp_path / f"disk{len(options)}"
        place.mkdir()
        words = [
            sys.executable,
            "-m",
            "ddx_local.cli.main",
            "diagnose",
            str(case),
            *QUICK,
            "--store",
            f"{place}/r.sqlite",
        ]
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount, "sh", str(place), *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare" in done.stderr or "mount" in done.stderr:
            pytest.skip("`unshare -rm` with a mount is not permitted here")
        error = done.stderr[done.stderr.index("ddx-local: the run store") :]
        paragraph = one_paragraph(Done(done.returncode, done.stdout, error), 7)
        assert f"the run store {place}/r.sqlite cannot be used" in paragraph
        assert said in paragraph
        assert "--no-store" in paragraph


# --- Ctrl-C -------------------------------------------------------------------------------------------------------------


def test_ctrl_c_in_the_middle_stops_cleanly_names_the_resume_command_and_that_command_works(
    command: Command, case: Path, tmp_path: Path, store: Path
) -> None:
    second = tmp_path / "rash.txt"
    second.write_text("A rash on both arms since Monday, and joint pain.")
    scot = ("--engine", "scripted", "--agents", "2", "-o", "k=1", "-o", "without=refinement")
    whole = command.run("diagnose", case, second, *scot, "--no-store", "--quiet", "--json", "-").json
    out = tmp_path / "out.json"
    pid = command.begin("diagnose", case, second, *scot, "--json", out, env={"DDX_TEST_DELAY": "0.02"})
    command.wait_for("scot/panel")
    os.kill(pid, signal.SIGINT)
    done = command.end()
    assert done.code == 130
    assert done.out == ""
    assert "Traceback" not in done.err
    assert not out.exists()
    (resume,) = re.findall(r"go on with:  (ddx-local runs resume \S+)\n", done.err)
    opened = Store(store)
    (row,) = opened.runs()
    assert row.status == "cancelled"
    cancelled = command.run("runs", "show", "last", "--json").json
    assert [item["status"] for item in cancelled] == ["cancelled", "cancelled"]
    before = [event for event in opened.events(row.run_id) if isinstance(event, Answered)]
    assert before
    again = command.run(*resume.split()[1:], "--quiet", "--json", "-")
    assert again.code == 0
    assert [item["differential"] for item in again.json] == [item["differential"] for item in whole]
    for kind in (Asked, Answered):
        calls = [(e.case_id, e.round, e.key) for e in opened.events(row.run_id) if isinstance(e, kind)]
        assert len(calls) == len(set(calls))
    assert command.run("runs", "replay", "last").code == 0


def test_the_resume_command_names_a_store_that_a_flag_chose(command: Command, case: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where.sqlite"
    words = ("--engine", "scripted", "--agents", "2", "-o", "k=1", "--store", elsewhere)
    pid = command.begin("diagnose", case, *words, env={"DDX_TEST_DELAY": "0.05"})
    command.wait_for(" on scripted: ")
    os.kill(pid, signal.SIGINT)
    done = command.end()
    assert done.code == 130
    run_id = Store(elsewhere).find("last").run_id
    assert f"ddx-local runs resume {run_id} --store '{elsewhere}'" in done.err


def test_ctrl_c_without_a_store_promises_nothing(command: Command, case: Path) -> None:
    words = ("--engine", "scripted", "--agents", "2", "-o", "k=1", "--no-store")
    pid = command.begin("diagnose", case, *words, env={"DDX_TEST_DELAY": "0.05"})
    command.wait_for(" on scripted: ")
    os.kill(pid, signal.SIGINT)
    done = command.end()
    assert done.code == 130
    assert done.err.endswith("\nStopped.\n")


def test_ctrl_c_before_anything_began_is_130_without_a_traceback(command: Command) -> None:
    # Waiting for a case that never comes.
    with subprocess.Popen(
        [sys.executable, "-m", "ddx_local.cli.main", "diagnose", "-", *QUICK],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        wchan = Path(f"/proc/{child.pid}/wchan")
        for _ in range(3000):
            if "pipe" in wchan.read_text():
                break
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, b"", b"")
    assert command


# --- runs ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_id(command: Command, case: Path, store: Path) -> str:
    assert command.run("diagnose", case, *QUICK, "--quiet").code == 0
    return Store(store).find("last").run_id


def test_runs_are_listed_shown_and_replayed(command: Command, run_id: str) -> None:
    assert run_id in command.run("runs", "list").out
    (row,) = command.run("runs", "list", "--json").json
    assert (row["run_id"], row["method"], row["cases"], row["status"]) == (run_id, "zero-shot", 1, "finished")
    shown = command.run("runs", "show", run_id[:20], "--json").json
    jsonschema.validate(shown, schema())
    assert command.run("runs", "replay", "last").out == (
        "one case worked out again from the recorded answers: the same results\n"
    )
    assert command.run("runs", "replay", "last", "--json").json == shown


def test_a_finished_run_is_resumed_to_its_results_without_an_engine(command: Command, run_id: str, store: Path) -> None:
    before = Store(store).events(run_id)
    # An engine that cannot open: it is not needed.
    env = {"DDX_LOCAL_DEVICE": "cuda"}
    done = command.run("runs", "resume", run_id, "--json", "-", "--quiet", env=env)
    assert done.code == 0
    assert done.json["run_id"] == run_id
    assert done.json == command.run("runs", "show", run_id, "--json").json
    assert Store(store).events(run_id) == before


def test_a_run_is_resumed_with_its_own_settings_whatever_the_settings_are_now(
    command: Command, case: Path, store: Path
) -> None:
    words = ("--engine", "scripted", "--agents", "2", "-o", "k=1", "-o", "without=refinement")
    pid = command.begin("diagnose", case, *words, env={"DDX_TEST_DELAY": "0.05"})
    command.wait_for("scot/panel")
    os.kill(pid, signal.SIGKILL)
    assert command.end().code == -signal.SIGKILL
    env = {"DDX_LOCAL_MAX_MODEL_LEN": "99999", "DDX_LOCAL_SEED": "8", "DDX_LOCAL_ENGINE": "vllm"}
    done = command.run("runs", "resume", "last", "--json", "-", env=env)
    assert done.code == 0, done.err
    assert (done.json["status"], done.json["seed"], done.json["engine"]) == ("finished", 0, "scripted")
    assert store.exists()


def test_a_run_that_was_tampered_with_is_refused_with_exit_code_8_or_7(
    command: Command, run_id: str, store: Path
) -> None:
    import zlib

    with sqlite3.connect(store) as database:
        rows = database.execute("SELECT sequence, body FROM events WHERE run_id = ?", (run_id,)).fetchall()
        for sequence, body in rows:
            event = json.loads(zlib.decompress(body))
            if event["type"] == "RunStarted":
                event["options"]["k"] = 3
                changed = zlib.compress(json.dumps(event).encode())
                database.execute("UPDATE events SET body = ? WHERE sequence = ?", (changed, sequence))
    database.close()
    paragraph = one_paragraph(command.run("runs", "replay", run_id), 8)
    assert "changed: slot `k`" in paragraph
    with sqlite3.connect(store) as database:
        database.execute("UPDATE texts SET body = ?", (zlib.compress(b"forged"),))
    database.close()
    assert "was changed since it was stored" in one_paragraph(command.run("runs", "show", run_id), 7)


@pytest.mark.parametrize("before", [None, 0o644])
def test_an_export_is_private_whatever_was_there_and_holds_everything(
    before: int | None, command: Command, run_id: str, tmp_path: Path, store: Path
) -> None:
    out = tmp_path / "exported" / "run.json"
    out.parent.mkdir()
    if before is not None:
        out.write_text("old")
        out.chmod(before)
    done = command.run("runs", "export", "last", "--out", out)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert list(out.parent.iterdir()) == [out]
    whole = json.loads(out.read_text("utf-8"))
    assert (whole["schema"], whole["run_id"]) == ("ddx-local/run/1", run_id)
    assert len(whole["events"]) == len(Store(store).events(run_id))
    assert TEXT in whole["texts"].values()
    jsonschema.validate(whole["results"][0], schema())
    assert json.loads(command.run("runs", "export", "last").out) == whole


def test_an_export_that_cannot_be_written_is_one_paragraph(command: Command, run_id: str, tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "no" / "run.json"):
        assert f"--out {out}: cannot be written" in one_paragraph(
            command.run("runs", "export", run_id, "--out", out), 2
        )


def test_a_run_is_removed_only_after_a_yes(command: Command, run_id: str, store: Path) -> None:
    paragraph = one_paragraph(command.run("runs", "rm", run_id), 2)
    assert "nothing was deleted" in paragraph
    assert "--yes" in paragraph
    assert [row.run_id for row in Store(store).runs()] == [run_id]
    done = command.run("runs", "rm", run_id, "last", "--yes")
    assert (done.code, done.out) == (0, f"deleted {run_id}\n")
    assert Store(store).runs() == ()
    assert f"no run `{run_id}`" in one_paragraph(command.run("runs", "rm", run_id, "--yes"), 2)


def test_removing_an_unknown_run_removes_none_of_the_others(command: Command, run_id: str, store: Path) -> None:
    one_paragraph(command.run("runs", "rm", run_id, "nothing", "--yes"), 2)
    one_paragraph(command.run("runs", "rm", "", "--yes"), 2)
    assert [row.run_id for row in Store(store).runs()] == [run_id]


# --- methods, models, help ----------------------------------------------------------------------------------------------


def test_methods_and_models_are_listed_and_shown_also_as_json(command: Command) -> None:
    methods = {item["name"] for item in command.run("methods", "list", "--json").json}
    assert {"scot", "zero-shot", "best-of-n"} <= methods
    shown = command.run("methods", "list").out
    assert all(name in shown for name in methods)
    for name in ("zero-shot", "moa", "mac"):  # a dry run each; what all methods say is looked at in test_method_about
        one = command.run("methods", "show", name, "--json").json
        assert one["name"] == name
        assert one["options"]
        text = command.run("methods", "show", name).out
        for option in one["options"]:
            assert re.search(rf"^  {option} = .+  \S", text, re.MULTILINE), f"{name}: option {option} is not explained"
    models = {item["name"] for item in command.run("models", "list", "--json").json}
    assert {"smollm2-135m", "all-minilm-l6-v2"} <= models
    shown = command.run("models", "list").out
    for name in models:
        assert name in shown
        assert command.run("models", "show", name, "--json").json["name"] == name
        assert command.run("models", "show", name).code == 0


def test_the_command_alone_and_a_group_alone_show_help_and_end_well(command: Command) -> None:
    for words in ((), ("methods",), ("runs",), ("models",), ("--help",), ("-h",)):
        done = command.run(*words)
        assert done.code == 0, words
        assert done.out.startswith("Usage: ddx-local")
        assert done.err == ""
    alone = command.run()
    assert "First thing to try" in alone.out
    assert "ddx-local diagnose case.txt" in alone.out
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in " ".join(alone.out.split())


def test_every_verb_has_help_with_an_example(command: Command) -> None:
    def verbs(*words: str) -> dict[tuple[str, ...], str]:
        """Verb -> its help, for all below these words."""
        done = command.run(*words, "--help")
        assert done.code == 0
        lines = done.out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
        names = [line.split()[0] for line in lines if re.match(r"  \S", line)]
        if not names:
            return {words: done.out}
        return {verb: text for name in names for verb, text in verbs(*words, name).items()}

    found = verbs()
    assert {("diagnose",), ("runs", "resume"), ("runs", "rm"), ("models", "pull"), ("methods", "show")} <= set(found)
    for words, text in found.items():
        example = " ".join(text.partition("Example")[2].split())
        assert re.search(rf"ddx-local {' '.join(words)}\b", example), f"no example for {words}"


def test_the_version_is_the_package_s(command: Command) -> None:
    assert command.run("--version").out == f"ddx-local {__version__}\n"


def test_completion_for_a_shell_can_be_shown(command: Command) -> None:
    done = command.run(env={"_DDX_LOCAL_COMPLETE": "source_bash"})
    assert done.code == 0
    assert "complete" in done.out


# --- streams ------------------------------------------------------------------------------------------------------------


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'ddx() {{ "{sys.executable}" -m ddx_local.cli.main "$@"; }}; {line}'],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_goes_away_is_no_fault(run_id: str) -> None:
    done = shell(
        "ddx runs export last | head -c 1; echo ${PIPESTATUS[0]}; ddx methods show scot | true; echo ${PIPESTATUS[0]}"
    )
    assert done.stdout.replace("{", "").split()[0] in ("141", "0")
    assert done.stdout.split()[-1] in ("141", "0")
    assert done.stderr == ""
    assert run_id


def test_a_full_standard_output_is_one_paragraph(run_id: str) -> None:
    done = shell("ddx runs show last --json > /dev/full")
    one_paragraph(Done(done.returncode, done.stdout, done.stderr), 2)
    assert "No space left on device" in done.stderr
    assert run_id


def test_devices_and_pipes_take_the_json_as_they_are(case: Path, tmp_path: Path) -> None:
    null = os.stat("/dev/null")  # noqa: PTH116
    words = f"diagnose {case} {' '.join(QUICK)} --no-store --quiet --json"
    done = shell(f"ddx {words} /dev/null && ddx {words} >(cat > {tmp_path}/piped.json); sleep 0.2")
    assert done.returncode == 0, done.stderr
    assert os.stat("/dev/null").st_rdev == null.st_rdev  # noqa: PTH116
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116
    jsonschema.validate(json.loads((tmp_path / "piped.json").read_text("utf-8")), schema())


def test_a_terminal_without_unicode_gets_results_all_the_same(run_id: str) -> None:
    done = shell("ddx runs show last && ddx runs export last", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert TEXT in json.loads(done.stdout[done.stdout.index("\n{\n") :])["texts"].values()
    assert run_id


def test_a_closed_standard_error_ends_no_run(case: Path, store: Path) -> None:
    done = shell(f"ddx diagnose {case} {' '.join(QUICK)} --json - 2>&-")
    assert done.returncode == 0
    jsonschema.validate(json.loads(done.stdout), schema())
    assert store.exists()
