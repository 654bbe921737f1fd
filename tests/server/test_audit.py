"""The audit chain, and the canary: a text that is sent through every route is found nowhere but in the run store."""

import json
import sqlite3
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ddx_local.audit import FIRST, Audit
from ddx_local.errors import StoreError
from tests.server.conftest import CASE, Served, serving

MOVED = "; ".join(
    f"UPDATE audit SET sequence = {to} WHERE sequence = {from_}" for from_, to in ((3, 9), (4, 3), (9, 4))
)
CANARY = "quokka-7431-canary"


def filled(path: Path, count: int = 5) -> Audit:
    audit = Audit(path)
    for number in range(count):
        audit.append("local", "test", f"run-{number}", "ok", count=number)
    return audit


def test_a_chain_that_nobody_touched_holds(tmp_path: Path) -> None:
    audit = filled(tmp_path / "a.sqlite")
    records = list(audit.records())
    assert [item.sequence for item in records] == [1, 2, 3, 4, 5]
    assert records[0].before == FIRST
    assert all(one.hash == two.before for one, two in pairwise(records))
    assert (audit.verify().records, audit.verify().broken_at, audit.verify().head) == (5, None, records[-1].hash)
    assert (tmp_path / "a.sqlite").stat().st_mode & 0o777 == 0o600
    assert [item.sequence for item in audit.records(after=3)] == [4, 5]


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ("UPDATE audit SET outcome = 'other' WHERE sequence = 3", 3),
        ("UPDATE audit SET facts = '{}' WHERE sequence = 2", 2),
        ("UPDATE audit SET at = '2020-01-01' WHERE sequence = 5", 5),
        ("DELETE FROM audit WHERE sequence = 2", 2),
        ("DELETE FROM audit WHERE sequence = 1", 1),
        (MOVED, 3),
    ],
)  # fmt: skip
def test_a_changed_missing_or_moved_record_breaks_the_chain_at_its_place(tmp_path: Path, change: str, at: int) -> None:
    path = tmp_path / "a.sqlite"
    filled(path).close()
    with sqlite3.connect(path) as found:
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            found.executescript(change)
        found.executescript(f"DROP TRIGGER audit_is_append_only_1; DROP TRIGGER audit_is_append_only_2; {change}")
    assert Audit(path).verify().broken_at == at


def test_records_that_were_cut_off_show_against_a_head_that_was_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    audit = filled(path)
    head = audit.verify().head
    audit.close()
    with sqlite3.connect(path) as found:
        found.executescript("DROP TRIGGER audit_is_append_only_2; DELETE FROM audit WHERE sequence = 5")
    cut = Audit(path)
    assert cut.verify().broken_at is None
    assert all(item.hash != head for item in cut.records())


def test_two_writers_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    chains = [Audit(path), Audit(path)]

    def write(chain: Audit) -> None:
        for number in range(25):
            chain.append("local", "test", str(number))

    threads = [threading.Thread(target=write, args=(chain,)) for chain in chains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (chains[0].verify().records, chains[0].verify().broken_at) == (50, None)


def test_every_request_leaves_one_record_and_a_run_two_more(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        before = served.audit.verify().records
        with served.http("panel") as http:
            http.get("/v1/models")
            http.get("/healthz")
            http.get("/v1/unknown")
            served.client("ddx").chat.completions.create(
                model="ddx/zero-shot", messages=[{"role": "user", "content": CASE}]
            )
        with served.http(None) as http:
            http.get("/v1/models")
        records = list(served.audit.records(after=before))
    found = [(item.action, item.outcome) for item in records]
    assert found == [
        ("models", "200"),
        ("refused", "404"),
        ("run.start", "ok"),
        ("run.end", "finished"),
        ("chat", "200"),
        ("refused", "401"),
    ]
    run = records[2].object
    assert records[3].object == records[4].object == run
    ids = {scope: key.split("_")[1] for scope, key in served.keys.items()}
    assert [item.actor for item in records] == [ids["panel"]] * 2 + [ids["ddx"]] * 3 + ["nobody"]
    assert records[4].facts["model"] == "ddx/zero-shot"


def test_a_request_whose_record_cannot_be_written_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path) as served, served.http() as http:
        run = http.post("/ddx/v1/runs", json={"text": CASE, "method": "zero-shot"}).json()["run_id"]
        while http.get(f"/ddx/v1/runs/{run}").json()["status"] == "running":
            pass

        def full(*_: Any, **__: Any) -> None:
            raise StoreError("the disk is full")

        monkeypatch.setattr(served.audit, "append", full)
        for method, path in (("GET", "/v1/models"), ("GET", f"/ddx/v1/runs/{run}"), ("DELETE", f"/ddx/v1/runs/{run}")):
            reply = http.request(method, path)
            assert reply.status_code == 503
            assert CASE[:20] not in reply.text
        made = http.post("/ddx/v1/runs", json={"text": CASE, "method": "zero-shot"})
        assert made.status_code == 503
        assert http.get("/healthz").status_code == 200
        monkeypatch.undo()
        assert [row.run_id for row in served.store.runs()] == [run]


def test_a_text_that_goes_through_every_route_is_found_in_the_run_store_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"{CASE} The patient says {CANARY}."
    with serving(tmp_path) as served, served.http() as http:
        run = http.post("/ddx/v1/runs", json={"text": text, "method": "zero-shot", "supervise": True}).json()["run_id"]
        _everywhere(served, http, text, run)
        http.post(f"/ddx/v1/runs/{run}/continue", json={"pause": False})
        while http.get(f"/ddx/v1/runs/{run}").json()["status"] == "running":
            pass
        assert CANARY in http.get(f"/ddx/v1/runs/{run}/export.json").text
        metrics = http.get("/metrics").text
        records = json.dumps([item.as_json() for item in served.audit.records()])
        assert served.audit.verify().broken_at is None
    said = capfd.readouterr()
    told = {"metrics": metrics, "audit": records, "reports": str(served.reports), "out": said.out, "err": said.err}
    for place, found in told.items():
        assert CANARY not in found, place
        assert "toe" not in found.split(), place
    for file in tmp_path.iterdir():
        if not file.name.startswith("runs.sqlite"):
            assert CANARY.encode() not in file.read_bytes(), file.name


def _everywhere(served: Served, http: Any, text: str, run: str) -> None:
    """The text in every place of every route where a client can put one; no error says it back."""
    bodies: list[Any] = [
        {"model": CANARY}, {"model": "scripted", "messages": [{"role": "user", "content": text}]},
        {"model": "scripted", "messages": text}, {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": text}]},
        {"model": "ddx/zero-shot", "messages": [{"role": "user", "content": text}], "ddx": {CANARY: 1}},
        {"model": "scripted", "prompt": text}, {"model": "scripted", "prompt": {CANARY: 1}},
        {"model": "scripted-embedding", "input": text}, {"model": "scripted-embedding", "input": [CANARY, 1]},
        {"text": text}, {"sections": {CANARY: text}}, {"text": text, "by": CANARY, "about": CANARY}, {CANARY: text}, [text], text,
    ]  # fmt: skip
    for route in served.server.table.routes:
        if route.action in ("run.continue", "run.cancel", "session.end", "run.watch"):
            continue
        path = route.path.replace("{run_id}", CANARY).replace("{id:path}", CANARY)
        own = route.path.replace("{run_id}", run).replace("{id:path}", "scripted")
        for body in bodies if route.body == "json" else [None]:
            for target in dict.fromkeys((path, own)):
                reply = http.request(route.method, f"{target}?q={CANARY}", json=body, headers={"x-note": CANARY})
                assert reply.status_code < 500, (route.path, reply.text)
                if reply.status_code >= 400:
                    assert CANARY not in reply.text, (route.path, body)
        http.request(route.method, path, content=CANARY, headers={"content-type": "application/json"})
        http.request(route.method, path, headers={"authorization": f"Bearer {CANARY}", "origin": f"https://{CANARY}"})
