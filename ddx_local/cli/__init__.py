"""The command line: one file per verb. Nothing imports this package."""
