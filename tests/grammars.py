"""Hard texts and labels, and the laws that every output of an expanded grammar template keeps."""

import json
import random
from collections.abc import Mapping
from typing import Any, get_args

import llguidance
from hypothesis import strategies as st

from ddx_local.clinical.quotes import has_quote
from ddx_local.engines.scripted import Policy, walk
from ddx_local.grammar import LEAST_QUOTE, Expanded, accepts, byte_tokenizer, expand

POLICIES: tuple[Policy, ...] = get_args(Policy)

TEXTS = {
    "plain": "A 61-year-old man has crushing chest pain since yesterday and vomits.",
    "newlines": "Fever for three days.\n\nNo cough.\r\n\tStiff neck,\nphotophobia and a rash.",
    "quotation marks": 'She says "my chest hurts" and "I can\'t breathe" since the flight.',
    "backslashes": 'BP 120\\80, a path C:\\notes\\n and a \\"quoted\\" word at the end',
    "cjk": "患者,男,58 岁,突发胸痛 3 小时,伴大汗。 既往有高血压病史 10 年。",
    "cjk without a blank": "患者男五十八岁突发胸痛三小时伴大汗既往有高血压病史十年" * 4,
    "greek and cyrillic": "Больной с β-талассемией жалуется на одышку и боль в груди.",
    "mojibake": "CafÃ© au lait spots, 38Â°C â€“ the motherâ€™s na√Øve story of fever",
    "emoji": "Felt fine 🫀 until today 🤒🤒 when the 👩‍⚕️ nurse found 39.5 °C and chills",
    "control characters": "Fever\x01 and\x1f chills\x7f for\x0b three\x0c days\x1c at\u2028 home\u2029 now\x85.",
    "braces": "The {{case}} of a man with {{ quote case 60 }} fever and {1,3} chills",
    "eight characters": "fever 39",
    "one endless word": "x" * 3000,
    "leading blanks": "    \n    Sudden onset of a severe headache.",
    "empty": "",
    "high plane letters": "𠮷野家 patient 𐐷𐐷 with fever and chills for 𝔸 days",
}
LABELS = (
    'the "sick sinus" syndrome',
    "back\\slash \\n \\u0041 disease",
    "β-thalassemia",
    "fever, cough, and chills",
    "{{x}} braces {{item}}",
    "a/b [c] (d) {e} |f",
    "line\nbreak\tand tab",
    "肺炎",
    "MI",
    "MI, acute",
    "🫀",
    "%if or $1 ::_ //",
    "\x7f\x01",
    " ",
)

PIECES = [
    "a",
    "chest pain ",
    " ",
    "\n",
    "\t",
    '"',
    "\\",
    "\\n",
    "\\u0041",
    "发热",
    "咳嗽 ",
    "é",
    "🫀",
    "\x01",
    "\x7f",
    "{{x}}",
    "|",
    "/",
]
HARD_TEXTS = st.one_of(
    st.sampled_from(list(TEXTS.values())),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
HARD_LABELS = st.lists(
    st.one_of(
        st.sampled_from(LABELS),
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=7,
    unique=True,
).map(tuple)

Slots = Mapping[str, str | tuple[str, ...]]


def compiled(template: str, slots: Slots) -> Expanded:
    """The expansion, which llguidance must be able to compile."""
    expanded = expand(template, slots)
    fault = llguidance.LLMatcher.validate_grammar(expanded.lark, byte_tokenizer())
    assert not fault, fault[:300]
    return expanded


def said(template: str, slots: Slots, seed: int = 0) -> list[Any]:
    """What `json.loads` reads from a walk by each policy, after the laws that hold for every output."""
    expanded = compiled(template, slots)
    values = []
    for policy in POLICIES:
        output = walk(expanded.lark, random.Random(seed), policy)
        assert len(output.encode()) <= expanded.longest
        assert accepts(expanded.lark, output)
        values.append(json.loads(output))
    return values


def quotable(text: str, most: int = 60) -> bool:
    return has_quote(text, LEAST_QUOTE, most)


def outputs(template: str, slots: Slots, seeds: int = 40) -> list[Any]:
    return [value for seed in range(seeds) for value in said(template, slots, seed)]
