"""Models as the rest of the program sees them: cards, the store, pulling and verifying. The parts live in model_*.py."""

from ddx_local.model_add import add, remove
from ddx_local.model_card import (
    ChatQuirks,
    HubSource,
    ModelCard,
    PackageSource,
    SamplingDefaults,
    Source,
    Thinking,
    Wheel,
    card,
    cards,
)
from ddx_local.model_chat import chat_ids, chat_text
from ddx_local.model_pull import pull
from ddx_local.model_store import Finding, Manifest, installed, read_manifest, snapshot, store_dir, weights_sha256
from ddx_local.model_verify import verify

__all__ = [
    "ChatQuirks",
    "Finding",
    "HubSource",
    "Manifest",
    "ModelCard",
    "PackageSource",
    "SamplingDefaults",
    "Source",
    "Thinking",
    "Wheel",
    "add",
    "card",
    "cards",
    "chat_ids",
    "chat_text",
    "installed",
    "pull",
    "read_manifest",
    "remove",
    "snapshot",
    "store_dir",
    "verify",
    "weights_sha256",
]
