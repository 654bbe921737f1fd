"""What `layers()` says, in processes and namespaces where it is known."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.guarded import GUARDED, NOBODY, PRELUDE, answer

SHOW = "print(json.dumps({layer.name: [layer.holds, layer.detail, layer.todo] for layer in layers()}))"


def test_in_an_empty_network_namespace_every_layer_holds(netns: tuple[str, ...], guarded_venv: Path) -> None:
    seen = answer(GUARDED + SHOW, prefix=netns, python=guarded_venv)
    assert {name: holds for name, (holds, _, _) in seen.items()} == dict.fromkeys(
        ("environment", "audit hook", "children", "kernel"), True
    )
    assert not any(todo for _, _, todo in seen.values())
    assert "uvloop" in seen["audit hook"][1]


@pytest.mark.usefixtures("netns")
def test_a_namespace_without_loopback_says_what_a_process_group_needs(guarded_venv: Path) -> None:
    seen = answer(GUARDED + SHOW, prefix=("unshare", "-rn"), python=guarded_venv)
    assert seen["kernel"][0] is True
    assert seen["kernel"][2] == "Run `ip link set lo up`."


def test_an_interface_that_is_up_is_named_with_what_to_do() -> None:
    up = subprocess.run(["ip", "-o", "link", "show", "up"], capture_output=True, text=True, check=True).stdout
    outer = sorted(set(re.findall(r"^\d+: ([^:@]+)", up, re.MULTILINE)) - {"lo"})
    if not outer:
        pytest.skip("this machine has no interface up but loopback")
    holds, detail, todo = answer(GUARDED + SHOW)["kernel"]
    assert (holds, detail.startswith(f"{', '.join(outer)} is up")) == (False, True)
    assert "unshare -rn" in todo


def test_a_process_that_never_went_offline_is_told_so_layer_by_layer() -> None:
    seen = answer(PRELUDE + SHOW)
    assert [seen[name][0] for name in ("environment", "audit hook", "children")] == [False] * 3
    assert "HF_HUB_OFFLINE" in seen["environment"][1]
    assert all(seen[name][2] for name in ("environment", "audit hook", "children"))


def test_an_open_network_shows_in_the_layers_and_refusals_are_counted_there() -> None:
    code = f"""
try:
    socket.socket().connect(("{NOBODY}", 80))
except OfflineViolation:
    pass
seen = [layers()[1].detail]
with guard.open_network("models pull", lambda line: None):
    seen += [layer.holds for layer in layers()[:3]]
    seen += [layers()[1].detail]
print(json.dumps(seen))
"""
    seen = answer(GUARDED + code)
    assert "1 attempts refused" in seen[0]
    assert seen[1:] == [False, False, False, "open for `models pull`"]
