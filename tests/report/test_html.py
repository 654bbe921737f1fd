"""The report is one file that nothing can break out of, legible to all, and it says everything that the documents say."""

import copy
import re
from collections.abc import Iterable
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddx_local.case import Case
from ddx_local.report.html import POLICY, report
from tests.report import documents
from tests.report.documents import CASE_ID, STENOSIS, TEXT, made_by_hand
from tests.report.page import Element, read
from tests.report.scripted_runs import documents_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "&lt;b&gt; & &amp; &#x3c;script&#x3e;",
    "<!-- -->]]><![CDATA[",
    "javascript:alert(1) http://example.org/?a=1&b=2",
    "חולה עם כאב \u202eabc\u202c ⁧x⁩",
    "😀👩‍⚕️ \x00\x1b[31m\x7f\x9b\ud800 end",
    "</div></body></html>",
    "two\r\nlines\rand\ttabs",
)
ALLOWED_TAGS = set(
    "html head meta title style body header main nav article section footer div p span strong b br bdi mark details summary "
    "h1 h2 h3 h4 ul ol li dl dt dd table thead tbody tfoot tr th td a".split()
)
ALLOWED_ATTRIBUTES = set(
    "lang charset http-equiv content name class id style href role tabindex scope open dir aria-label aria-labelledby "
    "aria-hidden".split()
)


def page(*found: Any, **texts: str) -> Element:
    return read(report(found, texts or {CASE_ID: TEXT}))


def flat(element: Element) -> str:
    return " ".join(element.text().split())


def with_texts(value: Any, texts: Iterable[str]) -> Any:
    """A document in which every text that somebody wrote is another; what names a kind, a number or a place stays."""
    source = iter(texts)
    fixed = {"urgency", "status", "schema", "created_at", "score_kind", "at"}

    def swap(item: Any, key: str = "") -> Any:
        if isinstance(item, dict):
            return {
                swap(name) if key in ("votes", "stances") else name: swap(part, name) for name, part in item.items()
            }
        if isinstance(item, list):
            return [swap(part, key) for part in item]
        return next(source) if isinstance(item, str) and key not in fixed else item

    return swap(copy.deepcopy(value))


def check_harmless(root: Element) -> None:
    for element in root.all():
        assert element.tag in ALLOWED_TAGS
        assert set(element.attributes) <= ALLOWED_ATTRIBUTES
        assert not element.attributes.get("href") or re.fullmatch(r"#case-\d+", element.attributes["href"] or "")
        assert not element.attributes.get("style") or re.fullmatch(r"width:[\d.]+%", element.attributes["style"] or "")


hostile = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30)).filter(bool)


@settings(max_examples=25, deadline=None)
@given(st.lists(hostile, min_size=1, max_size=12), st.lists(hostile, max_size=20).map("".join))
def test_no_text_of_a_document_becomes_markup(texts: list[str], case: str) -> None:
    document = with_texts(made_by_hand(), (texts[place % len(texts)] for place in range(10_000)))
    root = page(document, **{document["case_id"]: case})
    check_harmless(root)
    assert root.all()[0].tag == "html"
    whole = root.text()
    said = [document["trace"]["conclusion"], document["differential"][0]["reasoning"], document["notes"][0]["detail"]]
    for text in said:
        assert re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text) in whole


@settings(max_examples=25, deadline=None)
@given(st.lists(hostile, min_size=1, max_size=30).map("".join), st.data())
def test_the_case_text_is_shown_whole_whatever_overlaps_in_it(case: str, data: st.DataObject) -> None:
    place = st.integers(0, len(case))
    found = made_by_hand()
    for entry in found["differential"]:
        for item in entry["evidence"]:
            start, end = sorted((data.draw(place), data.draw(place)))
            item |= {"start": start, "end": end, "quote": case[start:end] or "x"}
    for item in found["counterfactuals"]:
        for patch in item["patches"]:
            patch["start"], patch["end"] = sorted((data.draw(place), data.draw(place)))
    shown = page(found, **{CASE_ID: case}).by_class("case")
    assert len(shown) == 4  # the evidence, and a heat map for each of three candidates
    clean = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", case)
    assert [element.text(skip="tag") for element in shown] == [clean] * 4


def test_the_file_is_self_contained() -> None:
    html = report([made_by_hand()], {CASE_ID: TEXT})
    for word in (
        "http:",
        "https:",
        "//",
        "src=",
        "url(",
        "@import",
        "<script",
        "<link",
        "<iframe",
        "<img",
        "javascript",
    ):
        assert word not in html
    root = read(html)
    (policy,) = [item for item in root.by_tag("meta") if item.attributes.get("http-equiv")]
    assert policy.attributes == {"http-equiv": "Content-Security-Policy", "content": POLICY}
    assert POLICY == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_has_a_language_a_title_without_clinical_text_and_one_first_heading() -> None:
    root = page(made_by_hand())
    assert root.by_tag("html")[0].attributes == {"lang": "en"}
    assert root.by_tag("title")[0].text() == "ddx-local report: one case, run 20260301-101500-0badcafe"
    assert len(root.by_tag("h1")) == 1
    levels = [
        int(element.tag[1]) for element in root.all(lambda element: re.fullmatch("h[1-6]", element.tag) is not None)
    ]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    assert all(element.attributes.get("tabindex") == "0" for element in root.by_class("scroll"))


def test_a_lone_surrogate_leaves_a_report_that_is_utf_8() -> None:
    report([made_by_hand()], {CASE_ID: TEXT + "\ud800"}).encode()


# --- what it says -------------------------------------------------------------------------------------------------------


def test_the_differential_says_scores_votes_positions_and_evidence_with_who_gave_it() -> None:
    first = page(made_by_hand()).by_class("entry")[0]
    said = flat(first)
    assert said.startswith(f"1{STENOSIS}critical0.71")
    assert (
        "1st by 3 of 5 (cardiologist, general internal medicine doctor, cardiothoracic surgeon); 2nd by 1 of 5" in said
    )
    assert "+3 support (cardiologist" in said
    assert "−1 challenge (clinical laboratory scientist); =1 neutral (hematologist)" in said
    assert f"+ for “{documents.PULSE}” cardiologist, cardiothoracic surgeon" in said
    assert f"− against “{documents.TROPONIN}” clinical laboratory scientist" in said


def test_evidence_in_the_case_says_its_side_and_its_diagnoses_also_without_colour() -> None:
    case = page(made_by_hand()).by_class("case")[0]
    marks = [(element.text(), element.classes) for element in case.all(lambda item: item.tag in ("mark", "span"))]
    at = marks.index((documents.MURMUR, ["both"]))
    assert marks[at + 1] == ("+1 −2", ["tag", "both"])
    at = marks.index((documents.REST, ["for"]))
    assert marks[at - 1 : at + 2] == [
        (documents.PRESSURE.removesuffix(documents.REST), ["for"]),
        (documents.REST, ["for"]),
        ("+1 +2", ["tag", "for"]),
    ]


def test_a_heat_map_gives_each_piece_its_gap_its_strength_and_what_is_noise() -> None:
    root = page(made_by_hand())
    stenosis, coronary, _ = root.by_class("case")[1:]
    marks = {element.text(): element.classes for element in stenosis.by_tag("mark")}
    assert marks[documents.PULSE] == ["for", "primary"]
    assert marks[documents.SECOND_SOUND] == ["for", "supporting"]
    assert marks[documents.FAINT] == ["for", "weak"]
    assert marks[documents.ANEMIA] == ["none"]
    assert [tag.text() for tag in stenosis.by_class("tag")] == [
        "+0.04",
        "+0.34",
        "+0.28",
        "+0.23",
        "+0.13",
        "−0.01 noise",
    ]
    assert "if inserted: “rising to 120 ng/L” −0.16" in [tag.text() for tag in coronary.by_class("tag")]
    assert {element.text(): element.classes for element in coronary.by_tag("mark")}[documents.MURMUR] == [
        "against",
        "primary",
    ]


def test_the_table_gives_gap_probabilities_noise_and_operation_and_says_what_was_not_tested() -> None:
    (effects,) = page(made_by_hand()).by_class("effects")
    rows = [[flat(cell) for cell in row.all(lambda item: item.tag in ("th", "td"))] for row in effects.by_tag("tr")]
    assert rows[0] == ["Finding", STENOSIS, documents.CORONARY, documents.CARDIOMYOPATHY]
    assert rows[2] == [
        f"“{documents.MURMUR}”",
        "+0.280.71 → 0.43remove, noise 0.02",
        "−0.240.22 → 0.46remove, noise 0.02",
        "not tested",
    ]
    assert "−0.010.71 → 0.72replace, below noise 0.02" in rows[-1]


def test_all_edits_are_listed_also_those_that_changed_too_much() -> None:
    root = page(made_by_hand())
    (edits,) = root.by_class("edits")
    assert len(edits.by_tag("tr")) == 1 + len(made_by_hand()["counterfactuals"])
    assert "left out, it changes too much" in flat(edits)


@pytest.mark.parametrize(
    "said",
    [
        "Degraded: stance: the reports were left out of the record of two roles",
        "round 1: 2 edits left out",
        "Named outside of the list Heyde syndrome",
        "What would change it A normal valve on echocardiography",
        "Please weigh the anemia too. (after round 2, supervisor)",
        "Acute coronary syndrome Exertional pressure",
        "urgent No effort and no nitrates; echocardiogram today (cardiologist)",
        "report + edit 20 14,210 3,904 2,610 41.8",
        "5 rounds 60 51,524 13,973 4,605 103.1",
        "Seed 7",
        f"Fingerprint: weights_sha256 {'9f2c' * 16}",
        "ddx-local 0.1.0",
        "without=none",
        "Not a diagnosis. Decision support for professionals and research, not a medical device",
    ],
)
def test_nothing_of_the_document_is_left_out(said: str) -> None:
    assert said.replace(" ", "") in flat(page(made_by_hand())).replace(" ", "")


@pytest.mark.parametrize("method", ["scot", "zero-shot", "counterfactual"])
def test_any_method_has_a_report(method: str) -> None:
    (document,) = documents_of(method, (Case(CASE_ID, TEXT),))
    assert document["status"] == "finished"
    root = page(document)
    check_harmless(root)
    said = flat(root)
    for entry in document["differential"]:
        assert " ".join(entry["diagnosis"].split()) in said
    maps = len(root.by_class("case")) - 1
    tested = {item["diagnosis"] for item in document["counterfactuals"] if item["kept"]}
    assert maps == len(tested)
    assert bool(document["counterfactuals"]) == (method == "counterfactual")
    for item in document["cant_miss"] + document["triage"] + document["notes"]:
        assert " ".join(item.get("diagnosis", item.get("finding", item.get("detail"))).split()) in said


def test_several_cases_have_a_table_of_contents_that_leads_to_each() -> None:
    other = made_by_hand() | {
        "case_id": "b",
        "differential": [],
        "status": "failed",
        "counterfactuals": [],
        "trace": None,
    }
    other["error"] = {"kind": "LengthStop", "message": "the answer was cut", "hint": "Give more room."}
    root = page(made_by_hand(), other, **{CASE_ID: TEXT, "b": "Short."})
    assert root.by_tag("title")[0].text().startswith("ddx-local report: 2 cases")
    links = root.by_tag("nav")[0].by_tag("a")
    articles = {f"#{element.attributes['id']}": flat(element) for element in root.by_tag("article")}
    assert [articles[link.attributes["href"] or ""].split(" ")[0].startswith(link.text()) for link in links] == [
        True,
        True,
    ]
    assert "This case failed (LengthStop): the answer was cut. Give more room." in articles["#case-2"]
    assert page(made_by_hand()).by_tag("nav") == []


def test_a_cancelled_case_says_so() -> None:
    document = made_by_hand() | {"status": "cancelled", "differential": [], "counterfactuals": [], "trace": None}
    assert "This case was not finished" in flat(page(document))


def test_a_case_without_its_text_is_an_error_and_not_an_empty_report() -> None:
    with pytest.raises(KeyError):
        report([made_by_hand()], {})


# --- the style sheet ----------------------------------------------------------------------------------------------------

CSS = resources.files("ddx_local.report").joinpath("style.css").read_text("utf-8")


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


LIGHT, DARK = (colours(block) for block in re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL))
PAIRS = [
    *((ink, paper) for ink in ("ink", "quiet", "accent") for paper in ("page", "sheet")),
    *(("ink", f"{side}-{strength}") for side in ("for", "against") for strength in (1, 2, 3)),
    *(("ink", paper) for paper in ("both-1", "alarm-1", "care-1")),
    *((side, paper) for side in ("for", "against") for paper in ("sheet", f"{side}-1")),
    *(("quiet", paper) for paper in ("for-1", "against-1")),
    ("both", "sheet"),
    ("alarm", "alarm-1"),
    ("alarm", "sheet"),
]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "paper"), PAIRS)
def test_text_has_the_contrast_of_wcag_aa(scheme: dict[str, str], ink: str, paper: str) -> None:
    assert contrast(scheme[ink], scheme[paper]) >= 4.5


def test_the_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_no_text_is_smaller_than_14_pixels() -> None:
    roots = [float(size) for size in re.findall(r"html \{ font(?:-size)?: ([\d.]+)px", CSS)]
    assert len(roots) == 3  # a wide screen, a narrow one, paper
    sizes = re.findall(r"font-size: ([^;]+);", CSS)
    assert all(size.endswith(("rem", "px")) for size in sizes)
    relative = [float(size.removesuffix("rem")) for size in sizes if size.endswith("rem")]
    assert relative
    assert min(roots) * min(relative) >= 14


def test_the_style_sheet_asks_for_nothing_and_cannot_end_its_element() -> None:
    assert not re.search(r"url\(|@import|<|image-set", CSS)


def test_marks_differ_by_their_underline_and_not_by_colour_alone() -> None:
    lines = {side: re.search(rf"mark\.{side} \{{[^}}]*\}}", CSS) for side in ("for", "against", "both", "none")}
    kinds = {side: re.findall(r"dashed|double|dotted", found[0]) for side, found in lines.items() if found}
    assert kinds == {"for": [], "against": ["dashed"], "both": ["double"], "none": ["dotted"]}
