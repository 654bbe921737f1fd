"""The store: one private file, transactions that are whole or not at all, texts once, removal that removes."""

import os
import random
import sqlite3
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ddx_local.errors import StoreError, UsageError
from ddx_local.events import Event, Noted, RoundStarted, RunFinished, RunStarted, sha256
from ddx_local.store import VERSION, Store
from tests.toy import CANARY

TEXT = f"{CANARY} fever, a cough, and a rash: 38.9 °C 漢字"


def started(run_id: str, at: str = "2026-01-01T00:00:00.000+00:00") -> RunStarted:
    return RunStarted(
        at=at,
        run_id=run_id,
        method="scot",
        options={},
        model="m",
        fingerprint={},
        engine="scripted",
        seed=0,
        package_version="0",
        cases={"ann": sha256(TEXT), "bea": "b"},
    )


def noted(detail: str, case_id: str = "ann") -> Noted:
    return Noted(at="now", case_id=case_id, round=0, kind="tie", detail=detail)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def as_stored(text: str) -> bytes:
    return zlib.compress(text.encode())


# --- the file -----------------------------------------------------------------------------------------------------------


def test_the_file_and_what_sqlite_keeps_beside_it_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "new" / "runs.sqlite")
        store.append("r1", [started("r1")], [TEXT])
        with store.claim("r1"):
            names = {file.name for file in (tmp_path / "new").iterdir()}
            assert names == {"runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm", "runs.sqlite-lock"}
            for name in names:
                assert mode(tmp_path / "new" / name) == 0o600, name
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700


def test_a_store_that_others_can_read_is_closed_to_them_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    Store(path).close()
    path.chmod(0o644)
    Store(path).close()
    assert mode(path) == 0o600


def test_the_journal_is_a_write_ahead_log_and_temporary_data_stay_in_memory(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    pragma = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "temp_store", "secure_delete", "foreign_keys")
    }
    assert pragma == {"journal_mode": "wal", "temp_store": 2, "secure_delete": 1, "foreign_keys": 1}


def test_a_store_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(None)
    store.append("r1", [started("r1")], [TEXT])
    with store.claim("r1"):
        assert store.text("r1", sha256(TEXT)) == TEXT
    store.remove("r1")
    assert store.runs() == ()
    assert list(tmp_path.iterdir()) == []


def test_another_kind_of_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all")
    path.chmod(0o644)
    with pytest.raises(StoreError, match=r"notes\.txt is no run store") as caught:
        Store(path)
    assert "--store" in caught.value.hint
    assert path.read_text() == "not a database at all"
    assert mode(path) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_begins_like_a_database_and_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    with pytest.raises(StoreError, match=r"runs\.sqlite is no run store but another kind of file, or a damaged one"):
        Store(path)


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
        other.execute(f"PRAGMA user_version = {VERSION}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no run store"):
        Store(path)
    assert path.read_bytes() == before


def test_a_store_of_a_later_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    store = Store(path)
    store._connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    store.close()
    with pytest.raises(StoreError, match="later version"):
        Store(path)


@pytest.mark.parametrize("place", ["a folder", "below a file"])
def test_a_path_that_can_be_no_file_is_an_error_that_names_it(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path if place == "a folder" else tmp_path / "file" / "runs.sqlite"
    with pytest.raises(StoreError) as caught:
        Store(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ddx_local.store import Store; from ddx_local.errors import StoreError\n"
        "try:\n    Store(Path(sys.argv[1]))\nexcept StoreError as error:\n    print(error.message)\n"
    )
    mount = 'mount -t tmpfs -o ro tmpfs "$1" && exec "$2" -c "$3" "$1/runs.sqlite"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("`unshare -rm` with a mount is not permitted here")
    assert str(tmp_path / "runs.sqlite") in done.stdout
    assert "Read-only file system" in done.stdout


# --- appending ----------------------------------------------------------------------------------------------------------


def test_events_come_back_in_order_by_run_and_by_case_across_a_reopening(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    first: list[Event] = [started("r1"), noted("one"), noted("two", "bea")]
    store.append("r1", first)
    store.append("r2", [started("r2"), noted("elsewhere")])
    store.append("r1", [noted("three")])
    store.close()
    again = Store(tmp_path / "runs.sqlite")
    assert again.events("r1") == (*first, noted("three"))
    assert again.events("r1", "ann") == (noted("one"), noted("three"))
    assert again.events("r1", "") == (first[0],)
    assert again.events("r3") == ()


def test_an_append_that_fails_in_the_middle_leaves_nothing_of_itself_and_the_store_usable(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")])
    for _ in range(2):
        with pytest.raises(StoreError, match="UNIQUE"):
            store.append("r1", [noted("lost"), started("r1")], ["lost text"])
    assert store.events("r1") == (started("r1"),)
    with pytest.raises(StoreError, match="not in the store"):
        store.text("r1", sha256("lost text"))
    store.append("r1", [noted("kept")])
    assert store.events("r1")[1:] == (noted("kept"),)


def test_events_of_a_run_that_does_not_exist_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(StoreError):
        store.append("r1", [noted("from nowhere")])


def test_a_full_disk_is_an_error_that_names_the_file_and_loses_nothing_of_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")], [TEXT])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    incompressible = os.urandom(50_000).hex()
    with pytest.raises(StoreError, match="full") as caught:
        store.append("r1", [noted("too much")], [incompressible])
    assert str(tmp_path / "runs.sqlite") in caught.value.message
    assert "disk" in caught.value.hint
    assert store.events("r1") == (started("r1"),)
    assert store.text("r1", sha256(TEXT)) == TEXT
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.append("r1", [noted("now it fits")], [incompressible])
    assert store.text("r1", sha256(incompressible)) == incompressible


def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")])
    # A foreign key that is checked at the commit alone makes the commit itself fail.
    reached = []

    def orphaned_text() -> None:
        with store._transaction() as cursor:
            cursor.execute("PRAGMA defer_foreign_keys = ON")
            cursor.execute("INSERT INTO texts VALUES ('nobody', 'a', x'00')")
            reached.append("the commit")

    with pytest.raises(StoreError, match="FOREIGN KEY"):
        orphaned_text()
    assert reached
    store.append("r1", [noted("after it")])
    assert store.events("r1")[1:] == (noted("after it"),)


def test_a_text_is_kept_once_in_a_run_however_often_it_comes(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")], [TEXT, TEXT])
    store.append("r1", [noted("again")], [TEXT, "another", ""])
    assert dict(store.all_texts("r1")) == {sha256(text): text for text in (TEXT, "another", "")}


@pytest.mark.parametrize("text", ["", "lone \ud800 surrogate", "\0\r\n\t", "🫀" * 10_000])
def test_any_text_comes_back_as_it_was(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")], [text])
    assert store.text("r1", sha256(text)) == text
    assert store.text("r1", "") == ""


def test_a_text_that_was_changed_or_damaged_in_the_file_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")], [TEXT])
    for body in (zlib.compress(TEXT.replace("fever", "chill").encode()), as_stored(TEXT)[:-6], b"", b"\xff\xfe"):
        store._connection.execute("UPDATE texts SET body = ?", (body,))
        with pytest.raises(StoreError, match="damaged or was changed") as caught:
            store.text("r1", sha256(TEXT))
        assert CANARY not in caught.value.message
        with pytest.raises(StoreError):
            list(store.all_texts("r1"))


@pytest.mark.parametrize("body", [b"", b"junk", zlib.compress(b"[]"), zlib.compress(b'{"type": "Unknown"}')])
def test_an_event_that_was_damaged_in_the_file_is_an_error_of_the_store(body: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1"), noted("one")])
    store._connection.execute("UPDATE events SET body = ? WHERE sequence = 2", (body,))
    with pytest.raises(StoreError, match=r"run r1: an event .* is damaged"):
        store.events("r1")


# --- runs ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs.sqlite")
    for number, run_id in enumerate(("20260101-aaaa", "20260101-abcd", "20260202-ffff")):
        store.append(run_id, [started(run_id, f"2026-01-0{number + 1}T00:00:00.000+00:00")], [f"{TEXT} of {run_id}"])
    store.append("20260101-abcd", [RunFinished(status="cancelled", finished=1, failed=0, seconds=1.0)])
    return store


def test_runs_are_listed_newest_first_with_their_status(three: Store) -> None:
    assert [(row.run_id, row.status, row.cases) for row in three.runs()] == [
        ("20260202-ffff", "running", 2),
        ("20260101-abcd", "cancelled", 2),
        ("20260101-aaaa", "running", 2),
    ]


@pytest.mark.parametrize(
    ("name", "run_id"),
    [
        ("last", "20260202-ffff"),
        ("20260101-abcd", "20260101-abcd"),
        ("20260101-ab", "20260101-abcd"),
        ("20260202", "20260202-ffff"),
    ],
)
def test_a_run_is_found_by_its_id_its_unique_beginning_and_as_the_last(name: str, run_id: str, three: Store) -> None:
    assert three.find(name).run_id == run_id


def test_an_id_that_is_the_beginning_of_another_is_found(three: Store) -> None:
    three.append("20260101-a", [started("20260101-a")])
    assert three.find("20260101-a").run_id == "20260101-a"


def test_an_unknown_run_is_an_error_with_the_nearest_ids(three: Store) -> None:
    with pytest.raises(UsageError, match=r"no run `20260101-abce`: did you mean .*20260101-abcd"):
        three.find("20260101-abce")
    with pytest.raises(UsageError, match="2 runs begin with that"):
        three.find("20260101")
    with pytest.raises(UsageError, match="the store is empty"):
        Store(None).find("last")


def test_no_name_is_no_run_even_if_there_is_only_one() -> None:
    store = Store(None)
    store.append("r1", [started("r1")])
    with pytest.raises(UsageError):
        store.find("")


@pytest.mark.parametrize("seed", [6, 15, 35])
def test_removing_leaves_no_trace_of_the_run_in_the_files_and_all_of_the_others(
    seed: int, three: Store, tmp_path: Path
) -> None:
    # Many texts of many sizes, mixed, so that pages of the tree are split and cells move between them. With these seeds
    # SQLite leaves a moved cell behind, which its secure_delete does not overwrite.
    chance = random.Random(seed)
    gone, kept = [f"{TEXT} of 20260101-aaaa"], [f"{TEXT} of 20260101-abcd"]
    for number in range(150):
        run_id, texts = (("20260101-aaaa", gone), ("20260101-abcd", kept))[number % 2]
        texts.append(chance.randbytes((20, 60, 300, 1500)[number % 4]).hex())
        three.append(run_id, [noted(chance.randbytes(30).hex())], [texts[-1]])
    files = stored_bytes(tmp_path)
    for text in (*kept, *gone):
        assert as_stored(text)[:40] in files, "the test looks for the wrong bytes"
    three.remove("20260101-aaaa")
    files = stored_bytes(tmp_path)
    assert as_stored(gone[0])[2:] not in files  # as a whole: it begins like a text that is kept
    for text in gone[1:]:
        body = as_stored(text)
        assert not any(body[place : place + 24] in files for place in range(2, len(body) - 24))
    assert three.events("20260101-aaaa") == ()
    assert dict(three.all_texts("20260101-aaaa")) == {}
    assert {sha256(text) for text in kept} == set(dict(three.all_texts("20260101-abcd")))
    assert [row.run_id for row in three.runs()] == ["20260202-ffff", "20260101-abcd"]


def test_removing_while_another_process_reads_says_that_traces_are_left(three: Store, tmp_path: Path) -> None:
    three._connection.execute("PRAGMA busy_timeout = 50")
    with sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM texts").fetchall()
        with pytest.raises(StoreError, match=r"deleted, but traces of it are left .*another process reads it"):
            three.remove("20260101-aaaa")
        reader.execute("COMMIT")
    reader.close()
    assert [row.run_id for row in three.runs()] == ["20260202-ffff", "20260101-abcd"]
    three.close()
    assert as_stored(f"{TEXT} of 20260101-aaaa")[2:] not in stored_bytes(tmp_path), "closing the last one clears it"


# --- several processes --------------------------------------------------------------------------------------------------

CHILD = """
import sys, time
from pathlib import Path
from ddx_local.events import Noted, sha256
from ddx_local.store import Store
from tests.test_store import started
path, run_id = Path(sys.argv[1]), sys.argv[2]
while time.time() < float(sys.argv[3]):
    pass
store = Store(path)
store.append(run_id, [started(run_id)], ["shared"])
for number in range(100):
    store.append(run_id, [Noted(case_id="ann", round=number, kind="k", detail=f"{run_id} {number}")], [f"{run_id} {number}"])
"""


def test_processes_that_make_the_store_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    import time

    path = tmp_path / "runs.sqlite"
    begin = str(time.time() + 1.0)
    root = Path(__file__).resolve().parents[1]
    names = [f"run{number}" for number in range(3)]
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(path), name, begin], cwd=root, stderr=subprocess.PIPE)
        for name in names
    ]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors.decode()
    store = Store(path)
    for name in names:
        details = [event.detail for event in store.events(name, "ann") if isinstance(event, Noted)]
        assert details == [f"{name} {number}" for number in range(100)]
        assert len(dict(store.all_texts(name))) == 101


def test_a_run_that_another_process_works_on_cannot_be_claimed_nor_removed_until_that_process_ends(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.sqlite"
    store = Store(path)
    for run_id in ("r1", "r2"):
        store.append(run_id, [started(run_id)])
    code = (
        "import sys; from pathlib import Path; from ddx_local.store import Store\n"
        "with Store(Path(sys.argv[1])).claim('r1'):\n    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another process works on run r1"), store.claim("r1"):
            pass
        with pytest.raises(StoreError, match="another process works on run r1"):
            store.remove("r1")
        with store.claim("r2"):
            pass
        child.kill()
    with store.claim("r1"):
        pass
    store.remove("r1")
    assert [row.run_id for row in store.runs()] == ["r2"]


def test_threads_share_one_store(tmp_path: Path) -> None:
    import threading

    store = Store(tmp_path / "runs.sqlite")
    store.append("r1", [started("r1")])

    def work(name: str) -> None:
        for number in range(50):
            store.append("r1", [RoundStarted(case_id=name, round=number, name=name, questions=1, batch=True)])
            assert len(store.events("r1", name)) == number + 1

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bea", "cyd")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.events("r1")) == 151


def test_ending_one_run_of_a_process_frees_no_other_run_of_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    store = Store(path)
    with store.claim("first"):
        with store.claim("second"):
            pass
        code = (
            "import sys; from pathlib import Path; from ddx_local.store import Store\n"
            "with Store(Path(sys.argv[1])).claim('first'): pass"
        )
        other = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
        assert "another process works on run first" in other.stderr
        with pytest.raises(StoreError), store.claim("first"):
            pass
    with store.claim("first"):
        pass
