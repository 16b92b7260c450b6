"""The page in a real browser: headless Chromium, where it is installed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import cache
from shutil import which
from typing import Any

import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.cli.database import RunDatabase
from relational_tensat.view import RunPage, collect, write_page
from relational_tensat.view.server import Server
from tests.tiers import nightly
from tests.view.questions import MOST_CLICKS, Stranger
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


@cache
def report(name: str) -> str:
    """Return the address of the page of a run, which is written once."""
    path = stored_run(name).with_suffix(".html")
    with open_database(stored_run(name)) as connection:
        write_page(collect(connection), path)
    return path.as_uri()


def holes(page: Any) -> list[Any]:
    """Return rows of charts that leave a part of their width empty."""
    found: list[Any] = page.evaluate("""() =>
        [...document.querySelectorAll(".charts")].flatMap((charts) => {
          const right = charts.getBoundingClientRect().right;
          const ends = new Map();
          for (const chart of charts.children) {
            const box = chart.getBoundingClientRect();
            ends.set(box.top, Math.max(ends.get(box.top) ?? 0, box.right));
          }
          return [...ends.values()].filter((end) => end < right - 2);
        })""")
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_the_change_is_drawn(browser: Any, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls"), width)
    page = tab.page
    if width < 700:
        page.get_by_role("button", name="both").click()
    assert page.locator(".before .node.gone").count() == 4
    assert page.locator(".after .node.changed").count() == 1
    page.locator(".before .node.gone").first.click()
    page.locator(".details", has_text="matmul").wait_for()
    page.get_by_role("button", name="cost", exact=True).click()
    assert page.locator(".node.by-cost").count() > 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, nightly(390)])
def test_the_film_runs_forth_and_back(browser: Any, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls") + "#step=1", width)
    page = tab.page
    first = page.locator(".about h2").inner_text()
    page.keyboard.press("ArrowRight")
    page.locator(".about h2", has_text="2. ").wait_for()
    assert page.url.endswith("#step=2")
    page.get_by_label("step before").click()
    page.locator(".about h2", has_text=first).wait_for()
    assert page.locator(".panel").count() == 2
    assert page.locator(".chain .plot svg").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, nightly(390)])
def test_the_search_is_plotted(browser: Any, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls"), width)
    page = tab.page
    page.get_by_role("link", name="The search").click()
    page.get_by_role("button", name="matches").click()
    assert page.locator(".rules tbody tr").count() >= 2
    assert page.locator("figure svg").count() >= 4
    assert holes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, nightly(390)])
def test_a_class_is_found_and_its_neighbourhood_grows(browser: Any, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls"), width)
    page = tab.page
    page.get_by_role("link", name="The e-graph").click()
    page.get_by_role("searchbox").fill("matmul merge")
    page.locator(".hits a").first.click()
    number = page.evaluate("location.hash.split('=')[1]")
    page.wait_for_selector(f".eclass[data-class='{number}'] .class.centre")
    assert page.locator(".enodes tbody tr").count() >= 1
    before = page.locator(".neighbourhood .class").count()
    page.locator(".neighbourhood .class:not(.centre) rect").first.click()
    page.locator(".neighbourhood .class").nth(before).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, nightly(390)])
def test_examples_are_answered_and_plotted(browser: Any, width: int) -> None:
    tab = Tab(browser, report("shared_matmuls"), width)
    page = tab.page
    page.wait_for_selector(".panel .node")
    page.keyboard.press("5")
    page.get_by_role("button", name="How the e-graph grew").click()
    assert "iteration_log" in page.locator("pre.query").inner_text()
    assert page.locator("textarea").count() == 0  # nothing here would answer
    page.get_by_label("as a plot").check()
    page.wait_for_selector("figure svg rect")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, nightly(390)])
def test_kernels_are_drawn_beside_what_they_replace(browser: Any, width: int) -> None:
    tab = Tab(browser, report("gated") + "#kernels", width)
    page = tab.page
    page.wait_for_selector(".kernel .mu.kernel .mu.load")
    assert page.locator(".beside .node.gone").count() >= 2
    assert page.locator(".kernel table").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.troubles == []


@pytest.mark.nightly
def test_the_search_tree_is_drawn(browser: Any) -> None:
    tab = Tab(browser, report("tree") + "#search")
    page = tab.page
    page.wait_for_selector(".tree .class.centre")
    assert page.locator(".tree .class.needed").count() == 1
    assert page.locator(".tree .class").count() > 2
    assert tab.troubles == []


def test_a_rule_says_why_it_was_not_used(browser: Any) -> None:
    tab = Tab(browser, report("shared_matmuls") + "#search")
    page = tab.page
    page.get_by_label("find a rule").fill("conv")
    page.locator(".rules button.plain").first.click()
    assert "never matched" in page.locator(".opened").inner_text()
    assert tab.troubles == []


@pytest.mark.nightly
def test_a_strangers_questions_are_answered_within_three_clicks(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    stranger = Stranger(page, report("transposed"))
    clicks = []

    def answer(text: str) -> str:
        clicks.append(stranger.clicks)
        return text

    changed = answer(stranger.what_changed())
    assert re.search(r"transpose\s+2\s+0\s+−2", changed)
    gone = answer(stranger.why_is_it_gone("transpose"))
    assert "transpose" in gone.splitlines()[0]
    assert "checked to be one application of its rule" in gone
    assert answer(stranger.which_rule_saved_most()).split()[-1].isdecimal()
    assert "never matched" in answer(stranger.why_was_it_not_used("conv"))
    assert "✓ chosen" in answer(stranger.what_else_is_equal("matmul"))
    assert "match" in answer(stranger.where_did_the_time_go())
    assert clicks == [0, 2, 1, 2, 2, 1]
    assert max(clicks) <= MOST_CLICKS


def test_operators_are_reached_by_the_keyboard(browser: Any) -> None:
    tab = Tab(browser, report("shared_matmuls"))
    page = tab.page
    page.locator(".panels").focus()
    page.keyboard.press("ArrowDown")
    first = page.locator(".details").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator(".details").inner_text() != first
    page.keyboard.press("ArrowUp")
    assert page.locator(".details").inner_text() == first
    page.keyboard.press("Escape")
    assert "Point at an operator" in page.locator(".details").inner_text()
    assert tab.troubles == []


def test_operators_are_found_by_name(browser: Any) -> None:
    tab = Tab(browser, report("shared_matmuls"))
    page = tab.page
    box = page.get_by_label("find an operator or a value")
    box.fill("MatMul")
    found = page.locator(".before .node.found")
    found.first.wait_for()
    count = found.count()
    assert count > 1
    page.get_by_role("button", name="next").click()
    assert page.get_by_role("status").inner_text().startswith("1 of ")
    assert "matmul" in page.locator(".details").inner_text()
    page.get_by_role("button", name="previous").click()
    said = page.get_by_role("status").inner_text().split()
    assert said[0] == said[2]  # the last one
    box.fill("no such name")
    page.locator(".found-count", has_text="no operator").wait_for()
    assert found.count() == 0
    assert tab.troubles == []


def test_the_served_page_asks_its_database(browser: Any) -> None:
    database = RunDatabase(stored_run("shared_matmuls"))
    with Server(database.connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        tab = Tab(browser, server.address)
        page = tab.page
        page.get_by_role("link", name="The e-graph").click()
        page.wait_for_selector(".class.centre")
        page.get_by_role("link", name="Ask").click()
        page.locator("textarea").fill("SELECT count(*) AS amount FROM enode")
        page.get_by_role("button", name="run").click()
        page.wait_for_selector("th:has-text('amount')")
        page.locator("textarea").fill("DELETE FROM enode")
        page.get_by_role("button", name="run").click()
        assert "read-only" in page.get_by_role("alert").inner_text()
        server.shutdown()
        thread.join()
    database.close()
    foreign = [text for text in tab.troubles if not text.startswith(server.address.rstrip("/"))]
    assert all("400" in text for text in foreign)


@pytest.mark.nightly
def test_a_notebooks_frame_can_be_walked_through(browser: Any) -> None:
    with open_database(stored_run("shared_matmuls")) as connection:
        shown = RunPage(collect(connection))._repr_html_()
    page = browser.new_page()
    page.set_content(f"<title>notebook</title>{shown}")
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="The steps").click()
    frame.get_by_label("next step").click()
    frame.locator(".about h2", has_text="2. ").wait_for()
    frame.get_by_role("link", name="The e-graph").click()
    frame.locator(".class.centre").wait_for()
    assert page.title() == "notebook"


def test_hostile_names_do_not_run(browser: Any) -> None:
    tab = Tab(browser, report("hostile"))
    page = tab.page
    page.locator(".before .node").nth(1).click()
    assert HOSTILE[3] in page.locator(".details").inner_text()
    assert page.title().endswith("relational_tensat")
    page.get_by_role("link", name="The e-graph").click()
    page.locator(".hits a").nth(1).click()
    page.wait_for_selector(".class.centre")
    page.get_by_role("link", name="Ask").click()
    page.get_by_role("button", name="The classes with most forms").click()
    assert page.locator("img, main script").count() == 0
    assert page.title().endswith("relational_tensat")
    assert tab.troubles == []
