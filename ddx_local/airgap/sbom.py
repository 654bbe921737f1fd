"""The bill of materials of a bundle: CycloneDX 1.6 in JSON, with the models in it as what they are. It reads no files."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from ddx_local.airgap.wheels import Package
from ddx_local.model_card import ModelCard
from ddx_local.model_store import Manifest

_SPDX = {
    "MIT": "MIT",
    "MIT License": "MIT",
    "Apache-2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD-3-Clause": "BSD-3-Clause",
    "BSD-2-Clause": "BSD-2-Clause",
    "ISC": "ISC",
    "MPL-2.0": "MPL-2.0",
    "PSF-2.0": "PSF-2.0",
}
_TASKS = {"chat": "text-generation", "embedding": "sentence-similarity"}


def document(
    own: Package, packages: Sequence[Package], models: Sequence[tuple[ModelCard, Manifest, str]], *, created_at: str
) -> str:
    """The document as text.

    Args:
        own: The project's own wheel.
        packages: The other ones.
        models: Card, manifest of the snapshot, and the one digest of all its files.
        created_at: ISO 8601.
    """
    parts = [_library(package) for package in packages] + [_model(*model) for model in models]
    digests = "".join(sorted([own.sha256, *(p.sha256 for p in packages), *(digest for _, _, digest in models)]))
    root = {**_library(own), "type": "application"}
    table = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digests)}",
        "version": 1,
        "metadata": {"timestamp": created_at, "component": root},
        "components": sorted(parts, key=lambda part: (part["type"], part["name"])),
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": sorted(part["bom-ref"] for part in parts)}],
    }
    return json.dumps(table, indent=1, ensure_ascii=True) + "\n"


def _library(package: Package) -> dict[str, Any]:
    place = f"pkg:pypi/{package.name}@{package.version.replace('+', '%2B')}"
    return {
        "type": "library",
        "bom-ref": place,
        "name": package.name,
        "version": package.version,
        "purl": place,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        **_licences(package.licence),
    }


def _model(card: ModelCard, manifest: Manifest, digest: str) -> dict[str, Any]:
    source = " ".join(f"{key}={value}" for key, value in sorted(manifest.source.items()))
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{card.name}",
        "name": card.name,
        "version": manifest.source.get("revision") or manifest.source.get("version") or digest[:16],
        "description": f"{card.purpose} From: {source}"[:1000],
        "hashes": [{"alg": "SHA-256", "content": digest}],
        **_licences(card.licence),
        "modelCard": {"modelParameters": {"task": _TASKS[card.kind], "approach": {"type": "self-supervised"}}},
        "components": [
            {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": entry.sha256}]}
            for name, entry in sorted(manifest.files.items())
        ],
    }


def _licences(said: str) -> dict[str, Any]:
    if not said:
        return {}
    known = _SPDX.get(said)
    return {"licenses": [{"license": {"id": known} if known else {"name": said}}]}
