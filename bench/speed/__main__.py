"""`scripts/speed [NAME...] [--json] [--full]`: run benchmarks, print one figure a line, or one JSON object.

Without names: the short ones; `--full` adds the long ones (an hour on two cores).
"""

import argparse
import importlib
import json
import sys
from collections.abc import Mapping

from ddx_local import offline

SHORT = (
    "help_seconds",
    "first_round_seconds",
    "scot_one_case_ratio",
    "driver_overhead",
    "prefix_ratio",
    "grammar_cost",
)

BENCHMARKS: Mapping[str, str] = {
    "help_seconds": "bench.speed.start:help_seconds",
    "first_round_seconds": "bench.speed.start:first_round_seconds",
    "scot_one_case_ratio": "bench.speed.batching:one_case",
    "driver_overhead": "bench.speed.overhead:driver_overhead",
    "prefix_ratio": "bench.speed.overhead:prefix_ratio",
    "grammar_cost": "bench.speed.overhead:grammar_cost",
    "scot_eight_cases_ratio": "bench.speed.batching:eight_cases",
    "loglikelihood_ratio": "bench.speed.scoring:ratio",
    "loglikelihood_max_error_nats": "bench.speed.scoring:max_error",
    "scot_cases": "bench.speed.cases:scot_cases",
    "methods": "bench.speed.methods:methods",
    "edit_token_ratio": "bench.speed.counterfactual:edit_token_ratio",
    "counterfactual_second_run_scoring_calls": "bench.speed.counterfactual:second_run",
    "sign_test": "bench.speed.sign:sign_test",
}
"""Figure, or group of figures, to the function that takes it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/speed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object: name -> number")
    parser.add_argument("--full", action="store_true", help="the long ones too")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in BENCHMARKS:
            parser.error(f"no figure {name!r}; known: {', '.join(BENCHMARKS)}")
    offline.go_offline()
    names = arguments.names or (list(BENCHMARKS) if arguments.full else SHORT)
    figures: dict[str, float] = {}
    for name in names:
        module, _, function = BENCHMARKS[name].partition(":")
        print(f"taking {name}", file=sys.stderr)
        figures |= getattr(importlib.import_module(module), function)()
        if not arguments.json:
            for figure, value in figures.items():
                print(f"{figure} {value:.4g}", flush=True)
            figures = {}
    if arguments.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
