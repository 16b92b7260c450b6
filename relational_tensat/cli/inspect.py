"""``inspect``: what happened in a run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from relational_tensat.cli.parser import Parser, whole_number

HELP = "sizes, biggest classes, rules by matches and time, and growth, of a run's database"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``inspect``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "--classes", type=whole_number, default=10, metavar="N",
        help="show so many e-classes [%(default)s]",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def execute(args: argparse.Namespace) -> int:
    """Print the figures."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.database import RunDatabase, inspect_database, print_inspection

    database = RunDatabase(args.db)
    try:
        inspection = inspect_database(database, args.classes)
    finally:
        database.close()
    if args.json:
        sys.stdout.write(json.dumps(inspection.to_json(), default=str) + "\n")
    else:
        print_inspection(inspection, stdout_console())
    return 0
