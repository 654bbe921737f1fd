"""Floors: what a look-up table scores on a data set, without reading it as a physician would. A method below one knows less.

Names are compared by their exact lower-case form, as in specs/evaluation.md, finding 9.
"""

from collections import Counter
from collections.abc import Sequence

from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.metrics import Sets, macro

SIZE = 5
NEIGHBOURS = 10


def floors(cases: Sequence[LabelledCase]) -> dict[str, float]:
    """Macro F1 of four look-ups, each leaving the case itself out where it would see it."""
    keys = [{gold.casefold().strip() for gold in case.gold} for case in cases]
    if len(cases) < 2:
        return {}
    every = Counter(key for golds in keys for key in golds)
    found = {"commonest": _f1([{key for key, _ in every.most_common(SIZE)}] * len(cases), keys)}
    if any("specialty" in case.groups for case in cases):
        found["commonest_of_specialty"] = _f1(_of_specialty(cases, keys), keys)
    order = _neighbours(cases)
    found["nearest_case"] = _f1([keys[places[0]] for places in order], keys)
    found["ten_nearest_vote"] = _f1([_vote(places[:NEIGHBOURS], keys) for places in order], keys)
    return found


def _f1(predicted: Sequence[set[str]], keys: Sequence[set[str]]) -> float:
    return macro([Sets(len(p & g), len(p), len(g)) for p, g in zip(predicted, keys, strict=True)]).f1


def _of_specialty(cases: Sequence[LabelledCase], keys: Sequence[set[str]]) -> list[set[str]]:
    tallies: dict[str, Counter[str]] = {}
    for case, golds in zip(cases, keys, strict=True):
        tallies.setdefault(case.groups.get("specialty", ""), Counter()).update(golds)
    found = []
    for case, golds in zip(cases, keys, strict=True):
        left = tallies[case.groups.get("specialty", "")] - Counter(golds)
        found.append({key for key, _ in left.most_common(SIZE)})
    return found


def _vote(places: Sequence[int], keys: Sequence[set[str]]) -> set[str]:
    votes = Counter(key for place in places for key in sorted(keys[place]))
    return {key for key, _ in votes.most_common(SIZE)}


def _neighbours(cases: Sequence[LabelledCase]) -> list[list[int]]:
    """For each case the others by tf-idf cosine of the texts, the nearest first."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform([case.case.text for case in cases])
    cosines = (table @ table.T).toarray()
    np.fill_diagonal(cosines, -1.0)
    return [list(map(int, row)) for row in np.argsort(-cosines, axis=1, kind="stable")]
