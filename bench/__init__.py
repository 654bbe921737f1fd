"""Benchmarks and the project's own cases. Not part of the installed package."""
