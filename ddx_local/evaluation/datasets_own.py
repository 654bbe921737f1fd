"""The project's own vignettes: bench/cases with bench/answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.data import data_dir
from ddx_local.evaluation.datasets import LabelledCase, Read


def read(_: Path, __: Mapping[str, Any]) -> Read:
    """All vignettes, by name."""
    folder = data_dir("bench")
    found, files = [], []
    for path in sorted((folder / "cases").glob("*.txt")):
        answers = folder / "answers" / f"{path.stem}.json"
        answer = json.loads(answers.read_text("utf-8"))
        found.append(
            LabelledCase(
                Case(path.stem, path.read_text("utf-8")),
                tuple(answer["differential"]),
                {name: tuple(quotes) for name, quotes in answer["evidence"].items()},
                {"difficulty": answer["difficulty"], "specialty": answer["specialty"][0]},
            )
        )
        files += [path, answers]
    return Read(found, [], tuple(files))
