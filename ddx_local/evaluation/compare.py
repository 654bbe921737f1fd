"""Two recorded benchmarks against each other: the same arms, paired on the cases that both have, failures included."""

from collections.abc import Sequence

from ddx_local.errors import UsageError, nearest
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.report_compare import compare, verdict
from ddx_local.evaluation.report_table import Json, by_arm
from ddx_local.evaluation.score import CaseScore
from ddx_local.evaluation.statistics import holm


def between(
    one: tuple[Bench, Sequence[CaseScore]], two: tuple[Bench, Sequence[CaseScore]], arms: tuple[str, str] | None = None
) -> list[Json]:
    """Every arm that both have (or one arm of each), the second benchmark minus the first.

    Args:
        one: A benchmark with its rows: what is compared with.
        two: The other.
        arms: The label of an arm of each, where they are not called the same.

    Raises:
        UsageError: No arm or no case in common, or a case with one id and two texts or golds.
    """
    _same_cases(one[0], two[0])
    first, second = by_arm(one[1]), by_arm(two[1])
    if arms is not None:
        for label, found in zip(arms, (first, second), strict=True):
            if label not in {arm for _, arm in found}:
                raise UsageError(f"no method `{label}`: {nearest(label, sorted({arm for _, arm in found}))}")
        pairs = [(a, b) for a in first for b in second if (a[1], b[1]) == arms and _comparable(a, b, first, second)]
    else:
        pairs = [(key, key) for key in first if key in second]
        if not pairs and len(first) == len(second) == 1:
            pairs = [(next(iter(first)), next(iter(second)))]
    if not pairs:
        known = sorted({arm for _, arm in first})
        raise UsageError(
            f"the two have no method in common; the first has {', '.join(known)}", "Name them: --arms A,B."
        )
    items = [compare(first[a], second[b], None) for a, b in pairs]
    for item, p in zip(items, holm([item["p"] for item in items]), strict=True):
        item["p_holm"], item["holm_over"] = p, len(items)
        item["verdict"] = verdict(item)
    for item, (a, b) in zip(items, pairs, strict=True):
        item["answers_that_differ"] = flips(first[a], second[b])
    return items


def flips(one: Sequence[CaseScore], two: Sequence[CaseScore]) -> Json:
    """Of the cases that both ran with the same seed, how many have another list: what parallelism or an engine changes."""
    others = {(row.case_id, row.seed): row.predictions for row in two}
    both = [(row.predictions, others[row.case_id, row.seed]) for row in one if (row.case_id, row.seed) in others]
    differ = sum(a != b for a, b in both)
    return {"n": len(both), "differ": differ, "share": differ / len(both) if both else None}


def _comparable(a: tuple[str, str], b: tuple[str, str], first: object, second: object) -> bool:
    """The same model, or the only one of each."""
    return a[0] == b[0] or (len(first) == len(second) == 1)  # type: ignore[arg-type]


def _same_cases(one: Bench, two: Bench) -> None:
    others = {case.id: case for case in two.cases}
    common = [case for case in one.cases if case.id in others]
    if not common:
        raise UsageError("the two benchmarks have no case in common", "Compare benchmarks on the same data set.")
    for case in common:
        other = others[case.id]
        if (case.case.text, case.gold) != (other.case.text, other.gold):
            raise UsageError(
                f"case `{case.id}` has another text or gold in the second benchmark", "They cannot be paired."
            )
