"""Sentences without a heading: which section their words belong to, where that is plain. It knows words, not medicine.

A sentence gets a section when cues of one section alone stand in it, or when its strongest cue is stronger than those of
every other section; otherwise none. What stands between two sentences of one section, without a cue, belongs to it.
"""

import re
from collections.abc import Mapping, Sequence

_PERSON = r"(?:man|woman|male|female|boy|girl|infant|newborn|neonate|child|toddler|baby|gentleman|lady|patient|fetus|proband|person)"
_TIME = r"(?:second|minute|hour|day|week|month|year)s?"

_CUES: Mapping[str, tuple[tuple[int, str], ...]] = {
    "basic_information": (
        (2, rf"\b\d{{1,3}}[- ](?:year|month|week|day|yr)s?[- ]old\b(?:\s+[\w-]+){{0,3}}\s+{_PERSON}\b"),
        (
            2,
            rf"\b{_PERSON},? (?:of|aged|age) \d{{1,3}}\b|\b(?:male|female),? \d{{1,3}} years\b|\bage[ds]?:? \d{{1,3}}\b",
        ),
        (2, r"\b\d{1,3}[- ]years?[- ]old,? (?:male|female)|\b\d{1,3} ?y/?o\b|\bgender\b|\bnationality\b|\bethnicity\b"),
        (2, r"\bborn (?:at|to|full|by|via|in)\b.*\b(?:weeks?|weigh\w*|parents|couple|gestation)\b|\bbirth ?weight\b"),
        (1, r"\bweigh(?:ing|ed|s)?\b.*\bkg\b|\bBMI\b|\bmarried\b|\boccupation\b"),
        (2, r"\b(?:عمره|عمرها|يبلغ من العمر|تبلغ من العمر)\b|\b(?:رجل|امرأة|طفل|طفلة|مريض|مريضة)\b.*\bعام"),
    ),
    "clinical_presentation": (
        (3, r"\bpresent(?:ed|s|ing)? (?:with|to|for|at|after|in)\b|\bcomplain(?:s|ed|ing|ts?)?\b|\bchief complaint"),
        (3, r"\b(?:was|were|is|been) (?:admitted|referred|brought|hospitali[sz]ed|transferred)\b|\bcame to\b"),
        (2, rf"\b(?:for|since|over|during|in) the (?:past|last|previous)\b|\b\d+[- ]{_TIME}[- ]history of\b"),
        (
            2,
            rf"\b{_TIME} (?:ago|earlier|later|before (?:admission|presentation))\b|\bprior to (?:admission|presentation)\b",
        ),
        (
            2,
            r"\bsymptoms?\b|\bonset\b|\bexperienc(?:ed|es|ing)\b|\bsuffer(?:ed|s|ing)\b|\bdenie[sd]\b|\breport(?:s|ed) (?:that|having|no|a|in)",
        ),
        (
            1,
            r"\bdeveloped\b|\bworsen\w*|\bnoticed\b|\bprogress(?:ive|ed|ively)\b|\bgradual\w*|\bsudden\w*|\bepisodes?\b",
        ),
        (3, r"يعاني|تعاني|يشكو|تشكو|اشتكى|اشتكت|راجع|راجعت|حضر|حضرت|أدخل|أدخلت|منذ"),
    ),
    "physical_examination": (
        (
            4,
            r"\b(?:on|at|physical|clinical|neurologic(?:al)?|general|abdominal|skin|eye|pelvic|rectal) exam(?:ination)?s?\b",
        ),
        (4, r"\bexamination (?:shows?|showed|reveal(?:s|ed)|disclosed|found|was|of the)\b|\bvital signs\b|\bO/E\b"),
        (
            3,
            r"\bauscultation\b|\bpalpat(?:ion|ed|able|e)\b|\bpercussion\b|\bblood pressure\b|\bheart rate\b|\bpulse\b.*\d+ ?/ ?min",
        ),
        (
            3,
            r"\brespirat(?:ory rate|ions)\b|\boxygen saturation\b|\bSpO2\b|\b(?:her|his|body|the) temperature\b|\bBP\b|\bHR\b|\bRR\b",
        ),
        (
            2,
            r"\btender(?:ness)?\b|\bmurmurs?\b|\bcrackles\b|\brales\b|\bwheez\w*|\bguarding\b|\brebound\b|\breflex(?:es)?\b|\bBabinski\b",
        ),
        (
            2,
            r"\bafebrile\b|\bill-appearing\b|\bcyanosis\b|\bicterus\b|\bpallor\b|\bhepatomegaly\b|\bsplenomegaly\b|\bnystagmus\b",
        ),
        (4, r"(?:الفحص|بالفحص|عند الفحص) (?:السريري|البدني|يظهر|أظهر)|ضغط الدم|درجة الحرارة|العلامات الحيوية|بفحص"),
    ),
    "medical_history": (
        (
            4,
            r"\b(?:past|previous|prior|medical|surgical|family|social|birth|travel|obstetric|developmental) (?:medical |surgical )?histor(?:y|ies)\b",
        ),
        (
            3,
            r"(?<!day )(?<!days )(?<!week )(?<!weeks )(?<!month )(?<!months )(?<!year )(?<!years )(?<!-day )(?<!-week )\bhistory of (?!present)",
        ),
        (
            3,
            r"\bsmok(?:es|er|ed|ing)\b|\balcohol\b|\ballerg(?:y|ies|ic to)\b|\bmedications?\b|\bvaccinat\w+|\bimmuni[sz]ations?\b",
        ),
        (
            3,
            r"\bconsanguin\w+|\bsiblings?\b|\b(?:his|her|the patient's) (?:father|mother|brother|sister|parents|family|uncle|aunt)\b",
        ),
        (
            3,
            r"\bfamily (?:member|had|has|was|is)\b|\bcomorbid\w*|\bno (?:significant|relevant|known|notable) (?:medical|past|family)",
        ),
        (
            2,
            r"\b(?:was|had been|previously|been) diagnosed with\b|\bunderwent\b.*\b(?:years? ago|in (?:19|20)\d\d|at the age)",
        ),
        (4, r"التاريخ (?:المرضي|الطبي|العائلي)|السوابق|لا يدخن|يدخن|مدخن|حساسية"),
    ),
    "initial_test_results": (
        (
            4,
            r"\blaborator(?:y|ies)\b|\blabs?\b (?:tests?|results?|values?|work)|\bblood (?:tests?|counts?|work|chemistry|analysis|gas)",
        ),
        (
            3,
            r"\b\d[\d.,]* ?(?:[mµμnp]?g|[mµμnp]?mol|[mkµμ]?I?U|cells|m?Eq|ng|pg)/ ?(?:d?L|mL|l|ml|dl)\b|[×x] ?10\^?[⁹^]?\d* ?/|/mm3|/µL|/μL",
        ),
        (
            3,
            r"\b(?:CT|MRI|ECG|EKG|EEG|EMG|X-ray|chest radiograph|radiographs?|ultraso(?:und|nography)|sonography|echocardiogra\w+|PET)\b",
        ),
        (
            3,
            r"\belectrocardiogra\w+|\bcomputed tomography\b|\bmagnetic resonance\b|\burinalysis\b|\bradiograph\w*|\bangiogra\w+",
        ),
        (
            2,
            r"\bh(?:a)?emoglobin\b|\bleu[ck]ocyt\w+|\bplatelets?\b|\bcreatinine\b|\bCRP\b|\bC-reactive\b|\bWBC\b|\bserum\b|\bESR\b",
        ),
        (4, r"التحاليل|المختبر|المخبرية|الأشعة|التصوير|تخطيط القلب|تعداد الدم"),
    ),
    "further_diagnostic_tests": (
        (
            5,
            r"\bbiops(?:y|ies)\b.*\b(?:show\w*|reveal\w*|demonstrat\w*|confirm\w*|consistent|found|was|were)\b|\bhistopatholog\w+|\bhistolog\w+",
        ),
        (
            5,
            r"\bimmunohistochem\w+|\bimmunofluorescen\w+|\belectron microscop\w+|\bimmunostain\w*|\bcytolog(?:y|ical)\b|\bstaining\b",
        ),
        (
            5,
            r"\bgene(?:tic)? (?:test\w*|analys[ie]s|sequenc\w+|panel|stud\w+|mutation)|\bexome\b|\bgenome\b|\bsequencing\b|\bkaryotyp\w+",
        ),
        (
            5,
            r"\b(?:hetero|homo|hemi)zygous\b|\bp\.\(?[A-Z][a-z]{2}\d+|\bc\.\d+[\d_+-]*[ACGTdi]|\bmicroarray\b|\bSanger\b|\bvariants?\b.*\bgene\b",
        ),
        (
            4,
            r"\bbone marrow\b|\bflow cytometry\b|\bfurther (?:investigations?|tests?|testing|work-?up|evaluation|imaging)\b",
        ),
        (5, r"الخزعة|خزعة|التسلسل الجيني|الفحص الجيني|طفرة"),
    ),
}
_COMPILED = {
    name: tuple((weight, re.compile(pattern, re.IGNORECASE)) for weight, pattern in cues)
    for name, cues in _CUES.items()
}

MARGIN = 2
"""By how much a section's cues must outweigh those of the next."""

MOST_BETWEEN = 4
"""Sentences without a cue that go with those around them."""


def assign(sentences: Sequence[str]) -> tuple[str | None, ...]:
    """The section of each sentence of a text, in order; None where its words do not tell."""
    found = [_section(sentence) for sentence in sentences]
    for place, name in enumerate(found):
        if name is None:
            continue
        for gap in range(1, MOST_BETWEEN + 1):
            end = place + gap + 1
            if end < len(found) and found[end] == name and not any(found[place + 1 : end]):
                found[place + 1 : end] = [name] * gap
    return tuple(found)


def _section(sentence: str) -> str | None:
    weights = {
        name: sum(weight for weight, pattern in cues if pattern.search(sentence)) for name, cues in _COMPILED.items()
    }
    best, next_ = sorted(weights.values(), reverse=True)[:2]
    if best < 2 or best - next_ < MARGIN:
        return None
    return next(name for name, weight in weights.items() if weight == best)
