"""Labelled cases and where they come from: the table of data sets. Each takes the user's own local file; nothing is fetched.

A `Case` cannot hold its answer, so that a method cannot be given one: gold lives in `LabelledCase`, which only evaluation
knows. Layouts of files are in `datasets_*.py`; how clean a set is, in `datasets_hygiene`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ddx_local.case import Case
from ddx_local.errors import InputError, UsageError, nearest


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A case with its answer.

    Args:
        case: What a method may read.
        gold: Acceptable diagnoses as the data set writes them, the primary one first where there is an order.
        evidence: Gold diagnosis -> quotes, as the data set gives them (they need not be verbatim).
        groups: What results are shown apart by: specialty, medqa (yes or no), difficulty ...
        weights: Gold diagnosis -> probability, where the data set has them (DDXPlus).
        severe: All diseases of the severe classes (DDXPlus).
        meta: What hygiene needs and no metric reads.
    """

    case: Case
    gold: tuple[str, ...]
    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    severe: frozenset[str] = frozenset()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.case.id


@dataclass(frozen=True, slots=True)
class DataSet:
    """Labelled cases from one place. `ranked` says whether the first gold is the primary one."""

    name: str
    path: str
    sha256: str
    cases: tuple[LabelledCase, ...]
    ranked: bool
    licence: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What a layout's reader gives: cases, what it left out or repaired, and the files that it read."""

    cases: list[LabelledCase]
    notes: list[str]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of data set: how its file is read, and what a user should know of it."""

    name: str
    what: str
    licence: str
    ranked: bool
    read: Callable[[Path, Mapping[str, Any]], Read]


def sources() -> Mapping[str, Source]:
    """All kinds by name; layouts are imported when they are asked for."""
    from ddx_local.evaluation import (
        datasets_exam,
        datasets_hospital,
        datasets_mapped,
        datasets_open_xddx,
        datasets_own,
        datasets_rare,
        datasets_synthetic,
    )

    own = "Apache-2.0, synthetic, validated by no clinician"
    credentialed = "PhysioNet credentialed: keep it on this machine"
    rows = (
        Source("vignettes", "the project's own short cases (bench/cases)", own, True, datasets_own.read),
        Source("open-xddx", "Open-XDDx: the publisher's xlsx, or jsonl", "none stated", False, datasets_open_xddx.read),
        Source("mac-rare", "MAC's 302 rare-disease cases, JSON or jsonl", "MIT", True, datasets_rare.read_mac),
        Source(
            "rarebench", "RareBench: jsonl of HPO and disease codes", "Apache-2.0", True, datasets_rare.read_rarebench
        ),
        Source(
            "phenopackets",
            "GA4GH phenopackets: a folder, JSON or jsonl",
            "BSD-3",
            True,
            datasets_rare.read_phenopackets,
        ),
        Source(
            "medcasereasoning", "MedCaseReasoning: JSON, jsonl or csv", "MIT", True, datasets_exam.read_medcasereasoning
        ),
        Source("medqa", "MedQA-USMLE: jsonl; questions for a diagnosis", "MIT", True, datasets_exam.read_medqa),
        Source("craft-md", "CRAFT-MD: csv or tsv of vignettes", "MIT", True, datasets_exam.read_craft_md),
        Source(
            "ddxplus", "DDXPlus: patients csv beside its two json files", "CC-BY-4.0", True, datasets_synthetic.read
        ),
        Source(
            "mimic-cdm", "MIMIC-IV-Ext CDM: a folder of csv, or JSON", credentialed, True, datasets_hospital.read_cdm
        ),
        Source(
            "mimic-cardiac", "MIMIC-IV-Ext Cardiac Disease: csv", credentialed, True, datasets_hospital.read_cardiac
        ),
        Source("er-reason", "ER-Reason: csv", credentialed, True, datasets_hospital.read_er_reason),
        Source("jsonl", "any JSON lines, with a column map", "yours", True, datasets_mapped.read),
        Source("csv", "any csv or tsv, with a column map", "yours", True, datasets_mapped.read),
    )
    return {row.name: row for row in rows}


def load(
    name: str,
    path: Path | None,
    *,
    sha256: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataSet:
    """Read a data set.

    Args:
        name: Of `sources()`.
        path: The user's file or folder; only `vignettes` has its own.
        sha256: What the suite pins; None pins nothing, and a note says what was found.
        options: Of the layout (a column map, which text of two).

    Raises:
        UsageError: An unknown name (the nearest are shown), or no path.
        InputError: The file is missing, not of the layout, changed (sha256), or has duplicated ids, or no case with a gold.
    """
    known = sources()
    if name not in known:
        raise UsageError(f"no data set `{name}`: {nearest(name, list(known))}", "See `ddx-local bench data list`.")
    source = known[name]
    if path is None:
        if name != "vignettes":
            raise UsageError(f"data set `{name}` needs a path", "Give the file that you have: nothing is downloaded.")
        path = Path()
    elif not path.exists():
        raise InputError(f"data set `{name}`: {path}: no such file", "Correct the path; nothing is downloaded.")
    found = source.read(path, options or {})
    digest = digest_of(found.files)
    if sha256 and sha256 != digest:
        raise InputError(
            f"data set `{name}`: {path}: the sha256 is {digest[:16]}..., but the suite pins {sha256[:16]}...",
            "The file is not the one that the suite was written for: get that one, or change `sha256` in the suite.",
        )
    notes = [] if sha256 else [f"sha256 {digest} is not pinned by the suite"]
    cases, left = _with_gold(found.cases, name)
    return DataSet(
        name, str(path) if name != "vignettes" else "", digest, cases, source.ranked, source.licence,
        (*notes, *found.notes, *left),
    )  # fmt: skip


def _with_gold(cases: Sequence[LabelledCase], name: str) -> tuple[tuple[LabelledCase, ...], list[str]]:
    """The cases that have a gold; duplicated ids are an error, a missing gold is counted."""
    twice = [case_id for case_id, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise InputError(
            f"data set `{name}`: {len(twice)} ids stand twice, the first is `{twice[0]}`",
            "Give each case an id of its own, or map another column to `id`.",
        )
    kept = tuple(replace(case, gold=gold) for case in cases if (gold := tuple(g for g in case.gold if g.strip())))
    if not kept:
        raise InputError(f"data set `{name}`: no case has a gold diagnosis", "Check the column map of `gold`.")
    empty = len(cases) - len(kept)
    return kept, [f"{empty} of {len(cases)} cases have no gold and are left out"] if empty else []


def digest_of(files: Sequence[Path]) -> str:
    """sha256 of one file, or over the names and digests of several, in order of their names."""
    digests = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]
    if len(digests) == 1:
        return digests[0][1]
    return hashlib.sha256(repr(sorted(digests)).encode()).hexdigest()


def choose(
    data: DataSet, limit: int | None, ids: Sequence[str] = (), where: Mapping[str, str] | None = None
) -> DataSet:
    """Some of the cases: by id, by group (`{"medqa": "no"}`), the first `limit` of what is left.

    Raises:
        UsageError: An id or group that the set does not have.
    """
    cases = list(data.cases)
    if ids:
        by_id = {case.id: case for case in cases}
        for case_id in ids:
            if case_id not in by_id:
                raise UsageError(f"data set `{data.name}` has no case `{case_id}`: {nearest(case_id, list(by_id))}")
        cases = [by_id[case_id] for case_id in ids]
    for name, value in (where or {}).items():
        if not any(name in case.groups for case in data.cases):
            groups = sorted({group for case in data.cases for group in case.groups})
            raise UsageError(f"data set `{data.name}` has no group `{name}`: {nearest(name, groups)}")
        cases = [case for case in cases if case.groups.get(name) == value]
    if not cases:
        raise UsageError(f"data set `{data.name}`: no case is left by the suite's choice", "See `bench data check`.")
    return replace(data, cases=tuple(cases[:limit]))
