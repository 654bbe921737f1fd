"""Matchers by a local model's numbers: sentence embeddings (STS) and BERTScore. The models are loaded at the first question.

DxChain: cosine >= 0.7 taken greedily; BERTScore with the Hungarian algorithm and no threshold. Both accept hypothyroidism
for hyperthyroidism, so their error has to be measured before they are believed (`bench data matcher`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ddx_local.evaluation.match import Matched, assign, matched

Meaning = Callable[[Sequence[tuple[str, str]]], Awaitable[Sequence[float]]]
"""Cosine of each pair of texts."""

Vectors = npt.NDArray[np.float64]
Embed = Callable[[str], Vectors]
"""A text's token vectors, tokens x size, each of length 1."""

DXCHAIN_THRESHOLD = 0.7


@dataclass(frozen=True, slots=True)
class Embedding:
    """Cosine of sentence embeddings at or over a threshold, assigned optimally or greedily."""

    meaning: Meaning
    model: str
    threshold: float = DXCHAIN_THRESHOLD
    assignment: str = "optimal"

    @property
    def label(self) -> str:
        return f"embedding {self.model} >= {self.threshold:g} {self.assignment}"

    async def match(self, predictions: Sequence[str], golds: Sequence[str]) -> Matched:
        pairs = [(prediction, gold) for prediction in predictions for gold in golds]
        values = list(await self.meaning(pairs)) if pairs else []
        width = len(golds)
        table = [values[row * width : (row + 1) * width] for row in range(len(predictions))]
        return matched(table, self.threshold, by_greed=self.assignment == "greedy")


@dataclass(frozen=True, slots=True)
class BertScore:
    """BERTScore F1 of each pair, assigned by the highest sum; P, R and F1 are soft. A threshold gives hits as well."""

    embed: Embed
    model: str
    threshold: float | None = None

    @property
    def label(self) -> str:
        return f"bertscore {self.model}" + ("" if self.threshold is None else f" >= {self.threshold:g}")

    async def match(self, predictions: Sequence[str], golds: Sequence[str]) -> Matched:
        vectors = {text: self.embed(text) for text in dict.fromkeys((*predictions, *golds))}
        table = [[bert_f1(vectors[a], vectors[b]) for b in golds] for a in predictions]
        total = sum(value for _, _, value in assign(table, None))
        hits = matched(table, self.threshold if self.threshold is not None else 2.0)
        return Matched(hits.pairs, hits.first, hits.primary, upper=hits.upper, total=total)


def bert_f1(prediction: Vectors, gold: Vectors) -> float:
    """BERTScore's F1 (Zhang et al. 2020, without baseline and idf): the best cosine of each token, averaged both ways."""
    if not len(prediction) or not len(gold):
        return 0.0
    cosines = prediction @ gold.T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def token_embedder(folder: Path, layer: int | None = None) -> Embed:
    """Token vectors of a local encoder.

    Args:
        folder: The model's snapshot.
        layer: Hidden layer; None takes the last (BERTScore's table gives 17 for roberta-large).
    """
    loaded: list[Any] = []

    def embed(text: str) -> Vectors:
        import torch
        from transformers import AutoModel, AutoTokenizer

        if not loaded:
            loaded.append(AutoTokenizer.from_pretrained(folder, local_files_only=True))
            loaded.append(AutoModel.from_pretrained(folder, local_files_only=True).eval())
        tokenizer, model = loaded
        with torch.no_grad():
            inputs = tokenizer(text, return_tensors="pt", truncation=True)
            hidden = model(**inputs, output_hidden_states=True).hidden_states[-1 if layer is None else layer][0]
        vectors: Vectors = hidden.double().numpy()
        unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return unit

    return embed
