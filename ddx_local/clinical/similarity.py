"""Similarity of texts: of meaning, by a local sentence-embedding model, and of spelling. A missing model is an error, never a zero."""

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ddx_local.flow import Similarity

KEPT = 8192
"""Embeddings that are kept; an edited case shares most of its sentences with the case."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")


class Similarities:
    """Answers `Similarity` consultations.

    Meaning: cosine of the two texts' embeddings, in [-1, 1]. Where one of a pair is longer than the model's window, both are
    embedded by sentences and averaged, a sentence over the window in parts, so that no part of a text is out of sight.
    Spelling: 2 x longest common subsequence / both lengths, in [0, 1] (no junk heuristics, as difflib has on longer texts).
    Values are rounded to 6 digits, so that a replayed comparison falls out the same. The model is loaded at the first
    question that needs it.

    Args:
        folder: The embedding model's snapshot.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._model: Any = None
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._lock = asyncio.Lock()

    async def __call__(self, about: Similarity) -> list[float]:
        if about.kind == "spelling":
            return await asyncio.to_thread(_spelling, about.pairs)
        async with self._lock:
            return await asyncio.to_thread(self._meaning, about.pairs)

    def _meaning(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        model = self._loaded()
        long = {text for text in {text for pair in pairs for text in pair} if self._is_long(model, text)}
        split = [(a, b, a in long or b in long) for a, b in pairs]
        pieces = {(text, cut): self._pieces(model, text) if cut else (text,) for a, b, cut in split for text in (a, b)}
        needed = dict.fromkeys(piece for parts in pieces.values() for piece in parts)
        self._embed(model, [piece for piece in needed if piece not in self._known])
        cosines = [float(self._vector(pieces[a, cut]) @ self._vector(pieces[b, cut])) for a, b, cut in split]
        self._forget()
        return [round(cosine, 6) for cosine in cosines]

    def _loaded(self) -> Any:
        if self._model is None:
            # sentence-transformers looks for TensorFlow's Keras otherwise, which it does not need.
            os.environ.setdefault("USE_TF", "0")
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)
        return self._model

    def _is_long(self, model: Any, text: str) -> bool:
        # No word piece is shorter than a character: short texts need no tokenizer.
        return len(text) > _window(model) and len(model.tokenizer.tokenize(text)) > _window(model)

    def _pieces(self, model: Any, text: str) -> tuple[str, ...]:
        """The text's sentences, each within the window."""
        sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()] or [text]
        return tuple(
            piece
            for sentence in sentences
            for piece in (_parts(sentence, _window(model)) if self._is_long(model, sentence) else [sentence])
        )

    def _embed(self, model: Any, texts: Sequence[str]) -> None:
        if texts:
            vectors = model.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
            self._known.update(zip(texts, vectors, strict=True))

    def _vector(self, pieces: Sequence[str]) -> Any:
        vectors = [self._known[piece] for piece in pieces]
        mean = sum(vectors[1:], start=vectors[0]) / len(vectors)
        return mean / max(float((mean @ mean) ** 0.5), 1e-12)

    def _forget(self) -> None:
        while len(self._known) > KEPT:
            self._known.popitem(last=False)


def _window(model: Any) -> int:
    """Word pieces of a text that the model sees, beside its two marks."""
    return int(model.max_seq_length) - 2


def _parts(text: str, most: int) -> list[str]:
    """The text in parts of at most so many characters, which is at most as many word pieces; between words where there are."""
    return [part for part in re.findall(rf"(?s).{{1,{most}}}(?!\S)|.{{1,{most}}}", text) if part.strip()]


def _spelling(pairs: Iterable[tuple[str, str]]) -> list[float]:
    from rapidfuzz.distance import Indel

    return [round(Indel.normalized_similarity(a, b), 6) for a, b in pairs]


async def spelling_similarity(about: Similarity) -> list[float]:
    """Similarity of spelling for both kinds: for engines without any model, where there are no embeddings either."""
    return _spelling(about.pairs)
