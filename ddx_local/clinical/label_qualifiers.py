"""What tells two similar diagnoses apart: sides, times, types, causes, opposite prefixes, numbers, negation.

It knows pairs that must never be confused, on words as `label_words.words` gives them. It knows no synonyms, so that
an organ and its adjective both stand on the axis of organs.
"""

from collections.abc import Callable, Set
from functools import lru_cache
from typing import Final

# One axis a line, exclusive values apart by `|`, words of one value apart by a space. Two labels that both have a value
# on an axis, and no value in common, are different diagnoses. Words are in the spelling of `label_words`.
_QUALIFYING: Final = """
acute hyperacute | chronic longstanding | subacute
primary essential idiopathic | secondary
viral virus | bacterial bacterium | fungal mycotic | parasitic protozoal helminthic
left | right
upper superior | lower inferior
anterior | posterior
medial | lateral
proximal | distal
central | peripheral
central | obstructive
direct | indirect
stable | unstable
benign | malignant
systolic | diastolic
preserved | reduced
sensorineural | conductive
ectopic tubal extrauterine | intrauterine
open | closed
external externa | internal interna | media middle
congenital inherited hereditary familial genetic | acquired
male | female
systemic disseminated generalized diffuse | localized discoid limited focal
unilateral | bilateral
ischemic | hemorrhagic
obstructive obstructed | restrictive
obstructive obstructed | nonobstructive
dry atrophic | wet neovascular exudative
dilated | hypertrophic | restrictive
spastic | flaccid
ascending | descending
superficial | deep
large | small
juvenile | adult | neonatal infantile newborn
inattentive | hyperactive
relapsing remitting | progressive
transudative | exudative
partial incomplete | complete
allergic atopic | irritant
single solitary | multiple
early | late
mild | moderate | severe
alpha | beta | gamma | delta
"""
_NAMING: Final = """
depressive depression depressed | manic mania
threatened | inevitable | missed | septic
iron | cobalamin vitamin | folate folic | sickle | aplastic | hemolytic | sideroblastic
basal | squamous | merkel
crohn | ulcerative
gout | pseudogout
mellitus | insipidus
malaria | dengue | typhoid | leptospirosis | chikungunya | zika
gonorrhea gonococcal | chlamydia chlamydial | syphilis | trichomonas trichomonal trichomoniasis | herpes herpetic
osteoarthritis | rheumatoid | psoriatic | septic | gouty
lymphoblastic lymphocytic lymphoid | myeloid myelogenous myelocytic myeloblastic | hairy
hodgkin | nonhodgkin
alcoholic | nonalcoholic
proliferative | nonproliferative
traumatic | nontraumatic atraumatic spontaneous
iga | igg | igm | ige | igd
cruciate | collateral
abduction | adduction
aortic | mitral | tricuspid | pulmonic
subdural | epidural extradural | subarachnoid | intracerebral intraparenchymal
artery arterial | vein venous
radial radius | ulnar ulna | median
tibial tibia | fibular fibula peroneal | femoral femur | humeral humerus | sciatic
femoral | inguinal | umbilical | hiatal hiatus | ventral incisional
hip | knee | ankle | shoulder | elbow | wrist
hand manuum | foot pedis | scalp capitis | corporis body | cruris groin | unguium nail | face faciei facial | versicolor
axillary | scrotum scrotal
ventricular | atrial supraventricular | junctional nodal
staphylococcal | streptococcal | pneumococcal | meningococcal | tuberculous tuberculosis | mycoplasma | pneumocystis
anorexia | bulimia
avoidant | dependent | schizoid | schizotypal | paranoid | borderline | antisocial | narcissistic | histrionic
schizoaffective | schizophreniform | schizophrenia
obsessive | posttraumatic | panic | adjustment
vulgaris | foliaceus | paraneoplastic
nodular | cystic
follicular | papillary | medullary | anaplastic
cervical | thoracic | lumbar lumbosacral | sacral
"""
_ORGANS: Final = """
stomach gastric | duodenum duodenal | esophagus esophageal | colon colonic colorectal | jejunum jejunal | ileum ileal |
rectum rectal | anus anal | liver hepatic hepatocellular | gallbladder | pancreas pancreatic | kidney renal | bladder |
ureter ureteral ureteric | spleen splenic | lung pulmonary | pleura pleural | heart cardiac | breast mammary | thyroid |
parathyroid | adrenal | pituitary | thymus thymic | ovary ovarian | uterus uterine endometrial | cervix cervical |
vagina vaginal | vulva vulvar vulval | prostate prostatic | testis testicular testicle | brain cerebral intracranial |
spine spinal
"""


def _axes(text: str) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(tuple(frozenset(value.split()) for value in line.split("|")) for line in text.strip().splitlines())


def _places(axes: tuple[tuple[frozenset[str], ...], ...]) -> dict[str, tuple[tuple[int, int], ...]]:
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for number, axis in enumerate(axes):
        for index, value in enumerate(axis):
            for word in value:
                found[word] = (*found.get(word, ()), (number, index))
    return found


# Where a word stands: the numbers of its axes and of its values on them.
_PLACES: Final = _places(_axes(_QUALIFYING) + _axes(_NAMING) + _axes(" ".join(_ORGANS.split())))
QUALIFIERS: Final = frozenset(word for axis in _axes(_QUALIFYING) for value in axis for word in value)
"""Words that only qualify a name: a bracket that holds one is a part of the name, not an alias."""

NEGATIONS: Final = frozenset(
    {"no", "not", "without", "absent", "absence", "negative", "never", "none", "nor", "neither"}
)
_CONTRARY_PREFIXES: Final = ("pseudo", "non", "anti", "un", "a", "an", "post", "pre", "para")
_PREFIX_FAMILIES: Final = (
    "hyper hypo eu normo poly oligo pan dys a an",
    "macro micro normo",
    "tachy brady",
    "intra extra inter trans peri para",
    "endo epi peri myo peno pan ecto",
    "supra sub infra",
    "pre post peri",
    "mono di bi tri quadri tetra hemi para uni multi poly",
    "adeno lipo fibro osteo chondro angio leiomyo rhabdomyo myo neuro hem lymph",
    "eso exo hyper hypo",
    "broncho pneumo hemo chylo pyo hydro",
    "hemat hemo pyo",
)
_SUFFIXES: Final = (
    "itis osis oma sarcoma carcinoma blastoma pathy emia uria algia lithiasis cele oid us ectomy megaly plegia paresis "
    "penia philia cytosis listhesis lysis ectasia plasia trophy genic lytic tonic cytic rhea rrhagia rrhea spasm "
    "stenosis malacia sclerosis porosis phagia phasia phonia phoria"
).split()
_LEAST_STEM: Final = 4


def clash(a: Set[str], b: Set[str]) -> bool:
    """Whether two labels differ in something that makes them different diagnoses, however alike they look.

    Args:
        a: Words of one label.
        b: Words of the other.
    """
    if bool(a & NEGATIONS) != bool(b & NEGATIONS):
        return True
    if _numbered_apart(a, b, str.isdigit) or _numbered_apart(a, b, str.isalpha):
        return True
    mine, yours = _values(a), _values(b)
    if any(not mine[axis] & yours[axis] for axis in mine.keys() & yours.keys()):
        return True
    only_a, only_b = a - b, b - a
    if any(opposed(x, y) for x in only_a for y in only_b):
        return True
    return any(_contraries(x) & b for x in only_a) or any(_contraries(y) & a for y in only_b)


def _values(label: Set[str]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for word in label:
        for axis, value in _PLACES.get(word, ()):
            found.setdefault(axis, set()).add(value)
    return found


def _numbered_apart(a: Set[str], b: Set[str], kind: Callable[[str], bool]) -> bool:
    """Whether labels that share a word have other digits, or other single letters (type 1 and 2, hepatitis A and B)."""
    mine, yours = ({word for word in label if kind(word) and (len(word) == 1 or word.isdigit())} for label in (a, b))
    return bool(mine and yours and mine != yours and any(len(word) > 1 and word.isalpha() for word in a & b))


@lru_cache(maxsize=65536)
def opposed(a: str, b: str) -> bool:
    """Whether two words share their stem and differ in a prefix or an ending that changes the meaning."""
    for family in _PREFIX_FAMILIES:
        stems_a, stems_b = _stems(a, family), _stems(b, family)
        if any(p != q and x == y for p, x in stems_a for q, y in stems_b):
            return True
    ends_a = [(a[: -len(end)], end) for end in _SUFFIXES if a.endswith(end) and len(a) - len(end) >= _LEAST_STEM]
    ends_b = [(b[: -len(end)], end) for end in _SUFFIXES if b.endswith(end) and len(b) - len(end) >= _LEAST_STEM]
    return any(x == y and p != q for x, p in ends_a for y, q in ends_b)


@lru_cache(maxsize=65536)
def _stems(word: str, family: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (prefix, word[len(prefix) :])
        for prefix in family.split()
        if word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_STEM
    )


@lru_cache(maxsize=65536)
def _contraries(word: str) -> frozenset[str]:
    """The words that this one would contradict: non-X contradicts X."""
    return frozenset(
        word[len(prefix) :]
        for prefix in _CONTRARY_PREFIXES
        if word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_STEM
    )
