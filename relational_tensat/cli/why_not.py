"""``explain DB --why-not RULE``: how far a rule's pattern got."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError

if TYPE_CHECKING:
    from relational_tensat.rules.model import Rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of ``explain`` that are about a rule which did not fire."""
    parser.add_argument(
        "--why-not", metavar="RULE", dest="why_not",
        help="show how far this rule's pattern got, and which condition rejected it",
    )  # fmt: skip
    parser.add_argument(
        "--at", default="", metavar="TENSOR",
        help="with --why-not: only where the rule would replace this tensor of the model",
    )  # fmt: skip
    parser.add_argument(
        "--rules", type=Path, action="append", default=[], metavar="PATH",
        help="with --why-not: a rule file or folder to take the rule from (repeatable) "
        "[the run's own rules, then those that ship]",
    )  # fmt: skip


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse flags that mean nothing without ``--why-not``.

    Raises:
        UsageError: one of them is given.
    """
    for flag, value in (("--at", args.at), ("--rules", args.rules)):
        if value and args.why_not is None:
            raise UsageError(f"{flag} needs --why-not RULE")


def execute(args: argparse.Namespace) -> int:
    """Print how far the rule got."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.cli.explain_text import print_why_not
    from relational_tensat.explain.why_not.funnel import why_not

    database = RunDatabase(args.db)
    try:
        answers = why_not(database.connection, args.why_not, args.at, _rules(args.rules))
    finally:
        database.close()
    if args.json:
        document = [answer.to_json() for answer in answers]
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    console = stdout_console()
    for index, answer in enumerate(answers):
        if index:
            console.print()
        print_why_not(answer, console)
    return 0


def _rules(paths: list[Path]) -> list[Rule] | None:
    from relational_tensat.rules.library import load_rules

    return load_rules(paths) if paths else None
