"""A repository of the Hugging Face hub as a model folder: `python -m ddx_local.model_hub REPO REVISION OUT NOTE`.

A process of its own, which the network is open for; its parent's stays as it is. It knows no store and no card. Fetched are
safetensors, JSON, templates, tokenizers and licences, and nothing that could run: no pickle, no code.
"""

import os
import re
import shutil
import sys
from contextlib import nullcontext
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from ddx_local import offline
from ddx_local.errors import ModelError
from ddx_local.model_card import HubSource
from ddx_local.model_store import file_entry
from ddx_local.model_wheel import Progress, run_child

FETCHED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "LICENSE*", "LICENCE*", "NOTICE*", "USE_POLICY*")
SKIPPED = ("original/*", "onnx/*", "openvino/*", "runs/*", "checkpoint-*/*", "gguf/*", ".*")
COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_hub(source: HubSource, out: Path, part: Path, *, revision: str | None, progress: Progress) -> str:
    """Downloads a repository at one commit into `out`.

    Args:
        source: What the card says.
        out: The model's folder to fill.
        part: Where temporary files may lie.
        revision: The commit, branch or tag that the user asked for; None: the card's, else the newest.
        progress: Called before each step.

    Returns:
        The commit, 40 hex digits.

    Raises:
        ModelError: The hub does not answer, does not hand the repository out, or a file is not what it says.
    """
    wanted = revision or source.revision or "main"
    progress(f"downloading {source.repo} at {wanted}")
    note = part / "commit"
    guard = offline.installed()
    with guard.open_network("models pull", progress) if guard else nullcontext():
        run_child(
            [sys.executable, "-m", "ddx_local.model_hub", source.repo, wanted, str(out), str(note)],
            guard.child_env(open=True) if guard else dict(os.environ),
            part,
            cwd=Path(__file__).resolve().parents[1],
            what=f"{source.repo} could not be fetched",
            hint="Check the network, the proxy (HTTPS_PROXY) and the repository's terms: those of a gated one are accepted on "
            "its page, and HF_TOKEN names who did. Or fetch it elsewhere and type `ddx-local models add FOLDER`.",
        )
    commit = note.read_text()
    note.unlink()
    if COMMIT.fullmatch(wanted) is None:
        progress(f"{source.repo}: {wanted} is commit {commit} today; `--revision {commit}` fetches the same again")
    return commit


def download(repo: str, revision: str, out: Path) -> str:
    """What the child does.

    Raises:
        ModelError: There are no safetensors, or a file's sha256 is not the hub's.
    """
    from huggingface_hub import HfApi, hf_hub_download

    info = HfApi().model_info(repo, revision=revision, files_metadata=True)
    names = {item.rfilename: item for item in info.siblings or ()}
    if not any(name.endswith(".safetensors") for name in names):
        raise ModelError(f"{repo} holds no safetensors, the only weights that are loaded")
    commit = str(info.sha)
    for name in filter(wanted, names):
        hf_hub_download(repo, name, revision=commit, local_dir=out)
    shutil.rmtree(out / ".cache", ignore_errors=True)
    for name, item in names.items():
        path, stated = out / name, _stated_sha256(item)
        if path.is_file() and stated and file_entry(path).sha256 != stated:
            raise ModelError(f"{name}: its sha256 is not the one that the hub states ({stated})")
    return commit


def wanted(name: str) -> bool:
    """Whether a file of a repository belongs to the model, and is no weights in another format and no code."""
    skipped = any(fnmatch(name, pattern) for pattern in SKIPPED)
    return not skipped and any(fnmatch(PurePosixPath(name).name, pattern) for pattern in FETCHED)


def _stated_sha256(item: Any) -> str | None:
    """The hub states it for large files alone."""
    lfs = getattr(item, "lfs", None)
    found = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
    return found if isinstance(found, str) else None


def main(arguments: list[str]) -> int:
    os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    repo, revision, out, note = arguments
    try:
        commit = download(repo, revision, Path(out))
    except Exception as error:  # the hub's own errors are many, and come in several lines
        text = error.message if isinstance(error, ModelError) else " ".join(f"{type(error).__name__}: {error}".split())
        print(text[:400], file=sys.stderr)
        return 4
    Path(note).write_text(commit)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
