"""Debian's Chromium under Playwright: one for a module's tests, and what a page said, asked for and tripped over."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
]

_VIOLATIONS = "document.addEventListener('securitypolicyviolation', e => console.error('CSP: ' + e.blockedURI + e.violatedDirective))"


@dataclass
class Seen:
    """What a page did."""

    page: Any
    hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; without one a test is skipped, and in CI it fails."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "no Chromium is installed (Debian: chromium)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, headless=True, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Any, url: str, width: int = 1280, **more: Any) -> Iterator[Seen]:
    """A page that is not open yet; what it says on the console as an error is kept."""
    context = browser.new_context(viewport={"width": width, "height": 900}, base_url=url, accept_downloads=True, **more)
    seen = Seen(context.new_page())
    seen.page.add_init_script(_VIOLATIONS)
    seen.page.set_default_timeout(20_000)
    seen.page.on("request", lambda request: seen.hosts.add(request.url.split("/")[2]))
    seen.page.on("console", lambda line: seen.errors.append(line.text) if line.type == "error" else None)
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    try:
        yield seen
    finally:
        context.close()
