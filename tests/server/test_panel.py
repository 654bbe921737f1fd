"""The panel in Debian's Chromium, on the demonstration's engine: a full run, a comment in its middle, cancel, history, export,
reload during a run, the keyboard alone; no other host is asked, no policy is broken, axe finds nothing serious.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.browser import Seen, chromium, page_of
from tests.server.conftest import Served, serving

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "bench" / "cases" / "exertional-chest-pressure.txt").read_text()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("demo"), with_keys=False, delay=0.15) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def seen(demo: Served, browser: Any) -> Iterator[Seen]:
    """A page of the panel; what it asked of other hosts and said on the console is judged at the end."""
    with page_of(browser, demo.url) as found:
        found.page.set_default_timeout(60_000)
        found.page.goto("/")
        found.page.wait_for_selector("h2:has-text('New case')")
        yield found
        assert found.hosts == {demo.url.removeprefix("http://")}
        assert found.errors == []


def begin(page: Any, method: str, text: str = TEXT, *, pause: bool = False) -> str:
    """Fill in a case and start; returns the run's id."""
    page.get_by_label("Case text").fill(text)
    page.get_by_label("Method", exact=True).select_option(method)
    page.get_by_label("Pause after each round").set_checked(pause)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/#run/*")
    return str(page.url.rpartition("/")[2])


def result(page: Any) -> None:
    page.wait_for_selector("h2:has-text('Result')")


def test_a_case_is_split_corrected_run_and_shown_with_its_evidence_and_heat_maps(seen: Seen, demo: Served) -> None:
    page = seen.page
    page.get_by_label("Case text").fill(TEXT)
    page.get_by_role("button", name="Split into sections").click()
    page.wait_for_selector(".section-box")
    whole = "".join(box.input_value() for box in page.locator(".section-box textarea").all())
    assert sorted("".join(whole.split())) == sorted("".join(TEXT.split()))
    other, history = page.get_by_label("Other", exact=True), page.get_by_label("Medical history", exact=True)
    moved = other.input_value()
    page.get_by_label("Move the selection of Other to").select_option("medical_history")
    assert other.input_value() == ""
    assert moved in history.input_value()
    page.get_by_label("Method", exact=True).select_option("counterfactual")
    page.get_by_role("button", name="Start", exact=True).click()
    result(page)
    run = page.url.rpartition("/")[2]
    with demo.http(None) as http:
        found = http.get(f"/ddx/v1/runs/{run}").json()
    assert moved.splitlines()[0] in found["cases"][0]["text"].partition("Medical history:")[2]
    entries = found["results"][0]["differential"]
    assert page.locator("ol.ranking h4 > bdi").all_text_contents() == [entry["diagnosis"] for entry in entries]
    marked = "".join(page.locator(".case-text mark").all_text_contents())
    assert entries[0]["evidence"][0]["quote"][:20] in marked
    page.get_by_label("Mark", exact=True).select_option("heat:0")
    assert page.locator(".case-text .tag").count() > 0
    shown = page.evaluate(
        "[...document.querySelector('.case-text').childNodes].filter(n => !n.classList?.contains('tag'))"
        ".map(n => n.textContent).join('')"
    )
    assert shown == found["cases"][0]["text"]


def test_rounds_appear_as_they_finish_with_a_column_for_each_role(seen: Seen) -> None:
    page = seen.page
    begin(page, "scot")
    page.wait_for_selector(".round:nth-of-type(2) .card")
    assert page.locator("h2").text_content() == "Run"
    result(page)
    page.locator("summary:has-text('Rounds')").click()
    last = page.locator(".round", has_text="Vote")
    assert last.locator(".card").count() == 5
    assert last.locator("h5").first.is_visible()


def test_a_doctor_pauses_comments_and_lets_the_run_go_on(seen: Seen) -> None:
    page = seen.page
    begin(page, "scot", pause=True)
    page.get_by_text("Waiting after round 1").wait_for()
    page.get_by_label("Comment", exact=True).fill("Consider the ferritin.")
    page.get_by_label("Your name or role").fill("Dr Y")
    page.get_by_role("button", name="Add the comment").click()
    page.get_by_text("Consider the ferritin.").wait_for()
    page.get_by_role("button", name="Go on", exact=True).click()
    page.get_by_text("Waiting after round 2").wait_for()
    page.reload()
    page.get_by_text("Waiting after round 2").wait_for()
    page.get_by_role("button", name="Go on without pauses").click()
    result(page)
    assert "Dr Y" in page.locator("section", has_text="Comments").last.text_content()


def test_a_run_goes_on_while_its_page_is_loaded_again_and_can_be_cancelled(seen: Seen, demo: Served) -> None:
    page = seen.page
    run = begin(page, "scot")
    page.wait_for_selector(".card")
    page.reload()
    page.wait_for_selector(".card")
    page.get_by_role("button", name="Cancel the run").click()
    page.wait_for_selector("h2:has-text('cancelled')")
    assert "was cancelled" in page.locator(".result").text_content()
    assert demo.store.find(run).status == "cancelled"


def test_history_lists_opens_exports_and_deletes(seen: Seen) -> None:
    page = seen.page
    run = begin(page, "zero-shot")
    result(page)
    page.get_by_role("link", name="History").click()
    row = page.locator("tr", has_text=run)
    row.wait_for()
    for ending in ("HTML", "JSON"):
        with page.expect_download() as download:
            row.get_by_role("link", name=ending).click()
        text = Path(download.value.path()).read_text()
        assert TEXT[:40] in text
        assert download.value.suggested_filename == f"ddx-local-{run}.{ending.lower()}"
        if ending == "JSON":
            assert json.loads(text)["run_id"] == run
    row.get_by_role("link", name=run, exact=True).click()
    result(page)
    page.get_by_role("button", name="Summarise with the model").click()
    page.get_by_text("Summary by the model").wait_for()
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Summarise the last 10").click()
    page.get_by_text("Summary by the model").wait_for()
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")


def test_a_result_is_deleted_at_the_second_press(seen: Seen, demo: Served) -> None:
    page = seen.page
    run = begin(page, "zero-shot")
    result(page)
    page.get_by_role("button", name="Delete the run").click()
    with demo.http(None) as http:
        assert http.get(f"/ddx/v1/runs/{run}").status_code == 200
        page.get_by_role("button", name="Delete for good?").click()
        page.wait_for_url("**/#history")
        page.wait_for_selector("h2:has-text('History')")
        assert http.get(f"/ddx/v1/runs/{run}").status_code == 404
    assert page.get_by_role("link", name=run, exact=True).count() == 0


def test_the_keyboard_alone_is_enough(seen: Seen) -> None:
    page = seen.page

    def to(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            here = page.evaluate(
                "(document.activeElement.labels?.[0]?.textContent || document.activeElement.textContent || '')"
            )
            if here.startswith(name):
                return
        raise AssertionError(f"the keyboard does not reach {name}")

    to("Case text")
    page.keyboard.insert_text(TEXT)
    to("Method")
    page.keyboard.type("zero")
    to("Start")
    page.keyboard.press("Enter")
    result(page)
    to("Export as HTML")
    to("History")
    page.keyboard.press("Enter")
    page.wait_for_selector("table")


def test_nothing_that_is_said_becomes_markup(seen: Seen) -> None:
    page = seen.page
    begin(page, "zero-shot", f"<img src=x onerror=alert(1)><script>alert(2)</script> {TEXT} 😀 é")
    result(page)
    assert page.locator("#main img").count() == 0
    assert "<img src=x onerror=alert(1)>" in page.locator(".case-text").text_content()
    marks = page.locator(".case-text mark").all_text_contents()
    quotes = page.locator("ul.quotes q").all_text_contents()
    assert "".join(marks)[:10] in "".join(quotes) or marks == []


def test_axe_finds_nothing_serious_and_no_text_is_small(demo: Served, browser: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for width, scheme in ((1280, "light"), (420, "light"), (1280, "dark")):
        with page_of(browser, demo.url, width, color_scheme=scheme, bypass_csp=True) as seen:
            page = seen.page
            page.set_default_timeout(60_000)
            page.goto("/")
            page.wait_for_selector("h2:has-text('New case')")
            page.get_by_label("Case text").fill(TEXT)
            page.get_by_role("button", name="Split into sections").click()
            page.wait_for_selector(".section-box")
            _judge(page, Axe())
            page.get_by_label("Method", exact=True).select_option("counterfactual")
            page.get_by_role("button", name="Start", exact=True).click()
            result(page)
            page.locator("summary:has-text('Rounds')").click()
            _judge(page, Axe())
            page.get_by_role("link", name="History").click()
            page.wait_for_selector("table")
            _judge(page, Axe())


def _judge(page: Any, axe: Any) -> None:
    found = axe.run(page).response["violations"]
    grave = [item for item in found if item["impact"] in ("serious", "critical")]
    serious = [(item["id"], [node["html"][:150] for node in item["nodes"][:3]]) for item in grave]
    assert serious == []
    small = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.offsetParent && e.textContent.trim() && "
        "parseFloat(getComputedStyle(e).fontSize) < 14).map(e => e.tagName + e.className)"
    )
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
