"""Embeddings of texts: by the local sentence-embedding model, or, on the scripted engine, made-up vectors of the right form."""

import asyncio
import base64
import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ddx_local import models
from ddx_local.server import fields as f
from ddx_local.server.errors import invalid, unsupported

Json = dict[str, Any]

MOST_TEXTS = 256


class Embedder(Protocol):
    """Texts to vectors of unit length, and how many tokens were read."""

    async def __call__(self, texts: Sequence[str]) -> tuple[list[list[float]], int]: ...


class LocalModel:
    """The sentence-embedding model of the model store, loaded at the first request. One request at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model: Any = None
        self._lock = asyncio.Lock()

    async def __call__(self, texts: Sequence[str]) -> tuple[list[list[float]], int]:
        async with self._lock:
            return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> tuple[list[list[float]], int]:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            folder = models.snapshot(self._name)
            self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        vectors = self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True)
        # The model sees no more than its window of a text.
        window = int(self._model.max_seq_length)
        tokens = sum(min(window, len(self._model.tokenizer.tokenize(text)) + 2) for text in texts)
        return [[float(value) for value in vector] for vector in vectors], tokens


async def made_up(texts: Sequence[str]) -> tuple[list[list[float]], int]:
    """Vectors of 64 numbers that depend on the text and mean nothing."""
    found = []
    for text in texts:
        data = hashlib.shake_256(text.encode()).digest(64)
        vector = [byte - 127.5 for byte in data]
        size = math.sqrt(sum(value * value for value in vector))
        found.append([value / size for value in vector])
    return found, sum(len(text.encode()) for text in texts)


async def answer(given: Mapping[str, Any], model: str, embed: Callable[[Sequence[str]], Any]) -> Json:
    """The reply to a request.

    Raises:
        ApiError: 400; a field is wrong.
    """
    kind = given.get("encoding_format", "float")
    if kind not in ("float", "base64"):
        raise invalid("`encoding_format` must be float or base64.", "encoding_format")
    if "dimensions" in given:
        f.whole(given, "dimensions", 1, 1 << 16, 1)
        raise unsupported("dimensions")
    value = given.get("input")
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list) and texts and not any(isinstance(item, str) for item in texts):
        raise invalid("`input` must be a text or a list of texts; token ids are not taken.", "input")
    if not isinstance(texts, list) or not all(isinstance(item, str) and item for item in texts):
        raise invalid("`input` must be a text or a list of texts, none of them empty.", "input")
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise invalid(f"`input` must hold 1 to {MOST_TEXTS} texts.", "input")
    vectors, tokens = await embed(texts)
    return {
        "object": "list",
        "model": model,
        "data": [
            {"object": "embedding", "index": index, "embedding": _base64(vector) if kind == "base64" else vector}
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
