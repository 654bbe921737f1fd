"""SCoT on the project's own cases with the embedded model: does every turn parse, are the quotes the case's own?"""

import asyncio
from typing import Any

from bench.speed.shared import Noting, opened, parse, run, scot_run, vignettes

CASES, SEEDS = 12, 2


def scot_cases() -> dict[str, float]:
    """12 cases, 2 seeds, as many at once as the program has by default.

    Returns:
        Cases that failed, structured turns, those that a JSON parser refuses, batches of the longest case, quotes, those
        that are not in their case, and the shares of quotes that are missing (null) and repeated within an answer.
    """
    failed = turns = unread = quotes = foreign = missing = repeated = 0
    most = 0
    cases = vignettes(CASES)
    noted = [Noting(opened().engine) for _ in range(SEEDS)]

    async def everything() -> list[Any]:
        return await asyncio.gather(*(scot_run(cases, noting, seed=seed) for seed, noting in enumerate(noted)))

    for noting, documents in zip(noted, run(everything()), strict=True):
        for document in documents:
            failed += document["status"] != "finished"
            most = max(most, document["totals"]["batches"])
        texts = {case.text: case.id for case in cases}
        for request, answer in noting.answered:
            turns += 1
            case = next(text for text in texts if text in request.messages[-1].content)
            try:
                found = list(_quotes(parse(answer.text)))
            except ValueError:
                unread += 1
                continue
            said = [quote.strip() for quote in found if quote]
            quotes += len(said)
            missing += len(found) - len(said)
            foreign += sum(quote not in case for quote in said)
            repeated += len(said) - len(set(said))
    return {
        "scot_cases_failed": failed,
        "scot_turns": turns,
        "scot_turns_unread": unread,
        "scot_most_batches": most,
        "scot_quotes": quotes,
        "scot_quotes_not_in_case": foreign,
        "scot_quotes_missing_share": missing / max(quotes + missing, 1),
        "scot_quotes_repeated_share": repeated / max(quotes, 1),
    }


def _quotes(value: object) -> "list[str | None]":
    """All values under `quote` and `evidence`, at any depth."""
    if isinstance(value, list):
        return [quote for item in value for quote in _quotes(item)]
    if not isinstance(value, dict):
        return []
    found: list[str | None] = []
    for key, item in value.items():
        if key == "quote":
            found.append(item)
        elif key == "evidence":
            found += item
        else:
            found += _quotes(item)
    return found
