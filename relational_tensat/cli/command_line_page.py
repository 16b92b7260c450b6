"""``docs/command-line.md``, made of the parser: ``python -m relational_tensat.cli.command_line_page``.

The parser of ``run`` is made of the fields of its options, so this page is, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from relational_tensat.cli.commands import build_parser

_HEAD = """# Command line

Made of the commands' own `--help`, by
`python -m relational_tensat.cli.command_line_page > docs/command-line.md`; a test compares.

From Python, `Options.of(node_limit=20_000, extractor="greedy-dag")` takes the options of `run`, and those
of `--set`. Their names are those of the flags: `-` becomes `_`, seconds end in `_s`, and `--for` is
`runs_on`. `relational-tensat schema options` prints their JSON schema.

Every command takes `--version`. With `-q` (`--quiet`) it says less, with `-v` (`--verbose`, `--details`)
more. `-q` and `-v` may stand before the command, too. `--help` after the name of a group lists its
commands.

| exit code | |
| --- | --- |
| 0 | done |
| 1 | internal error |
| 2 | usage |
| 3 | bad input |
| 4 | verification failed |
| 5 | no solution within the limits |
| 130 | interrupted |
"""


def command_line_page() -> str:
    """Return the page: a section for each command, a table for each group of its arguments."""
    return "\n".join([_HEAD, *_commands(build_parser())])


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for name, command in commands.choices.items():
        yield f"## `{name}`\n\n{_sentence(command.description or '')}\n"
        for section in command._action_groups:
            rows = [
                _row(action)
                for action in section._group_actions
                if action.help != argparse.SUPPRESS
            ]
            if rows:
                title = section.title or ""
                yield "\n".join([f"| {title} | |", "| --- | --- |", *rows, ""])


def _row(action: argparse.Action) -> str:
    """Return an argument as a row: how it is written, and what it is."""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    names = ", ".join(action.option_strings)
    shown = f"{names} {value}".strip()
    values = {**vars(action), "prog": ""}
    text = (action.help or "") % values
    first, second = (text.replace("|", "\\|").replace("\n", " ") for text in (f"`{shown}`", text))
    return f"| {first} | {second} |"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


if __name__ == "__main__":
    sys.stdout.write(command_line_page())
