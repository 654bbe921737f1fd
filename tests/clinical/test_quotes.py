"""Verbatim quotes: located, cut into chunks, measured as a quote grammar would, against brute force on small texts."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ddx_local.clinical.quotes import Span, chunks, has_quote, highlight_spans, locate, longest_quote_bytes
from ddx_local.errors import ParseError

PIECES = [
    "a",
    "of",
    " ",
    "  ",
    "\n",
    "\t",
    '"',
    "\\",
    "\\n",
    "发热",
    "咳嗽",
    "\u3000",
    "🫀",
    "é",
    "\x00",
    "\x1c",
    "\x7f",
    "\u2028",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # with lone surrogates
BOUNDS = st.tuples(st.integers(0, 14), st.integers(0, 14))
SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8)).map(lambda pair: Span(pair[0], pair[0] + pair[1])), max_size=8
)


def legal_runs(text: str, least: int, most: int) -> list[str]:
    """Every escaped run of whole chunks within the bounds, the slow way."""
    parts = chunks(text)
    runs = ("".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
    escaped = (json.dumps(run, ensure_ascii=False)[1:-1] for run in runs)
    return [run for run in escaped if least <= len(run) <= most]


@given(st.one_of(TEXTS, ANY_TEXT))
@example("\ud83e lone \udec0")
@example(" \n leading")
@example("   ")
@example("")
def test_chunks_join_to_the_text_and_none_is_empty(text: str) -> None:
    parts = chunks(text)
    assert "".join(parts) == text
    assert all(parts)


@given(st.one_of(TEXTS, ANY_TEXT))
def test_a_chunk_is_one_word_and_the_white_space_after_it(text: str) -> None:
    parts = chunks(text)
    words = [part.split() for part in parts]
    assert [word for found in words for word in found] == text.split()
    assert all(len(found) == 1 for found in words[1:])
    assert all(not part[0].isspace() for part in parts[1:])


def test_chunks_of_a_sentence() -> None:
    assert chunks("  Fever for 3 days,\n no cough.\n") == ("  ", "Fever ", "for ", "3 ", "days,\n ", "no ", "cough.\n")


@given(TEXTS, BOUNDS)
def test_a_legal_quote_is_found_exactly_when_there_is_one(text: str, bounds: tuple[int, int]) -> None:
    assert has_quote(text, *bounds) == bool(legal_runs(text, *bounds))


@given(TEXTS, BOUNDS)
def test_the_longest_quote_has_the_most_bytes_of_all_legal_ones(text: str, bounds: tuple[int, int]) -> None:
    sizes = [len(run.encode()) for run in legal_runs(text, *bounds)]
    assert longest_quote_bytes(text, *bounds) == max(sizes, default=0)


@given(ANY_TEXT, BOUNDS)
@example("\ud800", (1, 1))
def test_any_string_that_python_can_hold_can_be_measured(text: str, bounds: tuple[int, int]) -> None:
    assert has_quote(text, *bounds) == (longest_quote_bytes(text, *bounds) > 0)


def test_lengths_are_those_of_the_escaped_form() -> None:
    assert has_quote('"\\"', 6, 6)
    assert not has_quote('"\\"', 3, 5)
    assert has_quote("\x00", 6, 6)
    assert longest_quote_bytes("发热 x", 1, 3) == 7
    assert longest_quote_bytes("発" * 20, 12, 80) == 60


def test_a_text_of_one_long_word_has_no_legal_quote() -> None:
    assert not has_quote("発" * 100, 12, 80)
    assert longest_quote_bytes("発" * 100, 12, 80) == 0


def test_an_empty_text_has_no_quote_even_without_a_lower_bound() -> None:
    assert not has_quote("", 0, 80)
    assert longest_quote_bytes("", 0, 80) == 0


def test_five_thousand_words_are_measured_in_under_fifty_milliseconds() -> None:
    text = "temperature 38.5 °C and\n" * 1250
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        assert longest_quote_bytes(text, 12, 80) > 0
        assert not has_quote(text, 79, 78)
        taken.append((time.perf_counter() - start) / 2)
    assert min(taken) < 0.05


@given(TEXTS, st.data())
def test_a_quote_is_located_at_its_first_occurrence(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    if not quote:
        return
    span = locate(text, quote)
    assert text[span.start : span.end] == quote
    assert span.start == min(i for i in range(len(text)) if text.startswith(quote, i))


@pytest.mark.parametrize("quote", ["chills", "Fever", "fever  and", ""])
def test_a_quote_that_is_not_there_is_an_error_without_its_words(quote: str) -> None:
    case = "Three days of fever and cough."
    with pytest.raises(ParseError) as caught:
        locate(case, quote)
    message = caught.value.message.lower()
    assert not any(word in message for word in ["chills", "fever", "cough", "three"])
    assert caught.value.hint


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 3), (4, 2)])
def test_a_span_that_is_empty_or_backward_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="0 <= start < end"):
        Span(start, end)


@given(SPANS)
def test_highlights_cover_the_same_characters_sorted_and_without_overlap(spans: list[Span]) -> None:
    merged = highlight_spans(spans)
    assert [i for span in merged for i in range(span.start, span.end)] == sorted(
        {i for span in spans for i in range(span.start, span.end)}
    )


@given(SPANS)
def test_highlights_break_only_where_no_span_crosses(spans: list[Span]) -> None:
    ends = {span.end for span in highlight_spans(spans)}
    expected = {span.end for span in spans if not any(other.start < span.end < other.end for other in spans)}
    assert ends == expected


def test_overlapping_highlights_merge_and_touching_ones_stay_apart() -> None:
    spans = [Span(8, 10), Span(0, 3), Span(3, 5), Span(9, 12), Span(8, 9)]
    assert highlight_spans(spans) == (Span(0, 3), Span(3, 5), Span(8, 12))
