"""What tells two similar diagnoses apart: sides, times, types, causes, opposite prefixes, numbers, negation.

It knows pairs that must never be confused, on words as `label_words.words` gives them. It knows no synonyms.
"""

from collections.abc import Set
from functools import lru_cache
from typing import Final

# One axis a line, exclusive values apart by `|`, words of one value apart by a space. Two labels that both have a value
# on an axis, and no value in common, are different diagnoses. Words are in the spelling of `label_words`.
_AXES_TEXT: Final = """
acute hyperacute | chronic longstanding | subacute
primary essential idiopathic | secondary
viral virus | bacterial bacterium | fungal mycotic | parasitic protozoal helminthic | aseptic sterile
left | right
upper superior | lower inferior
anterior | posterior
medial | lateral
proximal | distal
central | peripheral
direct | indirect
stable | unstable
benign | malignant
systolic | diastolic
sensorineural | conductive
ectopic tubal | intrauterine
open | closed
internal interna | external externa | media middle
congenital inherited hereditary familial genetic | acquired
male | female
systemic disseminated generalized | localized discoid limited focal
unilateral | bilateral
ischemic | hemorrhagic
obstructive | restrictive
obstructive obstructed | nonobstructive
dry atrophic | wet neovascular exudative
dilated | hypertrophic | restrictive
spastic | flaccid
upward | downward
ascending | descending
superficial | deep
large | small
juvenile | adult | neonatal infantile newborn
obstructive | central
inattentive | hyperactive
depressive depression | manic mania
relapsing remitting | progressive
transudative | exudative
partial incomplete | complete
threatened | inevitable | missed | septic
allergic atopic | irritant
iron | b12 cobalamin vitaminb12 | folate | sickle | aplastic | hemolytic | sideroblastic
basal | squamous | merkel
crohn | ulcerative
gout | pseudogout
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
acl | pcl | mcl | lcl
abduction | adduction
gastric stomach | duodenal duodenum | esophageal esophagus | colon colonic colorectal | jejunal | ileal | rectal | anal
liver hepatocellular | gallbladder | pancreas pancreatic | kidney | bladder | ureter ureteral ureteric | spleen splenic
lung | pleura pleural | breast | thyroid | parathyroid | adrenal | pituitary | thymic thymus
ovary ovarian | uterus uterine endometrial | cervix cervical | vaginal vagina | vulva vulvar | prostate | testis testicular
cervical | thoracic | lumbar lumbosacral | sacral
brain cerebral intracranial | spinal
aortic | mitral | tricuspid | pulmonic
subdural | epidural extradural | subarachnoid | intracerebral intraparenchymal
arterial artery | venous vein
radial radius | ulnar ulna | median
tibial tibia | fibular fibula peroneal | femoral femur | humeral humerus | sciatic
femoral | inguinal | umbilical | hiatal hiatus | ventral incisional
hip | knee | ankle | shoulder | elbow | wrist
hand manuum | foot pedis | scalp capitis | corporis body | cruris groin | unguium nail | face faciei | versicolor
axillary | scrotal scrotum
ventricular | atrial supraventricular | junctional nodal
staphylococcal | streptococcal | pneumococcal | meningococcal | tuberculous tuberculosis | mycoplasma | pneumocystis
anorexia | bulimia
avoidant | dependent | schizoid | schizotypal | paranoid | borderline | antisocial | narcissistic | histrionic
schizoaffective | schizophreniform | schizophrenia
obsessive | posttraumatic | panic | adjustment
vulgaris | foliaceus | paraneoplastic
nodular | cystic
follicular | papillary | medullary | anaplastic
"""
_AXES: Final = tuple(
    tuple(frozenset(value.split()) for value in line.split("|")) for line in _AXES_TEXT.strip().splitlines()
)
QUALIFIERS: Final = frozenset(word for axis in _AXES[:36] for value in axis for word in value)
"""Words of the axes that only qualify: a bracket that holds one is a part of the name, not an alias."""

NEGATIONS: Final = frozenset({"no", "not", "without", "absent", "absence", "negative", "never", "none", "nor", "neither"})
_POSITIVE: Final = frozenset({"positive"})
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
    "itis osis oses oma sarcoma carcinoma blastoma pathy emia uria algia lithiasis cele oid us ectomy megaly plegia paresis "
    "penia philia cytosis listhesis lysis ectasia plasia trophy genic lytic tonic cytic rhea rrhagia spasm stenosis rrhea "
    "malacia sclerosis porosis phagia phasia phonia phoria"
).split()
_LEAST_STEM: Final = 4


def clash(a: Set[str], b: Set[str]) -> bool:
    """Whether two labels differ in something that makes them different diagnoses, however alike they look.

    Args:
        a: Words of one label.
        b: Words of the other.
    """
    if bool(a & NEGATIONS) != bool(b & NEGATIONS) or _letters(a) != _letters(b):
        return True
    for axis in _AXES:
        mine = {index for index, value in enumerate(axis) if value & a}
        yours = {index for index, value in enumerate(axis) if value & b}
        if mine and yours and not mine & yours:
            return True
    only_a, only_b = a - b, b - a
    if any(opposed(x, y) for x in only_a for y in only_b):
        return True
    return any(_contrary(x, b) for x in only_a) or any(_contrary(y, a) for y in only_b)


def _letters(label: Set[str]) -> frozenset[str]:
    return frozenset()


@lru_cache(maxsize=65536)
def opposed(a: str, b: str) -> bool:
    """Whether two words share their stem and differ in a prefix or an ending that changes the meaning."""
    for family in _PREFIX_FAMILIES:
        stems_a, stems_b = _stems(a, family), _stems(b, family)
        if any(p != q and x == y for p, x in stems_a for q, y in stems_b):
            return True
    ends_a = [(a[: -len(end)], end) for end in _SUFFIXES if a.endswith(end) and len(a) - len(end) >= _LEAST_STEM]
    ends_b = [(b[: -len(end)], end) for end in _SUFFIXES if b.endswith(end) and len(b) - len(end) >= _LEAST_STEM]
    return any(x == y and p != q for x, p in ends_a for y, q in ends_b) and a != b


def _stems(word: str, family: str) -> list[tuple[str, str]]:
    return [
        (prefix, word[len(prefix) :])
        for prefix in family.split()
        if word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_STEM
    ]


def _contrary(word: str, other: Set[str]) -> bool:
    return any(
        word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_STEM and word[len(prefix) :] in other
        for prefix in _CONTRARY_PREFIXES
    )
