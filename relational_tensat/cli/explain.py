"""``explain``: how the original graph became the optimized one, or why a rule did not fire."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from relational_tensat.cli import why_not
from relational_tensat.cli.parser import Parser

HELP = "the rewrites, one by one, from the original graph to the optimized one"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``explain``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "--check", action="store_true",
        help="compute every tensor that a step replaces both ways, on random inputs and weights",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    why_not.add_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the explanation; return 0, or 4 where ``--check`` found a difference."""
    why_not.check_arguments(args)
    return why_not.execute(args) if args.why_not is not None else _explain(args)


def _explain(args: argparse.Namespace) -> int:
    from relational_tensat.base.errors import InputError, VerificationError
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.cli.explain_text import explanation_json, print_explanation
    from relational_tensat.explain.explanation import explain
    from relational_tensat.explain.numeric import check_numerically

    database = RunDatabase(args.db)
    try:
        explanation = explain(database.connection)
        check = check_numerically(explanation) if args.check else None
    except InputError as error:
        raise InputError(f"{args.db}: {error}") from error
    finally:
        database.close()
    if args.json:
        sys.stdout.write(json.dumps(explanation_json(explanation, check), allow_nan=False) + "\n")
    else:
        print_explanation(explanation, check, stdout_console())
    if check is not None and not check.ok:
        more = len(check.failures) - 1
        suffix = f" (and {more} more)" if more else ""
        raise VerificationError(f"{args.db}: {check.failures[0]}{suffix}")
    return 0
