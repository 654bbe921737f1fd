"""Equal budgets: how many samples a baseline may draw to use as many tokens as the method that it is compared with."""

from collections.abc import Callable

from ddx_local.errors import UsageError
from ddx_local.evaluation.record import Bench
from ddx_local.evaluation.suite import Arm, Suite
from ddx_local.events import Answered
from ddx_local.store import Store

MOST_SAMPLES = 200
WITHIN = 0.05
"""By how much the two totals may differ."""


def tokens_per_case(bench: Bench, store: Store, arm: str, model: str) -> float | None:
    """Mean prompt and generated tokens of an arm's cases on a model; None where it has none."""
    total = cases = 0
    for run in bench.runs:
        if run.arm == arm and run.model == model:
            for case_id in run.cases:
                events = store.events(run.run_id, case_id)
                total += sum(e.prompt_tokens + e.generated_tokens for e in events if isinstance(e, Answered))
                cases += 1
    return total / cases if cases else None


def sample_count(arm: Arm, suite: Suite, bench: Bench, store: Store, model: str, say: Callable[[str], None]) -> int:
    """Samples of an equal-budget arm, from the tokens of the arm that it names and those of one baseline answer.

    Raises:
        UsageError: There is no baseline to say what one sample costs.
    """
    base = suite.arm("baseline")
    whole = tokens_per_case(bench, store, arm.tokens_of, model)
    one = tokens_per_case(bench, store, base.label, model) if base else None
    if not whole or not one:
        raise UsageError(
            f"`{arm.label}`: the tokens of `{arm.tokens_of}` and of a baseline are needed to choose its samples",
            'Add a method with `role = "baseline"` and a single answer (zero-shot).',
        )
    count = max(1, min(MOST_SAMPLES, round(whole / one)))
    say(f"{arm.label}: {count} samples ({count * one:,.0f} tokens a case) against {arm.tokens_of} ({whole:,.0f})")
    return count
