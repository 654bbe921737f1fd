"""A matcher's own error, measured on pairs that people judged; each report prints it beside its figures.

The shipped figures of the default matcher are in bench/matcher_error.toml, with the digest of the label code that they were
measured with; `bench data matcher` measures any matcher on files that the user has.
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ddx_local
from ddx_local.data import data_dir
from ddx_local.evaluation.datasets_files import need, rows
from ddx_local.evaluation.match import Matcher
from ddx_local.evaluation.statistics import cohen, wilson


@dataclass(frozen=True, slots=True)
class Error:
    """Against people's labels: `pairs` judged, and `false_matches` among `different` pairs of different diagnoses."""

    matcher: str
    pairs: int
    precision: float | None
    recall: float | None
    kappa: float | None
    different: int
    false_matches: int

    def line(self) -> str:
        """For a report."""
        parts = []
        if self.pairs:
            parts.append(
                f"precision {_shown(self.precision)}, recall {_shown(self.recall)}, kappa {_shown(self.kappa)} on "
                f"{self.pairs:,} pairs judged by a clinician (a GPT-4 grader: kappa 0.785)"
            )
        if self.different:
            high = wilson(self.false_matches, self.different).high
            parts.append(
                f"{self.false_matches} false matches in {self.different:,} pairs of different diagnoses (at most {high:.2%})"
            )
        return f"{self.matcher}: {'; '.join(parts) or 'its error was never measured'}"


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


async def measure(matcher: Matcher, same: Path | None, different: Path | None) -> Error:
    """Measure a matcher on a file of judged pairs (pred, gold, label) and one of different pairs (a, b)."""
    judged = [
        (str(row["pred"]), str(row["gold"]), bool(row["label"])) for row in _rows(same, ("pred", "gold", "label"))
    ]
    answers = [await _same(matcher, pred, gold) for pred, gold, _ in judged]
    labels = [label for _, _, label in judged]
    hits = sum(a and b for a, b in zip(answers, labels, strict=True))
    others = [(str(row["a"]), str(row["b"])) for row in _rows(different, ("a", "b"))]
    return Error(
        matcher=matcher.label,
        pairs=len(judged),
        precision=hits / sum(answers) if any(answers) else None,
        recall=hits / sum(labels) if any(labels) else None,
        kappa=cohen(answers, labels).kappa if judged else None,
        different=len(others),
        false_matches=sum([await _same(matcher, a, b) for a, b in others]),
    )


async def _same(matcher: Matcher, a: str, b: str) -> bool:
    return bool((await matcher.match([a], [b])).pairs)


def _rows(path: Path | None, columns: Sequence[str]) -> list[dict[str, Any]]:
    found = rows(path) if path is not None else []
    for row in found:
        need(path or Path(), row, columns)
    return found


def label_code() -> str:
    """Digest of the code and the synonyms that decide what is the same diagnosis."""
    folder = Path(ddx_local.__file__).parent / "clinical"
    whole = hashlib.sha256()
    for path in sorted([*folder.glob("label*.py"), folder / "synonyms.txt"]):
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def shipped() -> tuple[Error, Mapping[str, Any]]:
    """The default matcher's measured error, and what is said beside it."""
    data = tomllib.loads((data_dir("bench") / "matcher_error.toml").read_text("utf-8"))
    error = Error(**{name: data[name] for name in asdict(Error("", 0, None, None, None, 0, 0))})
    return error, {
        "measured_with": data["label_code"],
        "current": data["label_code"] == label_code(),
        "source": data["source"],
    }
