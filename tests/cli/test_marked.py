"""Evidence marked in the case at a terminal: at its place whatever the text holds, and nothing that steers the terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from ddx_local.cli.say import harmless, summary
from ddx_local.cli.show import marked

TEXTS = (
    "A man of 54.\r\nHe has had fever\r\nand a cough.\r\n",
    "Tabs\tand\x0bother\x0cbreaks\x07, then fever and a cough.",
    "\x1b[31mred\x1b[0m, then fever and a cough.",
    "[bold]markup[/bold] and 漢字 🫀, then fever and a cough.",
    "a\u2028b\x85c, then fever and a cough.",
)


def document(text: str, *quotes: tuple[str, bool]) -> Any:
    evidence = [
        {"quote": quote, "start": text.index(quote), "end": text.index(quote) + len(quote), "supports": supports}
        for quote, supports in quotes
    ]
    return {"differential": [{"evidence": [{**item, "by": ["Neurology"]} for item in evidence]}]}


@pytest.mark.parametrize("text", TEXTS)
def test_a_quote_is_marked_at_its_place_whatever_stands_before_it(text: str) -> None:
    found = marked(document(text, ("fever", True), ("cough", False)), text)
    spans = {found.plain[span.start : span.end]: str(span.style) for span in found.spans}
    assert set(spans) == {"fever", "cough"}
    assert "green" in spans["fever"]
    assert "red" in spans["cough"]
    assert len(found.plain) == len(text)


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_of_a_case_steers_the_terminal(text: str) -> None:
    out = io.StringIO()
    Console(file=out, color_system=None, width=200).print(marked(document(text, ("fever", True)), text))
    assert not [
        letter for letter in out.getvalue() if (letter < " " and letter not in "\n\t") or "\x7f" <= letter < "\xa0"
    ]
    assert "fever" in out.getvalue()


def test_letters_keep_their_places_when_control_characters_are_taken_out() -> None:
    text = "".join(map(chr, range(0x250))) + "\u200d漢🫀"
    assert len(harmless(text)) == len(text)
    assert harmless("a\tb\nc") == "a\tb\nc"
    assert harmless("क्\u200dष") == "क्\u200dष", "a joiner is a letter's part, no control character"


def test_what_a_role_says_in_the_live_view_steers_no_terminal_and_fits_a_line() -> None:
    said = summary("scot/relevance", '{"relevance": 3, "reason": "\\u001b[2Jgone\\u0007\\r\\n' + "long " * 100 + '"}')
    assert said.startswith("3 of 5: [2Jgone long long")
    assert all(letter.isprintable() for letter in said)
    assert len(said) <= 150
