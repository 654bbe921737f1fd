"""Floors: what a look-up table scores on a data set, without reading it as a physician would. A method below one knows less.

Names are compared by their exact lower-case form, as in specs/evaluation.md, finding 9.
"""

from collections import Counter
from collections.abc import Sequence

from ddx_local.evaluation.datasets import LabelledCase
from ddx_local.evaluation.metrics import Sets, macro

SIZE = 5
NEIGHBOURS = 10
BLOCK = 256
"""Cases compared with all others at once."""


def floors(cases: Sequence[LabelledCase]) -> dict[str, float]:
    """Macro F1 of four look-ups, each leaving the case itself out where it would see it."""
    keys = [{gold.casefold().strip() for gold in case.gold} for case in cases]
    if len(cases) < 2:
        return {}
    every = Counter(key for golds in keys for key in golds)
    found = {"commonest": _f1([_most(every)] * len(cases), keys)}
    if any("specialty" in case.groups for case in cases):
        found["commonest_of_specialty"] = _f1(_of_specialty(cases, keys), keys)
    near = _neighbours(cases)
    found["nearest_case"] = _f1([keys[places[0][0]] for places in near], keys)
    found["ten_nearest_vote"] = _f1([_vote(places, keys) for places in near], keys)
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
        found.append(_most(left))
    return found


def _most(counts: Counter[str]) -> set[str]:
    """The commonest names; ties by name, so that it is the same in every process."""
    return set(sorted(counts, key=lambda key: (-counts[key], key))[:SIZE])


def _vote(near: Sequence[tuple[int, float]], keys: Sequence[set[str]]) -> set[str]:
    """The names with most votes, each neighbour's weighed by how near it is."""
    votes: dict[str, float] = {}
    for place, cosine in near:
        for key in sorted(keys[place]):
            votes[key] = votes.get(key, 0.0) + cosine
    return set(sorted(votes, key=lambda key: (-votes[key], key))[:SIZE])


def _neighbours(cases: Sequence[LabelledCase]) -> list[list[tuple[int, float]]]:
    """For each case its nearest others with their tf-idf cosines, the nearest first."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = TfidfVectorizer(stop_words="english").fit_transform([case.case.text for case in cases])
    found = []
    for start in range(0, len(cases), BLOCK):
        cosines = (table[start : start + BLOCK] @ table.T).toarray()
        for offset, row in enumerate(cosines):
            row[start + offset] = -1.0
            order = np.argsort(-row, kind="stable")[:NEIGHBOURS]
            found.append([(int(place), float(row[place])) for place in order if place != start + offset])
    return found
