"""The switches, and the libraries that they are for."""

from pathlib import Path

import pytest

from ddx_local.offline import SWITCHES
from ddx_local.offline_switches import ENFORCED, QUIET, UNSET
from tests.guarded import GUARDED, PRELUDE, answer, clean_env, run


@pytest.mark.parametrize("before", [{}, dict.fromkeys(ENFORCED, "0") | dict.fromkeys(UNSET, "http://127.0.0.1:3128")])
def test_every_switch_is_set_whatever_the_user_has(before: dict[str, str]) -> None:
    env = answer(GUARDED + "print(json.dumps(dict(os.environ)))", env=clean_env(**before))
    assert SWITCHES.items() <= env.items()
    assert not set(UNSET) & set(env)
    assert env["DDX_LOCAL_OFFLINE"] == "1"


def test_what_only_keeps_a_library_quiet_is_the_users_to_change() -> None:
    code = "print(json.dumps([os.environ['VLLM_LOGGING_LEVEL'], layers()[0].holds]))"
    assert "VLLM_LOGGING_LEVEL" in QUIET
    assert answer(GUARDED + code, env=clean_env(VLLM_LOGGING_LEVEL="DEBUG")) == ["DEBUG", True]


@pytest.mark.parametrize("after", ["", "os.environ['HF_HUB_OFFLINE'] = '1'; "])
def test_a_library_that_was_imported_without_its_switch_is_told_off(after: str) -> None:
    done = run(PRELUDE + f"import huggingface_hub.constants; {after}go_offline()")
    assert (
        "OfflineViolation: huggingface_hub was imported before the network was closed, without HF_HUB_OFFLINE"
        in done.stderr
    )


def test_a_library_that_was_imported_with_its_switch_is_fine() -> None:
    code = (
        "import huggingface_hub.constants; go_offline(); go_offline(); print(json.dumps(installed() is go_offline()))"
    )
    assert answer(PRELUDE + code, env=clean_env(HF_HUB_OFFLINE="1")) is True


def test_the_hub_is_not_even_tried() -> None:
    code = """
from huggingface_hub import HfApi, snapshot_download
said = []
for call in (lambda: HfApi().model_info("nobody/nothing"), lambda: snapshot_download("nobody/nothing")):
    try:
        call()
    except Exception as error:
        said.append(type(error).__name__)
print(json.dumps([said, guard.refused]))
"""
    said, refused = answer(GUARDED + code)
    assert said == ["OfflineModeIsEnabled", "LocalEntryNotFoundError"]
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["1", None])
def test_a_tokenizer_in_a_local_folder_loads_without_an_attempt_with_and_without_the_switch(
    switch: str | None, tmp_path: Path
) -> None:
    lift = "" if switch else "del os.environ['HF_HUB_OFFLINE'], os.environ['TRANSFORMERS_OFFLINE']"
    code = f"""
{lift}
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast
folder = {str(tmp_path)!r}
PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({{"fever": 0, "?": 1}}, "?"))).save_pretrained(folder)
print(json.dumps([AutoTokenizer.from_pretrained(folder)("fever").input_ids, guard.refused]))
"""
    assert answer(GUARDED + code) == [[0], []]


@pytest.mark.slow
def test_a_process_group_starts_in_an_empty_network_namespace(netns: tuple[str, ...]) -> None:
    code = """
import torch.distributed as dist
s = socket.socket(); s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]; s.close()
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
dist.destroy_process_group()
print(json.dumps(guard.refused))
"""
    assert answer(GUARDED + code, prefix=netns) == []


@pytest.mark.slow
def test_vllm_learns_its_own_address_without_asking_a_public_one() -> None:
    code = """
from vllm.utils.network_utils import get_ip, get_open_port
get_open_port()
print(json.dumps([get_ip(), guard.refused]))
"""
    assert answer(GUARDED + code) == ["127.0.0.1", []]
