"""How many diagnoses of a file get an ICD-10-CM code whose name fits: `python -m bench.icd10 FILE [--sample N]`.

FILE is JSON Lines with `gold` or `diagnoses` lists, or a text file with one diagnosis a line. Distinct names count once.
What gets no code is listed; with --sample also N coded ones, drawn with a fixed seed, to be looked at by a person.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ddx_local.clinical import icd10


def diagnoses(path: Path) -> tuple[str, ...]:
    """The distinct names of a file, in order; a line that is no JSON object is a name."""
    found: dict[str, None] = {}
    for line in filter(None, map(str.strip, path.read_text(encoding="utf-8").splitlines())):
        data = json.loads(line) if line.startswith("{") else {"gold": [line]}
        names = data.get("gold", data.get("diagnoses", ()))
        found.update(dict.fromkeys([names] if isinstance(names, str) else names))
    return tuple(found)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.icd10", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="JSON Lines with `gold` lists, or one diagnosis a line")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="show N coded diagnoses too")
    asked = parser.parse_args(arguments)
    names = diagnoses(asked.file)
    began = time.perf_counter()
    icd10.coded("")  # reads the classification
    ready = time.perf_counter()
    codes = {name: icd10.coded(name) for name in names}
    seconds = time.perf_counter() - ready
    failed = [name for name, code in codes.items() if code is None]
    coded = {name: code for name, code in codes.items() if code is not None}
    print(f"{len(coded)} of {len(names)} distinct diagnoses have a code whose name fits: {len(coded) / len(names):.3f}")
    print(f"classification read in {ready - began:.1f} s, {seconds / len(names) * 1000:.1f} ms a diagnosis")
    for name in random.Random(0).sample(sorted(coded), min(asked.sample, len(coded))):
        print(f"coded: {name} | {coded[name].code} {coded[name].name}")
    for name in sorted(failed, key=str.casefold):
        print(f"no code: {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
