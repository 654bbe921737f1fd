"""Texts that break quoting, tokenising or grammars elsewhere, through the real engine: answers parse, quotes are verbatim."""

import json

import pytest
import pytest_asyncio

from ddx_local.assets import Assets
from ddx_local.clinical.quotes import has_quote
from ddx_local.engines.vllm import VllmEngine
from ddx_local.flow import Ask
from ddx_local.grammar import LEAST_QUOTE, accepts
from ddx_local.methods.baselines import DIFFERENTIAL
from ddx_local.request import Completion, Request, Sampling
from tests.engines.contract import CASES

pytestmark = pytest.mark.engine


def _three_thousand_words() -> str:
    words = [word for path in sorted(CASES.glob("*.txt")) for word in path.read_text("utf-8").split(" ")]
    assert len(words) >= 2000
    return " ".join((words + words)[:3000])


HARD = {
    "quotes and backslashes": (
        'A 54-year-old man says: "It burns \\ like \'fire\'" \\n (sic).\n\n\tBP\t150/90,\r\nallergic to "penicillin" \\\\ '
        "told at C:\\ward\\7; weight {{70}} kg.\n\n\nToe red, hot & swollen </case> since 3\\4 days."
    ),
    "Chinese and Japanese": (
        "患者，男，54岁，右足第一跖趾关节红肿热痛3天。 既往高血压病史， 服用氢氯噻嗪。 血尿酸 620 μmol/L。 体温 37.8℃。 "
        "昨夜から 右足の親指が 赤く腫れて 痛みが強い。"
    ),
    "mojibake": (
        "Der Patient klagt Ã¼ber RÃ¼ckenschmerzen â€“ seit ca. 3 Wochen, nÃ¤chtliches Schwitzen, \ufffd\ufffd Fieber bis "
        "38,5Â°C, â€œschlappâ€\x9d, Gewichtsverlust 5\u00a0kg.\u200b Keine VorerkrankungenÂ\x85"
    ),
    "eight characters": "Red toe.",
    "one endless word": "painful" * 80,
    "three thousand words": _three_thousand_words(),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def answers(real_engine: VllmEngine) -> dict[str, tuple[str, Completion]]:
    """Name -> grammar and answer, all in one batch."""
    assets = Assets()
    filled = {
        name: assets.fill(Ask(DIFFERENTIAL, {"case": text, "k": "3"}, "physician")) for name, text in HARD.items()
    }
    requests = [
        Request(item.messages, Sampling(0.7, item.top_p, 0, item.longest, 7), item.grammar, "zero_shot/differential")
        for item in filled.values()
    ]
    completions = await real_engine.generate(requests)
    return {
        name: (item.grammar or "", completion)
        for (name, item), completion in zip(filled.items(), completions, strict=True)
    }


@pytest.mark.parametrize("name", HARD)
def test_a_hard_text_gets_an_answer_that_parses_and_quotes_it_verbatim(
    name: str, answers: dict[str, tuple[str, Completion]]
) -> None:
    grammar, answer = answers[name]
    assert answer.finish_reason == "stop"
    assert accepts(grammar, answer.text)
    entries = json.loads(answer.text)["differential"]
    assert 1 <= len(entries) <= 3
    quotes = [quote for entry in entries for quote in entry["evidence"]]
    assert all(quote in HARD[name] for quote in quotes)
    assert bool(quotes) == has_quote(HARD[name], LEAST_QUOTE, 60)
