"""``rules``: list, show and check rewrite rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.cli.parser import Parser, one_of
from relational_tensat.cli.rules_frame import add_rule_files

if TYPE_CHECKING:
    from relational_tensat.rules.model import Rule

HELP = "list the rewrite rules, show one (and the SQL it runs), or check a rule file"

_ACTIONS = ("list", "show", "check")
#: ``rules derive …`` and the like are commands of their own; here for who writes flags before them.
_COMMANDS = ("derive", "verify", "functions", "operators")


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules``."""
    parser.add_argument(
        "action", nargs="?", default="list", type=one_of("action", (*_ACTIONS, *_COMMANDS)),
        metavar="ACTION",
        help="list, show NAME, or check FILE [%(default)s]",
    )  # fmt: skip
    parser.add_argument("subject", nargs="?", metavar="NAME|FILE", help="what to show or check")
    parser.add_argument("--sql", action="store_true", help="with show: print the SQL that it runs")
    parser.add_argument(
        "--db", type=Path, metavar="DB",
        help="with --sql: on the e-graph of a run; runs there as it is printed, and gives the matches",
    )  # fmt: skip
    add_rule_files(parser, "--rules", "PATH")


def execute(args: argparse.Namespace) -> int:
    """Do what is asked for."""
    if args.action in _COMMANDS:
        raise UsageError(f"flags come after both words: rules {args.action} …")
    if args.action == "list":
        if args.subject is not None:
            raise UsageError(f"rules list takes no name, but {args.subject!r} was given")
        _list(args.rules)
    elif args.subject is None:
        expected = "the name of a rule" if args.action == "show" else "a rule file"
        raise UsageError(f"rules {args.action} needs {expected}")
    elif args.action == "show":
        if args.db is not None and not args.sql:
            raise UsageError("--db goes with --sql")
        _show(args.subject, args.rules, sql=args.sql, database=args.db)
    else:
        _check(Path(args.subject))
    return 0


def _load(paths: list[Path]) -> list[Rule]:
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.targets.backend import all_rule_files, know_kernels

    know_kernels()
    return load_rules(paths or all_rule_files())


def _list(paths: list[Path]) -> None:
    from relational_tensat.cli.console import stdout_console, table

    rules = _load(paths)
    rows = table("rule", "sources", "law", numbers=("sources",))
    for rule in rules:
        rows.add_row(rule.name, str(len(rule.sources)), rule.law + _mark(rule))
    console = stdout_console()
    console.print(rows)
    multi = sum(rule.is_multi for rule in rules)
    console.print(f"{len(rules)} rules, {multi} of them with several sources")


def _show(name: str, paths: list[Path], *, sql: bool, database: Path | None) -> None:
    from relational_tensat.cli.rules_text import rule_sql
    from relational_tensat.rules.text import rule_text

    rules = {rule.name: rule for rule in _load(paths)}
    if name not in rules:
        raise unknown("rule", name, rules)
    # as it is: a console would break lines of what is to be run
    sys.stdout.write((rule_sql(rules[name], database) if sql else rule_text(rules[name])) + "\n")


def _check(path: Path) -> None:
    from relational_tensat.cli.console import stdout_console

    rules = _load([path])
    unsound = sum(rule.unsound for rule in rules)
    marked = f", {unsound} of them marked unsound" if unsound else ""
    amount = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
    stdout_console().print(f"{path}: {amount}, well-formed{marked}")


def _mark(rule: Rule) -> str:
    return " (unsound)" if rule.unsound else ""
