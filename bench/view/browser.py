"""A browser that opens pages: how long until something is drawn, and how they look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from relational_tensat.base.errors import MissingDependencyError

#: Widths and heights of screenshots, in pixels.
SIZES = {"1280": (1280, 860), "390": (390, 844)}
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_FIRST_DRAWING_MS = "performance.getEntriesByName('drawn')[0].startTime"


@contextmanager
def browser() -> Iterator[Any]:
    """Give a headless Chromium.

    Raises:
        MissingDependencyError: it, or playwright, is not installed.
    """
    path = which("chromium") or which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingDependencyError("pip install playwright: it drives the browser") from error
    if path is None:
        raise MissingDependencyError("no Chromium is on the path, e.g. apt-get install chromium")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        yield started
        started.close()


def first_drawing_ms(started: Any, address: str, times: int = 5) -> tuple[float, float]:
    """Return what opening a page takes: to its first drawing, and of the processor's time, in ms.

    Both are medians of several; the second is of the page's own thread, also after the drawing.
    """
    drawn, busy = [], []
    for _ in range(times):
        page = started.new_page(viewport={"width": 1280, "height": 860})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(address)
        drawn.append(float(page.evaluate(_FIRST_DRAWING_MS)))
        metrics = session.send("Performance.getMetrics")["metrics"]
        busy.append(1000.0 * next(m["value"] for m in metrics if m["name"] == "TaskDuration"))
        page.close()
    return median(drawn), median(busy)


def class_shown_ms(started: Any, address: str, classes: Sequence[int]) -> float:
    """Return the milliseconds from asking for a class to seeing it: the median over classes."""
    page = started.new_page(viewport={"width": 1280, "height": 860})
    page.goto(f"{address}#class={classes[0]}")
    results = []
    for number in classes[1:]:
        page.wait_for_selector(".neighbourhood .centre")  # of the class before: all is quiet
        results.append(float(page.evaluate(_CLASS_SHOWN, number)))
    page.close()
    return median(results)


#: Goes to a class, and returns the milliseconds until its e-nodes are in the page.
_CLASS_SHOWN = """
number => new Promise(done => {
  const start = performance.now();
  const seen = () => document.querySelector(`.eclass[data-class='${number}'] .enodes`);
  const look = () => seen() ? done(performance.now() - start) : requestAnimationFrame(look);
  location.hash = `class=${number}`;
  look();
})
"""


def fluid_ms(started: Any, address: str) -> tuple[float, float, float]:
    """Return what a page with all its operators drawn takes: to draw, to scroll, to point, in milliseconds.

    The first is from asking for all of them; the others are the 95th percentile of the time between two
    frames while both graphs scroll, and the median of the time to show what is pointed at.
    """
    page = started.new_page(viewport={"width": 1280, "height": 860})
    page.goto(address)
    page.wait_for_selector(".panel .node")
    results = page.evaluate(_FLUID)
    page.close()
    return results[0], results[1], results[2]


_FLUID = """
async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const start = performance.now();
  document.querySelector("input[type=checkbox]").click();
  while (document.querySelector(".fold")) await frame();
  await frame();
  const drawn = performance.now() - start;
  const panel = document.querySelector(".panel");
  const frames = [], pointed = [];
  let last = performance.now();
  for (let n = 0; n < 60; n += 1) {
    panel.scrollTop += 60;
    await frame();
    frames.push(performance.now() - last);
    last = performance.now();
  }
  const boxes = [...document.querySelectorAll(".before .node")].slice(0, 40);
  for (const box of boxes) {
    const begin = performance.now();
    box.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    await frame();
    pointed.push(performance.now() - begin);
  }
  frames.sort((a, b) => a - b);
  pointed.sort((a, b) => a - b);
  return [drawn, frames[Math.floor(0.95 * frames.length)], pointed[pointed.length >> 1]];
}
"""


def photograph(
    started: Any,
    address: str,
    path: Path,
    size: str,
    clicks: Sequence[str] = (),
    theme: str = "light",
) -> None:
    """Write a screenshot of a page after some clicks."""
    width, height = SIZES[size]
    page = started.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.goto(address)
    page.wait_for_timeout(500)
    for selector in clicks:
        page.locator(selector).first.click()
        page.wait_for_timeout(400)
    page.screenshot(path=path)
    page.close()
