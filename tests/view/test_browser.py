"""The page in a real browser: headless Chromium, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import duckdb
import pytest

from relational_tensat.view import collect, write_page
from tests.view.runs import HOSTILE, stored_run

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


class Tab:
    """A page that is open, and all that went wrong in it."""

    def __init__(self, browser: Any, address: str, width: int = 1280) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.troubles: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self._note(request.url, address))
        self.page.goto(address)

    def _note(self, url: str, address: str) -> None:
        if url.partition("#")[0] != address.partition("#")[0]:
            self.troubles.append(url)


def report(name: str, folder: Path) -> str:
    """Return the address of the page of a run."""
    path = folder / f"{name}.html"
    with duckdb.connect(str(stored_run(name)), read_only=True) as connection:
        write_page(collect(connection), path)
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_change_is_drawn(browser: Any, tmp_path: Path, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls", tmp_path), width)
    page = tab.page
    if width < 700:
        page.get_by_role("button", name="both").click()
    assert page.locator(".before .node.gone").count() == 4
    assert page.locator(".after .node.changed").count() == 1
    page.locator(".before .node.gone").first.click()
    assert "matmul" in page.locator(".details").inner_text()
    page.get_by_role("button", name="cost", exact=True).click()
    assert page.locator(".node.by-cost").count() > 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_film_runs_forth_and_back(browser: Any, tmp_path: Path, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls", tmp_path) + "#step=1", width)
    page = tab.page
    first = page.locator(".about h2").inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash === '#step=2'")
    assert page.locator(".about h2").inner_text().startswith("2. ")
    page.get_by_label("step before").click()
    assert page.locator(".about h2").inner_text() == first
    assert page.locator(".panel").count() == 2
    assert page.locator(".chain .plot svg").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_search_is_plotted(browser: Any, tmp_path: Path, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls", tmp_path), width)
    page = tab.page
    page.get_by_role("link", name="The search").click()
    page.get_by_role("button", name="matches").click()
    assert page.locator(".rules tbody tr").count() >= 2
    assert page.locator("figure svg").count() >= 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


def test_hostile_names_do_not_run(browser: Any, tmp_path: Path) -> None:
    tab = Tab(browser, report("hostile", tmp_path))
    page = tab.page
    page.locator(".before .node").nth(1).click()
    assert HOSTILE[3] in page.locator(".details").inner_text()
    assert page.title().endswith("relational_tensat")
    assert page.locator("img, main script").count() == 0
    assert tab.troubles == []
