"""The doctor finds each of twelve planted faults and says what to do, and finds nothing where nothing is."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddx_local import machine, offline
from ddx_local.airgap import doctor, doctor_machine, doctor_models, doctor_offline
from ddx_local.airgap.doctor_check import Check, worst
from ddx_local.machine import Gpu, Memory
from ddx_local.model_fit import GIB
from ddx_local.model_store import write_manifest
from ddx_local.settings import Settings
from tests import tiny_model
from tests.airgap.world import MODEL, ROOT
from tests.command import Command


def found(check: Check, level: str, *words: str) -> None:
    assert check.level == level, check
    for word in words:
        assert word in check.found, check
    assert check.todo


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return tiny_model.build(tmp_path_factory.mktemp("whole") / MODEL)


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / MODEL)
    write_manifest(tmp_path / MODEL, MODEL, {})
    return tmp_path


# --- the twelve ---------------------------------------------------------------------------------------------------------


def test_1_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert doctor_machine.caches({"vLLM's cache": tmp_path / "new" / "vllm"}).level == "ok"
    check = doctor_machine.caches({"temporary files": tmp_path, "vLLM's cache": tmp_path / "file" / "vllm"})
    found(check, "error", "vLLM's cache", "cannot be written")
    assert "VLLM_CACHE_ROOT" in check.todo
    read_only = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@"', "sh"]
    code = (
        "import sys; from ddx_local.airgap.doctor_machine import caches; from pathlib import Path;"
        "print(caches({'x': Path(sys.argv[1])}))"
    )
    if subprocess.run([*read_only, str(tmp_path), "true"], capture_output=True, check=False).returncode:
        return
    done = subprocess.run(
        [*read_only, str(tmp_path), sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "Read-only file system" in done.stdout, done.stderr


@pytest.mark.parametrize("version", [(3, 10, 9), (3, 13, 0), (2, 7, 18), (4, 0, 0)])
def test_2_another_python(version: tuple[int, ...]) -> None:
    found(doctor_machine.python(version), "error", ".".join(map(str, version)), "not supported")
    assert doctor_machine.python((3, 11, 4)).level == doctor_machine.python((3, 12, 0)).level == "ok"


def break_json(name: str, **changes: object) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


def without_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    write_manifest(folder, MODEL, {})


def two_bos(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_text("{{ bos_token }}" + path.read_text())
    write_manifest(folder, MODEL, {})


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def flipped(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        pytest.param(without_tokenizer, ("tokenizer.json", "missing"), id="3 a missing tokenizer file"),
        pytest.param(without_template, ("no chat template",), id="4 no chat template"),
        pytest.param(two_bos, ("2 BOS",), id="5 a double BOS"),
        pytest.param(flipped, ("model.safetensors", "was changed"), id="6 a hash that does not match"),
    ],
)
def test_a_model_that_is_not_right(store: Path, edit: Callable[[Path], object], words: tuple[str, ...]) -> None:
    edit(store / MODEL)
    found(doctor_models.model(MODEL, "chat", store), "error", MODEL, *words)


def test_a_model_that_is_right_or_not_there_at_all(store: Path, tmp_path: Path) -> None:
    assert doctor_models.model(MODEL, "chat", store).level == "ok"
    found(doctor_models.model(MODEL, "embedding", store), "error", "for chat")
    check = doctor_models.model(MODEL, "chat", tmp_path / "none")
    found(check, "error", "not in the store")
    assert "models pull" in check.todo
    found(doctor_models.model("nothing", "chat", store), "error", "no model is called")


def test_7_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        check = doctor_machine.port(number)
        found(check, "warning", str(number), "another program has it")
        assert f"sport = :{number}" in check.todo
    assert doctor_machine.port(number).level == "ok"


def test_8_a_clock_in_1970() -> None:
    found(doctor_machine.clock(3600.0), "error", "1970-01-01")
    found(doctor_machine.clock(9e9), "error", "2255")
    assert doctor_machine.clock().level == "ok"


def test_9_a_disk_that_is_full(tmp_path: Path) -> None:
    places = {"the run store": tmp_path, "temporary files": Path("/tmp")}
    found(
        doctor_machine.disk(places, {"the run store": 10**8, "temporary files": 10**12}),
        "error",
        "the run store",
        "0.1 GB",
    )
    found(doctor_machine.disk(places, {"the run store": 10**9, "temporary files": 10**12}), "warning", str(tmp_path))
    assert doctor_machine.disk(places, {"the run store": 10**10, "temporary files": 10**12}).level == "ok"


def memory(total: float, limit: float | None, free: float, model: str = "qwen3-4b") -> Check:
    there = Memory(int(total * GIB), int(limit * GIB) if limit else None)
    return doctor_models.memory(model, there, int(free * GIB), device="cpu", dtype="float32", context=8192, kv_gib=2.0)


def test_10_a_limit_of_the_cgroup() -> None:
    check = memory(64, 8, 60)
    found(check, "error", "the limit of its cgroup", "qwen3-4b needs about")
    assert "ddx-local diagnose CASE --model" in check.todo
    found(memory(64, None, 3), "warning", "free now")
    assert memory(64, 40, 60).level == "ok"
    found(memory(64, None, 60, model="nothing"), "warning", "not known")


def test_11_a_telemetry_switch_that_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    def environment() -> Check:
        (check,) = [check for check in doctor_offline.layers() if check.name == "offline: environment"]
        return check

    offline.go_offline()
    for name, value in offline.closed_changes().items():
        monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name, raising=False)
    assert environment().level == "ok"
    monkeypatch.delenv("VLLM_NO_USAGE_STATS")
    found(environment(), "error", "VLLM_NO_USAGE_STATS")


def test_12_a_network_that_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> Check:
        (check,) = [check for check in doctor_offline.layers() if check.name == "offline: kernel"]
        return check

    monkeypatch.setattr("ddx_local.offline_layers._interfaces_up", lambda: {"lo", "eth7"})
    found(kernel(), "warning", "eth7")
    assert "--network none" in kernel().todo
    monkeypatch.setattr("ddx_local.offline_layers._interfaces_up", lambda: {"lo"})
    assert kernel().level == "ok"


# --- the others ---------------------------------------------------------------------------------------------------------


def test_a_cpu_without_avx2_a_gpu_that_is_not_there_and_a_compiler_that_is_wanted() -> None:
    found(doctor_machine.cpu(frozenset({"sse2"}), "x86_64", device="cpu"), "error", "AVX2")
    found(doctor_machine.cpu(frozenset({"sse2"}), "x86_64", device="cuda"), "warning", "AVX2")
    assert doctor_machine.cpu(frozenset({"avx2"}), "x86_64", device="cpu").level == "ok"
    assert doctor_machine.cpu(frozenset(), "aarch64", device="cpu").level == "ok"
    found(doctor_machine.gpu((), device="cuda"), "error", "no GPU")
    assert doctor_machine.gpu((), device="cpu").level == "ok"
    assert "24 GiB" in doctor_machine.gpu((Gpu("A card", 24 * GIB, "580"),), device="cuda").found
    found(doctor_machine.compiler(compiled=True, found=None), "error", "no C++ compiler")
    assert doctor_machine.compiler(compiled=False, found=None).level == "ok"


def test_packages_are_compared_with_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "cpu.lock"
    path.write_text(f"a-b==1.0 --hash=sha256:{'0' * 64}\nc==2.0 --hash=sha256:{'1' * 64}\n")
    assert doctor_models.versions(path, {"a-b": "1.0", "c": "2.0"}).level == "ok"
    found(doctor_models.versions(path, {"a-b": "1.1"}), "warning", "a-b 1.1 instead of 1.0", "missing: c")
    found(doctor_models.versions(tmp_path / "none.lock"), "warning", "no lock")


def test_the_exit_code_is_that_of_the_worst_finding() -> None:
    good, odd, bad = (Check("x", level, "y") for level in ("ok", "warning", "error"))
    assert [worst(checks) for checks in ((), (good,), (good, odd), (odd, bad, good))] == [0, 0, 1, 2]


TRACE = """\
17 connect(3, {sa_family=AF_UNIX, sun_path="/run/x"}, 110) = -1 ENOENT (No such file or directory)
17 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
17 connect(4, {sa_family=AF_INET6, sin6_port=htons(0), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0
17 sendto(5, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.1")}, 16) = 1
18 connect(4, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = -1
"""


def test_what_native_code_tries_is_read_from_the_trace() -> None:
    assert doctor_offline.outward_connections(TRACE) == ["192.0.2.1", "2001:db8::1"]
    answer = {"model": "m", "tokens": 3, "seconds": 1.0, "refused": []}
    found(doctor_offline.judged(answer, ["192.0.2.1"], ["strace"]), "error", "192.0.2.1")
    refused = [{"event": "socket.connect", "host_class": "public address", "by": "some.module", "count": 2}]
    found(doctor_offline.judged({**answer, "refused": refused}, [], []), "error", "some.module", "2 times")
    assert doctor_offline.judged(answer, [], ["strace"]).found.endswith("connections attempted: none")


def test_a_generation_with_every_layer_on_attempts_no_connection() -> None:
    check = doctor_offline.generation({"engine": "scripted"}, timeout=120)
    assert check.level == "ok", check
    assert "connections attempted: none" in check.found
    assert "audit hook" in check.found


def test_a_generation_that_does_not_work_says_why() -> None:
    check = doctor_offline.generation({"engine": "transformers", "model": "nothing"}, timeout=120)
    found(check, "error", "no model is called 'nothing'")


def test_everything_is_looked_at_once() -> None:
    names = [check.name for check in doctor.examine(Settings(engine="scripted"), offline=False)]
    assert len(names) == len(set(names))
    assert {
        "Python",
        "CPU",
        "memory",
        "GPU",
        "disk",
        "caches",
        "compiler",
        "clock",
        "port",
        "versions",
        "model",
    } <= set(names)
    assert {f"offline: {name}" for name in ("environment", "audit hook", "children", "kernel")} <= set(names)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> "Command":
    return Command(tmp_path_factory.mktemp("command"))


def test_the_command_prints_for_people_and_for_programs(command: Command, store: Path) -> None:
    environment = {"DDX_LOCAL_MODELS": str(store)}
    done = command.run("doctor", "--engine", "scripted", "--json", env=environment)
    table = done.json
    assert table["schema"] == "ddx-local/doctor/1"
    assert done.code == table["exit_code"] == 2, "the embeddings are not there"
    by_name = {check["name"]: check for check in table["checks"]}
    assert by_name["embeddings"]["level"] == "error"
    assert "models pull" in by_name["embeddings"]["todo"]
    assert by_name["model"]["level"] == "ok"
    done = command.run("doctor", "--engine", "scripted", env=environment)
    assert done.code == 2
    assert "FAULT embeddings" in done.out
    assert not done.err


def test_the_machine_is_read_without_a_gpu_or_with_an_odd_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    for script, count in (("echo 'A, 81559, 580.1'; echo 'B, [N/A], 580.1'", 1), ("exit 9", 0), ("echo nonsense", 0)):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert len(machine.gpus()) == count
