"""ddx-local: multi-agent differential diagnosis with a small open language model, on one machine, offline."""

__version__ = "0.1.0"

DISCLAIMER = (
    "Decision support for professionals and research, not a medical device: every statement is a model's suggestion "
    "and has to be checked by a clinician."
)
