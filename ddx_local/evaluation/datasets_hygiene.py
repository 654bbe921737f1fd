"""How clean a data set is: counts, spans that are not the case's, duplicates, leaks, mojibake, overlap with MedQA."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddx_local.evaluation.datasets import DataSet, LabelledCase
from ddx_local.evaluation.datasets_files import need, rows

NEAR_DUPLICATE = 90.0
"""rapidfuzz ratio from which two cases are near-duplicates."""

OVERLAP = 90.0
"""rapidfuzz partial_ratio from which a case's stem is a MedQA question."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Hygiene:
    """What was found; ids where it matters which."""

    cases: int
    golds: int
    golds_fewest: int
    golds_most: int
    spans: int
    spans_not_exact: int
    spans_not_verbatim: int
    count_mismatches: tuple[str, ...]
    near_duplicates: tuple[tuple[str, str, float], ...]
    leaks: tuple[str, ...]
    mojibake: tuple[str, ...]
    medqa: tuple[str, ...] | None
    empty_texts: tuple[str, ...]
    groups: dict[str, dict[str, int]]
    notes: tuple[str, ...]


def check(data: DataSet) -> Hygiene:
    """Look at all cases; MedQA's share is known where the cases carry the flag (`flagged`)."""
    spans = [(case, quote) for case in data.cases for quotes in case.evidence.values() for quote in quotes]
    flagged = [case for case in data.cases if "medqa" in case.groups]
    counts = [len(case.gold) for case in data.cases]
    folded = {case.id: fold(case.case.text) for case in data.cases}
    names = sorted({name for case in data.cases for name in case.groups})
    return Hygiene(
        cases=len(data.cases),
        golds=sum(counts),
        golds_fewest=min(counts),
        golds_most=max(counts),
        spans=len(spans),
        spans_not_exact=sum(quote not in case.case.text for case, quote in spans),
        spans_not_verbatim=sum(fold(quote) not in folded[case.id] for case, quote in spans),
        count_mismatches=tuple(case.id for case in data.cases if _miscounted(case)),
        near_duplicates=near_duplicates(data.cases),
        leaks=tuple(case.id for case in data.cases if _leaks(case)),
        mojibake=tuple(case.id for case in data.cases if case.meta.get("mojibake")),
        medqa=tuple(case.id for case in flagged if case.groups["medqa"] == "yes") if flagged else None,
        empty_texts=tuple(case.id for case in data.cases if not case.case.text.strip()),
        groups={name: _tally(data.cases, name) for name in names},
        notes=data.notes,
    )


def fold(text: str) -> str:
    """Words in lower case without what stands between them: case, spaces and punctuation do not count."""
    return "".join(_WORD.findall(text.casefold()))


def _miscounted(case: LabelledCase) -> bool:
    """Whether the file's own counts of diagnoses and rationales differ from what it holds."""
    diseases, rationales = case.meta.get("disease_num"), case.meta.get("rationale_num")
    spans = sum(map(len, case.evidence.values()))
    return (diseases is not None and diseases != len(case.gold)) or (rationales is not None and rationales != spans)


def _leaks(case: LabelledCase) -> bool:
    text = case.case.text.casefold()
    return any(gold.casefold() in text for gold in case.gold)


def near_duplicates(cases: Sequence[LabelledCase]) -> tuple[tuple[str, str, float], ...]:
    """Pairs of cases whose texts are nearly the same."""
    import numpy as np
    from rapidfuzz import fuzz, process

    texts = [case.case.text for case in cases]
    table = process.cdist(texts, texts, scorer=fuzz.ratio, score_cutoff=NEAR_DUPLICATE, workers=1)
    return tuple(
        (cases[i].id, cases[j].id, round(float(table[i, j]), 1)) for i, j in np.argwhere(table > 0).tolist() if i < j
    )


def _tally(cases: Sequence[LabelledCase], group: str) -> dict[str, int]:
    values = [case.groups.get(group, "") for case in cases]
    return {value: values.count(value) for value in sorted(set(values))}


def flagged(data: DataSet, medqa: Path) -> DataSet:
    """The same set with the group `medqa` set by the text of a local MedQA file (a lower bound: of that file's questions)."""
    from rapidfuzz import fuzz, process

    questions = []
    for row in rows(medqa):
        need(medqa, row, ("question",))
        questions.append(" ".join(str(row["question"]).split()))
    stems = [" ".join(case.case.text.split()) for case in data.cases]
    best = [
        process.extractOne(stem, questions, scorer=fuzz.partial_ratio, score_cutoff=OVERLAP) is not None
        for stem in stems
    ]
    cases = tuple(
        replace(case, groups={**case.groups, "medqa": "yes" if hit or case.groups.get("medqa") == "yes" else "no"})
        for case, hit in zip(data.cases, best, strict=True)
    )
    return replace(data, cases=cases)


def lines(data: DataSet, found: Hygiene) -> list[str]:
    """The report, for people."""
    order = "the first is the primary one" if data.ranked else "no order"
    out = [
        f"{data.name}: {data.path or 'of the project'}",
        f"  sha256                      {data.sha256}",
        f"  licence                     {data.licence}",
        f"  cases                       {found.cases:,}",
        f"  gold diagnoses              {found.golds:,} ({found.golds_fewest} to {found.golds_most} a case, {order})",
    ]
    if found.spans:
        out.append(
            f"  evidence spans              {found.spans:,}; not verbatim {found.spans_not_verbatim:,} "
            f"(beyond case, spaces, punctuation; {found.spans_not_exact:,} not exact)"
        )
    several: list[tuple[str, Sequence[str]]] = [
        ("count mismatches", found.count_mismatches),
        ("gold stands in the text", found.leaks),
        ("mojibake (repaired)", found.mojibake),
        ("empty texts", found.empty_texts),
    ]
    for name, ids in several:
        out.append(
            f"  {name:27} {len(ids)}{': ' + ', '.join(ids[:5]) + (' ...' if len(ids) > 5 else '') if ids else ''}"
        )
    pairs = ", ".join(f"{a} / {b} ({ratio})" for a, b, ratio in found.near_duplicates[:5])
    out.append(f"  near-duplicate pairs        {len(found.near_duplicates)}{': ' + pairs if pairs else ''}")
    share = (
        "unknown (give --medqa FILE)" if found.medqa is None else f"{len(found.medqa)} of {found.cases} (a lower bound)"
    )
    out.append(f"  MedQA-derived               {share}")
    for name, tally in found.groups.items():
        shown = ", ".join(f"{value or '(none)'} {count}" for value, count in tally.items())
        out.append(f"  by {name:24} {shown[:300]}")
    return [*out, *(f"  note: {note}" for note in found.notes)]
