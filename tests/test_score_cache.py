"""The kept probabilities: exact, private, shared, whole after any end; only damage stops a run."""

import math
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ddx_local import score_file
from ddx_local.errors import StoreError
from ddx_local.score_cache import ModelStats, Score, ScoreCache

ROOT = Path(__file__).resolve().parents[1]


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def some(count: int, first: int = 0) -> dict[bytes, Score]:
    return {key(number): Score(-number / 7, number + 1, number / 1000) for number in range(first, first + count)}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.sqlite"


def filled(path: Path, count: int = 2000) -> None:
    cache = ScoreCache(path)
    cache.put_many("m", some(count))
    cache.close()


# --- what goes in comes out ---------------------------------------------------------------------------------------------


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@example(-0.0, 1, -0.0)
@given(FINITE, st.integers(0, 2**31), FINITE)
def test_a_score_comes_back_to_the_last_bit(logprob: float, tokens: int, noise: float) -> None:
    cache = ScoreCache(None)
    score = Score(logprob, tokens, noise)
    cache.put_many("m", {key(1): score})
    assert cache.get_many("m", [key(1)]) == {key(1): score}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_not_kept(number: float) -> None:
    cache = ScoreCache(None)
    cache.put_many("m", {key(1): Score(number, 3), key(2): Score(-1.0, 3, number), key(3): Score(-1.0, 3)})
    assert list(cache.get_many("m", [key(1), key(2), key(3)])) == [key(3)]


def test_only_what_was_put_is_found_and_what_is_there_stays_as_it_is(path: Path) -> None:
    cache = ScoreCache(path)
    cache.put_many("m", some(3))
    cache.put_many("m", {key(1): Score(-99.0, 1), key(7): Score(-7.0, 7)})
    assert cache.get_many("m", [key(7), key(5), key(1)]) == {key(7): Score(-7.0, 7), key(1): some(3)[key(1)]}
    assert cache.get_many("m", []) == {}


def test_another_process_s_object_sees_it_at_once_and_a_later_one_too(path: Path) -> None:
    writer, reader = ScoreCache(path), ScoreCache(path)
    writer.put_many("m", some(3))
    assert reader.get_many("m", [key(2)]) == {key(2): some(3)[key(2)]}
    writer.close()
    reader.close()
    assert ScoreCache(path).get_many("m", list(some(3))) == some(3)


def test_the_file_and_what_is_beside_it_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = ScoreCache(tmp_path / "new" / "scores.sqlite")
        cache.put_many("m", some(3))
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700
    files = {file.name: mode(file) for file in (tmp_path / "new").iterdir()}
    assert files == {f"scores.sqlite{ending}": 0o600 for ending in ("", "-wal", "-shm")}
    cache.close()


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    filled(path, 1)
    path.chmod(0o644)
    ScoreCache(path).close()
    assert mode(path) == 0o600


def test_the_scores_of_a_store_in_memory_are_in_memory(tmp_path: Path) -> None:
    assert score_file.beside(None) is None
    assert score_file.beside(tmp_path / "runs.sqlite") == tmp_path / "scores.sqlite"


# --- counts and clearing ------------------------------------------------------------------------------------------------


def test_counts_are_kept_by_model_for_this_object_and_for_all(path: Path) -> None:
    first = ScoreCache(path)
    first.get_many("big", [key(1), key(2)])
    first.put_many("big", some(2, first=1))
    first.get_many("big", [key(1), key(9)])
    first.close()
    second = ScoreCache(path)
    second.put_many("a small one", some(1, first=50))
    second.get_many("big", [key(1), key(2)])
    stats = second.stats()
    assert (stats.hits_here, stats.misses_here) == (2, 0)
    assert stats.models == (ModelStats("a small one", 1, 0, 0), ModelStats("big", 2, 3, 3))
    assert (stats.entries, stats.hits, stats.misses) == (3, 3, 3)
    assert stats.bytes > 0
    second.close()
    third = ScoreCache(path)
    assert third.stats().models == stats.models, "nothing is counted twice"
    assert third.stats().bytes == path.stat().st_size
    assert (third.stats().hits_here, third.stats().misses_here) == (0, 0)


def test_a_cache_in_memory_counts_too() -> None:
    cache = ScoreCache(None)
    assert cache.stats().entries == 0
    cache.put_many("m", some(2))
    cache.get_many("m", [key(0), key(9)])
    assert (cache.stats().entries, cache.stats().hits, cache.stats().misses) == (2, 1, 1)
    assert cache.stats().bytes > 0


def test_clearing_forgets_scores_and_counts_and_gives_the_space_back(path: Path) -> None:
    filled(path)
    full = path.stat().st_size
    cache, other = ScoreCache(path), ScoreCache(path)
    other.get_many("m", [key(1)])
    cache.get_many("m", [key(1)])
    assert cache.clear() == 2000
    assert other.get_many("m", [key(1)]) == {}
    assert cache.stats().models == ()
    other.put_many("m", some(1))
    assert cache.get_many("m", [key(0)]) == some(1)
    other.close()
    cache.close()
    assert path.stat().st_size < full / 4


def test_clearing_while_another_process_reads_forgets_all_the_same(path: Path) -> None:
    filled(path, 10)
    with sqlite3.connect(path, isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM scores").fetchall()
        cache = ScoreCache(path)
        cache._connection.execute("PRAGMA busy_timeout = 50")
        assert cache.clear() == 10
        assert cache.get_many("m", [key(1)]) == {}
    reader.close()


# --- damage -------------------------------------------------------------------------------------------------------------


def garbled(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(64))


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path: Path) -> None:
    path.write_bytes(b"not a database " * 500)


def short(path: Path) -> None:
    path.write_bytes(b"nothing")


def flipped(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE scores SET logprob = logprob - 1e-9")
    connection.close()


def not_numbers(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE scores SET logprob = 'much'")
    connection.close()


DAMAGES = [garbled, truncated, overwritten, short, flipped, not_numbers]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_an_error_that_names_the_file_and_the_way_out_and_never_a_number(
    damage: Callable[[Path], None], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(path)
    damage(path)
    with pytest.raises(StoreError, match=r"the probability cache .* is damaged") as caught:
        ScoreCache.for_run(path).get_many("m", list(some(2000)))
    assert str(path) in caught.value.message
    assert "ddx-local cache clear" in caught.value.hint
    assert capsys.readouterr().err == "", "an error, not a warning"


@pytest.mark.parametrize("damage", DAMAGES)
def test_clearing_makes_a_damaged_file_usable_again(damage: Callable[[Path], None], path: Path) -> None:
    filled(path)
    damage(path)
    score_file.clear(path)
    cache = ScoreCache(path)
    assert cache.stats().entries == 0
    cache.put_many("m", some(2000))
    assert cache.get_many("m", list(some(2000))) == some(2000)


@pytest.mark.parametrize("open_it", [ScoreCache, ScoreCache.for_run, score_file.clear])
def test_another_program_s_database_is_refused_and_left_as_it_is(open_it: Callable[[Path], object], path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a database, but no probability cache"):
        open_it(path)
    assert path.read_bytes() == before


def test_the_run_store_is_not_taken_for_a_cache(tmp_path: Path) -> None:
    from ddx_local.store import Store

    Store(tmp_path / "scores.sqlite").close()
    with pytest.raises(StoreError, match="no probability cache"):
        score_file.clear(tmp_path / "scores.sqlite")


def test_a_later_version_s_file_is_refused(path: Path) -> None:
    filled(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {score_file.VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match="made by a later version"):
        ScoreCache(path)


# --- a place that cannot be written -------------------------------------------------------------------------------------


def test_a_full_disk_is_one_warning_and_what_is_scored_is_not_kept(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ScoreCache(path)
    cache.put_many("m", some(3))
    pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
    cache._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    for _ in range(3):
        cache.put_many("m", some(5000, first=10))
    cache.get_many("m", [key(1)])
    cache.close()
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith(f"ddx-local: the probability cache {path} cannot be used: database or disk is full")
    assert "the run goes on" in warning
    assert ScoreCache(path).get_many("m", list(some(5010))) == some(3), "whole as it was before"


WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from ddx_local.score_cache import Score, ScoreCache
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
cache = ScoreCache.for_run(Path(sys.argv[1]))
for number in range(3):
    cache.put_many("m", {bytes([number, place % 256, place // 256]): Score(-1.0, 1) for place in range(2000)})
cache.get_many("m", [bytes(3)])
cache.close()
print("done")
"""


@pytest.mark.parametrize("room", [0, 30_000, 200_000])
def test_a_disk_without_room_ends_nothing_whether_the_file_is_made_or_grows(room: int, path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ROOM, str(path), str(room)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"ddx-local: the probability cache {path} cannot be used: ")
    assert re.search("full|I/O error", warning), "the reason, not what came of it"
    cache = ScoreCache(path)
    assert cache.stats().entries % 2000 == 0
    cache.put_many("m", some(1))
    assert cache.get_many("m", [key(0)]) == some(1)


def test_a_place_that_cannot_be_a_file_is_an_error_but_for_a_run_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "scores.sqlite"
    with pytest.raises(StoreError, match=r"scores\.sqlite cannot be used"):
        ScoreCache(path)
    cache = ScoreCache.for_run(path)
    cache.put_many("m", some(2))
    assert cache.get_many("m", list(some(2))) == some(2), "in memory"
    (warning,) = capsys.readouterr().err.splitlines()
    assert str(path) in warning


def test_a_file_that_another_process_holds_too_long_is_a_warning(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ScoreCache(path)
    cache._connection.execute("PRAGMA busy_timeout = 50")
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        cache.put_many("m", some(2))
        other.execute("ROLLBACK")
    other.close()
    assert "locked" in capsys.readouterr().err
    assert ScoreCache(path).stats().entries == 0


# --- several processes and threads --------------------------------------------------------------------------------------

WRITER = """
import sys, time
from pathlib import Path
from ddx_local.score_cache import Score, ScoreCache
path, first, begin = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
def one(number):
    return {number.to_bytes(32, "big"): Score(-number / 7, number + 1, number / 1000)}
while time.time() < begin:
    pass
cache = ScoreCache(path)
for number in range(int(sys.argv[4])):
    cache.get_many("m", list(one(first + number)))
    cache.put_many("m", one(first + number) | one(10**6 + number))
    print(number, flush=True)
cache.close()
"""


def writer(path: Path, first: int, begin: float, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(begin), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_make_the_file_and_write_at_once_lose_nothing(path: Path) -> None:
    begin = time.time() + 1.0
    children = [writer(path, number * 1000, begin, 100) for number in range(3)]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert (child.returncode, errors) == (0, "")
    expected = some(100) | some(100, 1000) | some(100, 2000) | some(100, 10**6)
    cache = ScoreCache(path)
    assert (cache.stats().entries, cache.stats().misses) == (400, 300)
    assert cache.get_many("m", list(expected)) == expected


def test_what_was_put_before_a_kill_is_there_after_it_and_the_file_is_whole(path: Path) -> None:
    child = writer(path, 0, 0.0, 10**5)
    assert child.stdout is not None
    for _ in range(50):
        said = child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate(timeout=60)
    last = int((rest.split() or [said])[-1])
    assert 49 <= last < 10**5 - 1
    cache = ScoreCache(path)
    assert cache.get_many("m", list(some(last + 1))) == some(last + 1)
    assert cache._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    cache.put_many("m", some(1, first=2**20))


def test_threads_share_one_cache(path: Path) -> None:
    cache = ScoreCache(path)

    def work(first: int) -> None:
        for number in range(first, first + 50):
            cache.put_many("m", some(1, number))
            assert cache.get_many("m", [key(number)]) == some(1, number)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cache.stats().entries, cache.stats().hits) == (150, 150)
