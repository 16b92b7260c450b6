"""The questions that a stranger asks of a page: ``docs/how-to/look-at-a-run.md`` lists them."""

from __future__ import annotations

from typing import Any

MOST_CLICKS = 3


class Stranger:
    """Someone who has a page before them, and begins each question where it opens.

    Args:
        page: of a browser.
        address: of the page.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self._address = address
        self.clicks = 0

    def ask_anew(self) -> None:
        """Open the page again."""
        self.page.goto("about:blank")
        self.page.goto(self._address)
        self.page.wait_for_selector(".panel .node")
        self.clicks = 0

    def click(self, target: Any) -> None:
        """Click something."""
        self.clicks += 1
        target.first.click()

    def what_changed(self) -> str:
        """Return the operators that are gone or new, as the first view counts them."""
        self.ask_anew()
        changed = self.page.locator(".operators tr:not(.same)")
        return "\n".join(changed.all_inner_texts())

    def why_is_it_gone(self, op: str) -> str:
        """Return the step that took an operator of the original away, as it is told."""
        self.ask_anew()
        boxes = self.page.locator(".before .node.gone, .before .node.changed")
        self.click(boxes.filter(has=self.page.locator(f"text='{op}'")))
        self.click(self.page.locator(".details a[href^='#step']"))
        return str(self.page.locator(".about").inner_text())

    def which_rule_saved_most(self) -> str:
        """Return the first row of the table of rules."""
        self.ask_anew()
        self.click(self.page.get_by_role("link", name="The search"))
        return str(self.page.locator(".rules tbody tr").first.inner_text())

    def why_was_it_not_used(self, rule: str) -> str:
        """Return what the page says of a rule."""
        self.ask_anew()
        self.click(self.page.get_by_role("link", name="The search"))
        self.page.get_by_label("find a rule").fill(rule)
        self.click(self.page.locator(".rules button.plain"))
        self.page.wait_for_selector(".opened p:not(.law)")
        return str(self.page.locator(".opened").first.inner_text())

    def what_else_is_equal(self, op: str) -> str:
        """Return the ways to compute what an operator of the result computes."""
        self.ask_anew()
        self.click(self.page.locator(".after .node").filter(has_text=op))
        self.click(self.page.locator(".details a[href^='#class']"))
        self.page.wait_for_selector(".enodes tbody tr")
        return str(self.page.locator(".enodes tbody").inner_text())

    def where_did_the_time_go(self) -> str:
        """Return the phases, the longest first."""
        self.ask_anew()
        self.click(self.page.get_by_role("link", name="The search"))
        figure = self.page.locator("figure", has_text="Seconds by phase")
        figure.locator("svg").wait_for()
        return str(figure.inner_text())
