"""Is a model folder whole, and safe to load? It reads files and tokenises one chat; it loads no weights.

Safe means: weights are safetensors, nothing is a pickle, nothing is code, nothing names code to import.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from ddx_local.errors import ModelError
from ddx_local.home import expanded
from ddx_local.model_card import cards
from ddx_local.model_chat import chat_findings
from ddx_local.model_store import MANIFEST, Finding, Manifest, file_entry, files_of, read_manifest, snapshot

_PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".mar"})
_CODE = frozenset({".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".sh", ".exe"})
_OTHER_WEIGHTS = frozenset({".gguf", ".ggml", ".onnx", ".h5", ".msgpack", ".tflite", ".pb", ".ot", ".npy", ".npz"})
_TRUSTED_MODULES = "sentence_transformers."
_SOURCE_HINT = "Take the model from a source that publishes safetensors, without code of its own."


def verify(name_or_path: str | Path, store: Path | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong with a model, errors first.

    Args:
        name_or_path: A name in the store, or a folder: a `Path`, or a text with a slash in it.
        store: The store, None for the default one.

    Returns:
        No finding for a model that is whole and safe. Tokenizer and template are looked at only when the files are in
        order.

    Raises:
        ModelError: There is no such model or folder.
    """
    by_path = isinstance(name_or_path, Path) or "/" in name_or_path
    folder = expanded(name_or_path).absolute() if by_path else snapshot(str(name_or_path), store)
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder")
    manifest: Manifest | None = None
    findings: list[Finding] = []
    if (folder / MANIFEST).exists():
        try:
            manifest = read_manifest(folder)
            findings += manifest_findings(folder, manifest)
        except ModelError as error:
            findings.append(Finding("error", MANIFEST, error.message, error.hint))
    else:
        what = "there is no manifest, so no digest was checked"
        findings.append(Finding("warning", MANIFEST, what, "Compare the files with their source's digests."))
    card = cards().get(manifest.card) if manifest else None
    embedding = card.kind == "embedding" if card else (folder / "modules.json").exists()
    findings += content_findings(folder, embedding=embedding)
    if not embedding and not any(finding.level == "error" for finding in findings):
        findings += chat_findings(folder, card.chat if card else None)
    return tuple(sorted(findings, key=lambda finding: (finding.level != "error", finding.file)))


def manifest_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Files that are missing, changed, or not in the manifest."""
    again = f"Delete the folder {folder} and run `ddx-local models pull {manifest.card}`."
    present = set(files_of(folder))
    for name, entry in manifest.files.items():
        if name not in present:
            yield Finding("error", name, "the file is missing", again)
            continue
        found = file_entry(folder / name)
        if found.bytes != entry.bytes:
            yield Finding("error", name, f"the file has {found.bytes} bytes, the manifest says {entry.bytes}", again)
        elif found.sha256 != entry.sha256:
            what = f"the file was changed: its sha256 is {found.sha256}, the manifest says {entry.sha256}"
            yield Finding("error", name, what, again)
    for name in sorted(present - manifest.files.keys()):
        yield Finding("error", name, "the file is not in the manifest", f"Delete {folder / name}, or pull again.")


def content_findings(folder: Path, *, embedding: bool) -> Iterator[Finding]:
    """What no model folder may hold, and what its kind must hold."""
    names = files_of(folder)
    for name in names:
        yield from _file_findings(folder, name)
    required = {"config.json", *(("modules.json",) if embedding else ())}
    for name in sorted(required - set(names)):
        yield Finding("error", name, "the file is missing", "Take the whole model folder from its source.")
    if not any(name.endswith(".safetensors") for name in names):
        yield Finding("error", "", "there are no weights: no .safetensors file", _SOURCE_HINT)
    if not {"tokenizer.json", "tokenizer.model", "vocab.txt"} & set(names):
        what = "there is no tokenizer: none of tokenizer.json, tokenizer.model, vocab.txt"
        yield Finding("error", "tokenizer.json", what, "Take the whole model folder from its source.")


def _file_findings(folder: Path, name: str) -> Iterator[Finding]:
    path = folder / name
    suffix = path.suffix.lower()
    if path.is_symlink() or not path.is_file():
        yield Finding("error", name, "this is a link or a special file", "Copy the folder with `cp -rL`.")
        return
    with path.open("rb") as file:
        head = file.read(9)
    if suffix in _PICKLES or (suffix != ".safetensors" and _is_pickle(head)):
        yield Finding(
            "error", name, "this is a pickle file (or an archive of one), which runs code when loaded", _SOURCE_HINT
        )
    elif suffix in _CODE:
        yield Finding("error", name, "this is code, and a model folder may hold none", _SOURCE_HINT)
    elif suffix in _OTHER_WEIGHTS:
        yield Finding("error", name, "these weights are not safetensors, the only format that is loaded", _SOURCE_HINT)
    elif suffix == ".safetensors" and (fault := _safetensors_fault(path)):
        yield Finding("error", name, fault, "Pull or copy the file again.")
    elif suffix == ".json" and name != MANIFEST:
        yield from _json_findings(folder, name)


def _is_pickle(head: bytes) -> bool:
    """A pickle of protocol 2 or later, or a zip archive, which is what torch.save writes."""
    return (head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")) or head[:4] == b"PK\x03\x04"


def _safetensors_fault(path: Path) -> str | None:
    """Compares the header (8 bytes of length, then JSON with each tensor's byte range) with the file's size."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= size - 8:
            return "this is not a safetensors file: its header is longer than the file"
        try:
            header = json.loads(file.read(length))
            ends = [tensor["data_offsets"][1] for key, tensor in header.items() if key != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "this is not a safetensors file: its header cannot be read"
    expected = 8 + length + max(ends, default=0)
    return None if expected == size else f"the file has {size} bytes, its header says {expected}"


def _json_findings(folder: Path, name: str) -> Iterator[Finding]:
    try:
        table = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        yield Finding("error", name, f"this is not JSON: {error}", "Pull or copy the file again.")
        return
    expected = list if name == "modules.json" else dict
    if name in ("config.json", "modules.json") and not isinstance(table, expected):
        yield Finding("error", name, f"this is not a JSON {expected.__name__}", "Pull or copy the file again.")
        return
    if isinstance(table, dict) and "auto_map" in table:
        yield Finding("error", name, "`auto_map` asks for code of the model's own, which is never run", _SOURCE_HINT)
    if isinstance(table, dict) and name.endswith(".safetensors.index.json"):
        for shard in sorted({str(shard) for shard in dict(table.get("weight_map", {})).values()}):
            if not (folder / shard).is_file():
                yield Finding("error", shard, f"the file is missing, {name} names it", "Pull or copy the file again.")
    if name == "modules.json":
        yield from _module_findings(folder, table)


def _module_findings(folder: Path, modules: list[dict[str, str]]) -> Iterator[Finding]:
    """sentence-transformers imports each module by its dotted name, and reads its settings from a folder."""
    for module in modules:
        kind, place = str(module.get("type")), str(module.get("path", ""))
        if not kind.startswith(_TRUSTED_MODULES):
            what = f"module {kind!r} is code from outside sentence-transformers, which is never run"
            yield Finding("error", "modules.json", what, _SOURCE_HINT)
        settings = f"{place}/config.json"
        if place and not kind.endswith(".Normalize") and not (folder / settings).is_file():
            what = f"the file is missing, module {kind!r} reads it"
            yield Finding("error", settings, what, "Take the whole model folder from its source.")


def first_error(findings: tuple[Finding, ...] | list[Finding]) -> Finding | None:
    return next((finding for finding in findings if finding.level == "error"), None)
