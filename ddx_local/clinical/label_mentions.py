"""Does a model's text affirm a diagnosis? Looser than `labels.same`: more words around it don't matter, negation does.

It knows headings, sentences, negation and inflamed organs. It is for scoring free text against a pathology ("acute
appendicitis" affirms "appendicitis"); two labels are compared by `labels.same`.

Source of the negation rules: NegEx (Chapman et al. 2001), a cue before or after with a scope that ends at a clause.
"""

import re
from collections.abc import Iterator
from typing import Final

from ddx_local.clinical.label_forms import forms
from ddx_local.clinical.label_lexicon import GENERIC, canonical, slip
from ddx_local.clinical.label_words import plain

_DIAGNOSIS: Final = re.compile(r"(?<!differential )\b(final )?diagnos[ie]s\s*(?:\*+\s*)?(?::|\bis\b)")
_NEXT_HEADING: Final = re.compile(
    r"(?:^|[\n.;])[\s#*]*(?:best |recommended |suggested |initial )?(?:treatment|management|plan|therapy|rationale|"
    r"reasoning|explanation|justification|differentials?|recommendations?|next steps?)\b[^\n:.]{0,40}:"
)
_SENTENCE_END: Final = re.compile(r"(?<!\b[ei])[.](?=\s|$)|[;!?\n]")
_TURN: Final = re.compile(r"\b(?:but|however|although|though|whereas|except|yet|instead(?! of))\b")
_NO_NEGATION: Final = re.compile(
    r"\bnot only\b|\b(?:no|without(?: a)?) doubt\b|\bnot (?:be )?(?:ruled out|excluded)\b|\bno (?:change|longer)\b|"
    r"\b(?:cannot|can't|can not|could not) (?:be )?(?:ruled? out|excluded?)\b|\bnot (?:complicated|due to|caused by)\b"
)
_BEFORE: Final = re.compile(
    r"\b(?:no|not|without|denies|denied|negative for|absence of|absent|lack of|lacks|free of|rules? out|ruled out|"
    r"ruling out|excludes?|excluded|excluding|exclusion of|unlikely|less likely|rather than|instead of|neither|nor|"
    r"never|isn't|wasn't|doesn't)\b"
)
# Only after something: a bare `ruled out` there is active (CT ruled out ...), unless the clause ends with it.
_DENIED: Final = (
    r"(?:very |highly |less |much less )?(?:unlikely(?! to be)|less likely|ruled out|excluded|absent|negative)"
)
_NOT_SO: Final = (
    "not (?:present|likely|seen|found|supported|identified|suspected|consistent|evident|confirmed)|"
    "not the (?:cause|diagnosis)"
)
_AFTER: Final = re.compile(
    rf"(?<=\w)[\s:-]+(?:(?:is|was|are|were|be|been|seems?|appears?)\s+(?:{_DENIED}|{_NOT_SO})\b|"
    rf"(?:{_DENIED}|not likely|not present)\s*$)|(?<=\w)\s*:\s*(?:no|absent|negative|excluded|ruled out)\b"
)
# An organ and the pathology of its inflammation. The hollow ones also rupture, and their abscess or gangrene is of it.
_INFLAMED: Final = {
    "appendicitis": "append(?:ix|ic)", "cholecystitis": "gall ?bladder", "diverticulitis": "diverticul",
    "pancreatitis": "pancrea", "cholangitis": "bile ducts?|biliary tree", "colitis": "colon|large (?:bowel|intestine)",
    "gastritis": "stomach|gastric", "hepatitis": "liver|hepatic", "nephritis": "kidney|renal",
    "cystitis": "(?:urinary )?bladder", "meningitis": "mening", "encephalitis": "brain",
    "myocarditis": "heart muscle|myocardi", "pericarditis": "pericardi", "endocarditis": "endocardi",
    "peritonitis": "peritone", "tonsillitis": "tonsil", "sinusitis": "sinus", "prostatitis": "prostat",
    "epididymitis": "epididym", "salpingitis": "fallopian", "thyroiditis": "thyroid", "esophagitis": "o?esophag",
    "conjunctivitis": "conjunctiv", "bronchitis": "bronch",
}  # fmt: skip
_DESTROYED: Final = frozenset({"appendicitis", "cholecystitis", "diverticulitis", "pancreatitis"})
_INFLAMMATION: Final = "inflam"
_DESTRUCTION: Final = "inflam|infect|abscess|ruptur|perforat|gangren|necro|phlegmon|empyema"


def mentions(text: str, label: str) -> bool:
    """Whether a text affirms a diagnosis.

    Only what stands under a heading such as `Final Diagnosis:` counts, where there is one, up to the next heading.
    Words around the name don't matter (acute appendicitis affirms appendicitis); negation (no evidence of ..., ... was ruled
    out), an opposite prefix and a missing word of the name do. A misspelling counts, and so does an inflamed organ for
    the name of its inflammation.

    Args:
        text: A model's answer: a label, a sentence or a whole reply.
        label: The diagnosis.
    """
    wanted = [name - GENERIC or name for name in forms(label).names if name]
    return any(
        any(_names(part, name) or _organ(part, name) for name in wanted)
        for sentence in _SENTENCE_END.split(_answer(text))
        for part in _affirmed(sentence)
    )


def _answer(text: str) -> str:
    """The part of a reply that gives the diagnosis; the whole where no heading tells."""
    low = plain(text)
    heads = list(_DIAGNOSIS.finditer(low))
    final = [head for head in heads if head[1]] or heads
    if final:
        low = low[final[-1].end() :]
    following = _NEXT_HEADING.search(low)
    return low[: following.start()] if following and following.start() else low


def _affirmed(sentence: str) -> Iterator[str]:
    """The parts of a sentence that no negation covers."""
    for clause in _TURN.split(_NO_NEGATION.sub(" ", sentence)):
        rest = ",".join(segment for segment in clause.split(",") if not _AFTER.search(segment))
        while cue := _BEFORE.search(rest):
            yield rest[: cue.start()]
            covered = rest[cue.end() :]
            # A comma ends the scope, unless it only parts a list: no cholecystitis, appendicitis or pancreatitis.
            comma = covered.find(",")
            listed = comma < 0 or re.search(r"\b(?:or|nor|and)\b", covered[comma:])
            rest = "" if listed else covered[comma + 1 :]
        yield rest


def _names(part: str, name: frozenset[str]) -> bool:
    """Whether all words of the name stand together, in any order, at most one other word among them."""
    tokens = [token for token in canonical(part) if token not in GENERIC or token in name]
    for size in (len(name), len(name) + 1):
        for at in range(len(tokens) - len(name) + 1):
            window = tokens[at : at + size]
            if all(word in window or any(slip(word, token) for token in window) for word in name):
                return True
    return False


def _organ(part: str, name: frozenset[str]) -> bool:
    """Whether the part says in other words that the organ of the name is inflamed (an inflamed gallbladder)."""
    inflamed = [word for word in name if word in _INFLAMED]
    if len(inflamed) != 1 or not name - {inflamed[0]} <= frozenset(canonical(part)):
        return False
    organ = rf"\b(?:{_INFLAMED[inflamed[0]]})"
    sign = rf"\b(?:{_DESTRUCTION if inflamed[0] in _DESTROYED else _INFLAMMATION})"
    return any(re.search(organ, segment) and re.search(sign, segment) for segment in part.split(","))
