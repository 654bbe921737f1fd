"""What intake takes a case for: the case, the form it came in, and what of the input did not become case text, and why.

It knows keys and columns that hold an answer or say who somebody is. It doesn't know any form of file.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ddx_local.case import Case
from ddx_local.clinical.sections import Section

MOST_SHOWN = 60
"""Characters of a key or column that a remark or an error repeats."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read an input.

    Args:
        columns: Part of a case (`text`, `id`, or the name of a section) -> the key or column that holds it.
        with_diagnoses: Whether diagnoses of a FHIR bundle become case text.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    with_diagnoses: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """Something of the input that a reader has to know about; it never repeats clinical text.

    Args:
        kind: `left out` on purpose, `not understood`, `guessed`, or `warning` about what did become case text.
        what: A key, column, heading or kind of resource.
        why: Half a sentence.
        count: How often.
    """

    kind: Literal["left out", "not understood", "guessed", "warning"]
    what: str
    why: str
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind}: {self.what}{times}: {self.why}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A case as it was taken in.

    Args:
        case: The case; its text is what methods read.
        form: What the input is, such as `text` or `FHIR R4 bundle`.
        remarks: What did not become case text, and what was guessed.
        sections: The sections that the input itself gives, as spans of the text; None where they have to be found.
        source: The file that it stands in, or `standard input`; empty where it comes from no file.
    """

    case: Case
    form: str
    remarks: tuple[Remark, ...] = ()
    sections: tuple[Section, ...] | None = None
    source: str = ""


def counted(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Equal remarks as one with their number, sorted."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for remark in remarks:
        counts[remark.kind, remark.what, remark.why] += remark.count
    return tuple(sorted(Remark(kind, what, why, count) for (kind, what, why), count in counts.items()))  # type: ignore[arg-type]


def key_words(key: str) -> tuple[str, ...]:
    """The words of a key or column name: `finalDiagnosis`, `final_diagnosis` and `Final diagnosis` have the same."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key)
    return tuple(re.findall(r"[^\W_]+", apart.casefold()))


def holds_answer(key: str) -> bool:
    """Whether a key or column is named like an answer: `diagnosis`, `gold`, `label`, `correct_option`, `ICD-10` ..."""
    words = key_words(key)
    return bool(_ANSWER & set(words)) or (bool(words) and words[-1].rstrip("0123456789") in ("icd", "dx", "ddx"))


def says_who(key: str) -> bool:
    """Whether a key or column is named like what says who somebody is: a name, an address, a number, a birth date."""
    words = key_words(key)
    return bool(_IDENTITY & set(words)) or " ".join(words) in _IDENTITY_PHRASES


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8 and read by a model: no lone surrogates, no NUL."""
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)


def shown(key: str) -> str:
    """A key or column as a remark or an error may repeat it."""
    line = "".join(letter if letter.isprintable() else "_" for letter in key)
    return line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"


ANSWER = "it is named like the answer, which a case cannot hold"
IDENTITY = "it is named like what says who the patient is"

_ANSWER = frozenset(
    "diagnosis diagnoses diagnosed dx ddx answer answers label labels gold golds truth target targets solution correct "
    "disease diseases disorder icd icd9 icd10 icd11 differential differentials prediction predictions predicted response "
    "options choices assessment impression plan treatment outcome outcomes rationale explanation "
    "التشخيص تشخيص الجواب الإجابة".split()
)
_IDENTITY = frozenset(
    "surname firstname lastname fullname forename mrn ssn dob birthdate birthday address street zip postcode phone telephone "
    "mobile fax email mail passport insurance identifier telecom nhs الاسم اسم العنوان الهاتف".split()
)
_IDENTITY_PHRASES = frozenset(
    (
        "name", "patient name", "first name", "last name", "family name", "given name", "full name", "birth date",
        "date of birth", "national id", "patient id", "patient number", "medical record number", "social security number",
        "postal code",
    )
)  # fmt: skip
