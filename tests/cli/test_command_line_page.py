"""``docs/command-line.md`` is what the parser says of itself."""

from __future__ import annotations

from pathlib import Path

from relational_tensat.base.option import options_in
from relational_tensat.cli.command_line_page import command_line_page
from relational_tensat.run.options import Options

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_page_is_that_of_these_commands() -> None:
    """If not: ``python -m relational_tensat.cli.command_line_page > docs/command-line.md``."""
    assert PAGE.read_text(encoding="utf-8") == command_line_page()


def test_every_option_of_a_run_stands_on_the_page() -> None:
    page = command_line_page()
    for _, option in options_in(Options):
        assert (f"`{option.text_name}=" if option.about.is_rare else f"`{option.flag}") in page
