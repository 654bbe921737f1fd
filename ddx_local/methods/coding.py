"""The ICD-10-CM codes of a differential, of whichever method: one consultation after the method has answered.

A code that leaves here is one of the classification whose name fits the diagnosis; a diagnosis without one has none. What
a method had coded otherwise is corrected from the name, and noted.
"""

from dataclasses import replace

from ddx_local.case import Differential, Icd10
from ddx_local.flow import Flow, codes, note

MOST = 8
"""Codes that are looked at for one diagnosis, those that fit first."""


def with_codes(flow: Flow[Differential]) -> Flow[Differential]:
    """A method's flow, and then the codes of its answer."""
    answer = yield from flow
    found = yield from codes([entry.diagnosis for entry in answer.entries], MOST, fitting_only=True)
    entries = []
    for entry, close in zip(answer.entries, found, strict=True):
        fitting = [Icd10(item.code, item.name) for item in close if item.fits]
        code = entry.icd10 if entry.icd10 in fitting else next(iter(fitting), None)
        if entry.icd10 is not None and code != entry.icd10:
            yield from note("icd10", f"{entry.diagnosis}: {corrected(entry.icd10.code, code)}")
        entries.append(replace(entry, icd10=code))
    return replace(answer, entries=tuple(entries))


def corrected(given: str, now: Icd10 | None) -> str:
    """What became of a code that does not exist or does not fit its name, in words."""
    what = f"the code {given} does not exist or does not fit the name"
    return f"{what}: {now.code} in its place" if now is not None else f"{what}, and no other does: not coded"
