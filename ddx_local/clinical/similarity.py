"""Similarity of meaning by a local sentence-embedding model (all-MiniLM-L6-v2). A missing model is an error, never a zero."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ddx_local.flow import Similarity


class Similarities:
    """Answers `Similarity` consultations: the cosine of the two texts' embeddings, in [-1, 1].

    The model is loaded at the first question that needs it. `folder` is the model's snapshot.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._model: Any = None
        self._known: dict[str, Any] = {}
        self._lock = asyncio.Lock()

    async def __call__(self, about: Similarity) -> list[float]:
        """Cosines of the pairs, in order, rounded to 6 digits so that a replayed comparison falls out the same."""
        texts = dict.fromkeys(text for pair in about.pairs for text in pair)
        async with self._lock:
            new = [text for text in texts if text not in self._known]
            if new:
                vectors = await asyncio.to_thread(self._embed, new)
                self._known.update(zip(new, vectors, strict=True))
        return [round(float(self._known[a] @ self._known[b]), 6) for a, b in about.pairs]

    def _embed(self, texts: Sequence[str]) -> Any:
        if self._model is None:
            # sentence-transformers looks for TensorFlow's Keras otherwise, which it does not need.
            os.environ.setdefault("USE_TF", "0")
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)
        return self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )


async def spelling_similarity(about: Similarity) -> list[float]:
    """Similarity of spelling in [0, 1], in place of the embedding model where there is no model at all."""
    from rapidfuzz.fuzz import ratio

    return [round(ratio(a, b) / 100, 6) for a, b in about.pairs]
