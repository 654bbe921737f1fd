"""What the program adds to the engine: driver time, prompt tokens computed twice, the price of grammars."""

import dataclasses
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.speed.shared import Noting, forget, opened, run, scot, vignettes
from ddx_local.store import Store


def driver_overhead() -> dict[str, float]:
    """Seconds of a SCoT case outside the engine (flow, filling, events, store on disk) / seconds inside."""
    noting = Noting(opened().engine)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "runs.sqlite")
        forget()
        scot(
            vignettes(1), Noting(opened().engine), agents=1, without="refinement,voting"
        )  # imports and the embedding model
        forget()
        began = time.perf_counter()
        scot(vignettes(1), noting, store=store)
        whole = time.perf_counter() - began
        store.close()
    return {"driver_overhead": (whole - noting.seconds) / noting.seconds}


def prefix_ratio() -> dict[str, float]:
    """Prompt tokens computed / tokens of the trie over all prompts of a run, in whole KV blocks; cold, two cases."""
    noting = Noting(opened().engine)
    forget()
    scot(vignettes(2), noting)
    engine: Any = opened().engine
    prompts = [ids for batch in noting.batches for ids in engine._front.prompts(batch)]
    computed = sum(item.prompt_tokens - item.cached_tokens for _, item in noting.answered)
    return {"prefix_ratio": computed / trie_tokens(prompts, engine.settings.block_size or 16)}


def trie_tokens(prompts: Sequence[Sequence[int]], block: int) -> int:
    """Tokens of the prompts when every shared beginning is counted once, rounded up to blocks."""
    blocks = {tuple(ids[:end]) for ids in prompts for end in (*range(block, len(ids), block), len(ids))}
    return block * len(blocks)


def grammar_cost() -> dict[str, float]:
    """Tokens a second with the grammar / without, for the same five prompts and the same number of tokens."""
    noting = Noting(opened().engine)
    scot(vignettes(1), noting, without="relevance,triage,merge,refinement,voting,cant_miss")
    batch = noting.batches[-1]
    answers = [answer for _, answer in noting.answered[-len(batch) :]]
    free = [
        dataclasses.replace(
            request, grammar=None, sampling=dataclasses.replace(request.sampling, max_tokens=answer.generated_tokens)
        )
        for request, answer in zip(batch, answers, strict=True)
    ]
    rates = {name: max(_rate(requests) for _ in range(2)) for name, requests in (("bound", batch), ("free", free))}
    return {"grammar_cost": rates["bound"] / rates["free"]}


def _rate(requests: Any) -> float:
    began = time.perf_counter()
    completions = run(opened().engine.generate(requests))
    return sum(item.generated_tokens for item in completions) / (time.perf_counter() - began)
