"""Benchmarks: labelled cases, matching, metrics, statistics, suites, scores, reports. Nothing but the command line imports it."""
