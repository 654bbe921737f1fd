"""From the text of a diagnosis to comparable words: case, accents, spelling, plurals, numerals. Letters only.

It knows how one word can be written in several ways. It knows no medicine: which different words name the same thing is
in `labels`, which ones must not be confused in `label_qualifiers`.
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
_WORD: Final = re.compile(r"[a-z]+|[0-9]+")
_ROMAN: Final = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "x": "10",
    "xi": "11", "xii": "12", "xiii": "13",
}  # fmt: skip
_SUBTYPE: Final = re.compile(r"(ii|iii|iv|vi|vii)([abc])")
_ORDINAL: Final = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
# A prefix that is written apart, with a hyphen or joined: the joined form is the one to compare.
_PREFIXES: Final = frozenset(
    "non pre post anti pseudo hyper hypo sub intra extra peri para endo epi supra infra inter micro macro poly mono "
    "oligo multi semi hemi bi tri neuro cardio gastro broncho thrombo myo osteo auto photo immuno trans ultra uni".split()
)
# Words without meaning for identity, and hedges of a model's answer. `a` only goes at the very beginning: hepatitis A.
_STOP: Final = frozenset(
    "of the an in to on at by for from with and due caused causing cause as is are was be this that nos unspecified "
    "likely probable probably possible possibly suspected suspect presumed presumptive".split()
)
_UNCHANGED: Final = frozenset(
    "herpes diabetes rabies scabies caries measles mumps rickets facies species series pes tabes striae biceps triceps "
    "forceps lens pancreas pityriasis ascites yaws bends adhesives always has does gas bias atlas pus aids dts dentures "
    "striatus paries sordes feces faeces menses ataxies kuru sars mers stress abscess".split()
)
_PLURAL: Final = {
    "nevi": "nevus", "emboli": "embolus", "thrombi": "thrombus", "calculi": "calculus", "bronchi": "bronchus",
    "diverticula": "diverticulum", "varices": "varix", "feet": "foot", "teeth": "tooth", "lice": "louse",
    "bacteria": "bacterium", "ova": "ovum", "fungi": "fungus", "comedones": "comedo", "vertebrae": "vertebra",
    "metastases": "metastasis", "testes": "testis", "testicles": "testicle", "uteri": "uterus", "mice": "mouse",
    "sarcomata": "sarcoma", "women": "woman", "men": "men", "children": "child", "larvae": "larva",
    "cicatrices": "cicatrix", "foramina": "foramen", "septa": "septum", "haemangiomata": "hemangioma",
    "papillae": "papilla", "bullae": "bulla", "verrucae": "verruca", "fistulae": "fistula", "petechiae": "petechia",
    "telangiectases": "telangiectasia", "telangiectasias": "telangiectasia", "phenomena": "phenomenon",
    "syndromes": "syndrome", "diseases": "disease", "ganglia": "ganglion", "keloids": "keloid", "axes": "axis",
    "appendices": "appendix", "cortices": "cortex", "crises": "crisis", "indices": "index", "matrices": "matrix",
}  # fmt: skip
_SPELLING: Final = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"ae|oe(?!s$)", "e"),
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
        (r"inflamm?ed$", "inflamed"),
    )
)


def plain(text: str) -> str:
    """NFKC, case-folded, without accents, Greek letters by name, one kind of apostrophe."""
    text = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    for letter, name in _GREEK.items():
        text = text.replace(letter, f" {name} ")
    text = unicodedata.normalize("NFD", text.translate(_LETTERS))
    return unicodedata.normalize("NFC", "".join(char for char in text if unicodedata.category(char) != "Mn"))


def words(text: str) -> tuple[str, ...]:
    """The comparable words of a text, in order, stop words gone. Digits and single letters always stay.

    Args:
        text: Any text; brackets and slashes count as spaces.
    """
    text = re.sub(r"(?<=[a-z0-9])'s\b|'", lambda match: "" if match.group() == "'s" else " ", plain(text))
    text = re.sub(r"\bsecondary (?:to|from)\b|\bdue to\b", " ", text.replace("&", " and "))
    raw = _WORD.findall(text)
    if raw and raw[0] == "a" and len(raw) > 1:
        raw = raw[1:]
    spelled: list[str] = []
    for token in raw:
        spelled.extend(_spell(token))
    kept = [token for token in spelled if token not in _STOP] or spelled
    return _join_prefixes(kept)


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
    if len(word) < 4 or word in _UNCHANGED:
        return word
    if word.endswith("omata"):
        return word[:-2]
    if not word.endswith("s") or word.endswith(("ss", "us", "is", "os", "as", "ys", "itides", "ides", "ps", "ns" * 9)):
        return word[:-4] + "is" if word.endswith("itides") else _plural_in_as(word)
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("oses", "yses", "eses", "iases")) and len(word) > 6:
        return word[:-2] + "is"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


def _plural_in_as(word: str) -> str:
    # A final -as is a plural after -om (lipomas) and -i (pneumonias, hernias), else Latin or Greek (pancreas).
    return word[:-1] if word.endswith(("omas", "ias", "eas", "ulas")) and not word.endswith("iasis") else word


def _join_prefixes(tokens: list[str]) -> tuple[str, ...]:
    joined: list[str] = []
    for token in reversed(tokens):
        if token in _PREFIXES and joined and joined[-1].isalpha() and len(joined[-1]) > 2:
            joined[-1] = token + joined[-1]
        else:
            joined.append(token)
    return tuple(reversed(joined))
