"""From the text of a diagnosis to comparable words: case, accents, spelling, plurals, numerals. Letters only.

It knows how one word can be written in several ways. It knows no medicine: which different words name the same thing is
in `label_lexicon`, which ones must not be confused in `label_qualifiers`.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

_GREEK: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "σ": "sigma", "τ": "tau", "ω": "omega",
}  # fmt: skip
_LETTERS: Final = str.maketrans({"ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ı": "i"})
_APOSTROPHES: Final = str.maketrans(dict.fromkeys("’‘ʼ`´′＇", "'"))
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_POSSESSIVE: Final = re.compile(r"(?<=\w)'s\b")
_DUE_TO: Final = re.compile(r"\bsecondary (?:to|from)\b|\bdue to\b|\bcaused by\b")
# Abbreviations that are English words as well: they only count where they stand out as capitals.
_SHOUTED: Final = re.compile(
    r"\b(ALL|HIT|LAST|TEN|MEN|CREST|CARP|LAD|PAD|CUP|CAP|MAC|PAN|PAP|COP|DISH|NEC|MAS|DRESS)\b"
)
_ROMAN: Final = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "x": "10",
    "xi": "11", "xii": "12", "xiii": "13",
}  # fmt: skip
_SUBTYPE: Final = re.compile(r"(ii|iii|iv|vi|vii)([abc])")
_ORDINAL: Final = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
# A prefix that is written apart, with a hyphen or joined: the joined form is the one to compare.
_PREFIXES: Final = frozenset(
    "non pre post anti pseudo hyper hypo sub intra extra peri para endo epi supra infra inter micro macro poly mono "
    "oligo multi semi hemi bi tri neuro cardio gastro broncho thrombo myo osteo auto photo immuno trans ultra "
    "uni".split()
)
# Words without meaning for identity, and hedges of a model's answer. `a` only goes at the very beginning: hepatitis A.
_STOP: Final = frozenset(
    "of the an in to on at by for from with and as is are was be this that nos unspecified likely probable probably "
    "possible possibly suspected suspect presumed presumptive".split()
)
_UNCHANGED: Final = frozenset(
    "ascites always atlas ataxies bends biceps caries diabetes facies forceps gas has herpes lens measles menses mumps "
    "pus rabies rickets scabies series species striatus tabes triceps yaws".split()
)
_PLURAL: Final = {
    "appendices": "appendix", "axes": "axis", "bacteria": "bacterium", "bronchi": "bronchus", "bullae": "bulla",
    "calculi": "calculus", "children": "child", "cicatrices": "cicatrix", "comedones": "comedo", "crises": "crisis",
    "diverticula": "diverticulum", "emboli": "embolus", "feet": "foot", "fistulae": "fistula", "foramina": "foramen",
    "fungi": "fungus", "ganglia": "ganglion", "indices": "index", "larvae": "larva", "lice": "louse", "men": "man",
    "metastases": "metastasis", "milia": "milium", "nevi": "nevus", "naevi": "nevus", "papillae": "papilla",
    "petechiae": "petechia", "phenomena": "phenomenon", "septa": "septum", "striae": "stria", "teeth": "tooth",
    "telangiectases": "telangiectasia", "telangiectasis": "telangiectasia", "testes": "testis", "thrombi": "thrombus",
    "uteri": "uterus", "varices": "varix", "verrucae": "verruca", "vertebrae": "vertebra", "women": "woman",
}  # fmt: skip
_SPELLING: Final = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"ae|oe", "e"),
        (r"our(?=$|al$|ed$|ous$)", "or"),
        (r"^leuc(?!i)", "leuk"),
        (r"sulph", "sulf"),
        (r"is(?=ation$|ed$|ing$)", "iz"),
        (r"ys(?=ed$|ing$)", "yz"),
        (r"fibre$", "fiber"),
        (r"centre$", "center"),
        (r"^disc$", "disk"),
        (r"mould", "mold"),
        (r"^grey$", "gray"),
        (r"dilatation$", "dilation"),
        (r"distension$", "distention"),
        (r"^inflammed$", "inflamed"),
    )
)
# Of four letters, only these are plurals: AIDS, SARS, LEMS, ARDS are not.
_SHORT_PLURALS: Final = frozenset(
    "arms ears eyes fits hips jaws legs lips nits pacs pvcs stds stis tias tics toes utis".split()
)
_SHORTEST_PLURAL: Final = 5


def plain(text: str) -> str:
    """The text in NFKC, case-folded, without accents, Greek letters by name, one kind of apostrophe."""
    text = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES).translate(_LETTERS)
    if not text.isascii():
        for letter, name in _GREEK.items():
            text = text.replace(letter, f" {name} ")
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return text


@lru_cache(maxsize=32768)
def words(text: str) -> tuple[str, ...]:
    """The comparable words of a text, in order, stop words gone. Digits and single letters always stay.

    Args:
        text: Any text; brackets, slashes and hyphens count as spaces.
    """
    if text != text.upper() or text.strip().isalpha():
        text = _SHOUTED.sub(lambda match: f"{match[1]}q", text)
    text = _DUE_TO.sub(" ", _POSSESSIVE.sub("", plain(text)))
    raw = _WORD.findall(text)
    if raw[:1] == ["a"] and len(raw) > 1:
        raw = raw[1:]
    spelled = [piece for token in raw for piece in _spell(token)]
    return _join_prefixes([token for token in spelled if token not in _STOP] or spelled)


@lru_cache(maxsize=16384)
def _spell(token: str) -> tuple[str, ...]:
    if token in _ROMAN:
        return (_ROMAN[token],)
    if subtype := _SUBTYPE.fullmatch(token):
        return (_ROMAN[subtype[1]], subtype[2])
    if token.isdigit():
        return (token.lstrip("0") or "0",)
    if token in _ORDINAL:
        return (_ORDINAL[token],)
    word = singular(token)
    for pattern, to in _SPELLING:
        word = pattern.sub(to, word)
    return (word,)


def singular(word: str) -> str:
    """The word's singular. Words that only look like plurals (sepsis, sclerosis, herpes, diabetes) stay."""
    if word in _PLURAL:
        return _PLURAL[word]
    if word in _SHORT_PLURALS:
        return word[:-1]
    if len(word) < _SHORTEST_PLURAL or word in _UNCHANGED:
        return word
    if word.endswith("omata"):
        return word[:-2]
    if word.endswith("itides"):
        return word[:-3] + "s"
    # A final -as is a plural after -om (lipomas) and a vowel (pneumonias), else Latin or Greek (pancreas).
    if word.endswith(("ss", "us", "is", "os", "ys")) or (word.endswith("as") and not word.endswith(("omas", "ias"))):
        return word
    if word.endswith("ies") and len(word) > _SHORTEST_PLURAL:
        return word[:-3] + "y"
    if word.endswith(("oses", "yses", "eses", "iases")) and len(word) > _SHORTEST_PLURAL + 1:
        return word[:-2] + "is"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word.removesuffix("s")


def _join_prefixes(tokens: list[str]) -> tuple[str, ...]:
    joined: list[str] = []
    for token in reversed(tokens):
        if token in _PREFIXES and joined and joined[-1].isalpha() and len(joined[-1]) > 2:
            joined[-1] = token + joined[-1]
        else:
            joined.append(token)
    return tuple(reversed(joined))
