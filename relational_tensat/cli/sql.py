"""``sql``: ask a run's database."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from relational_tensat.cli.closed_output import exact
from relational_tensat.cli.parser import Parser

HELP = "query a run's database (read-only); - reads the query from standard input"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``sql``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "query",
        metavar="QUERY",
        help="SQL; see docs/schema.md for the tables, or: relational-tensat schema DB",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON array of objects")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")


def execute(args: argparse.Namespace) -> int:
    """Run the query and print its rows."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.database import RunDatabase, print_rows

    database = RunDatabase(args.db)
    try:
        rows = database.query(sys.stdin.read() if args.query == "-" else args.query)
    finally:
        database.close()
    if args.json:
        sys.stdout.write(json.dumps(rows.as_objects(), default=str) + "\n")
    elif args.csv:
        stream = (
            sys.stdout if sys.stdout.isatty() else exact(sys.stdout)
        )  # a file is to have the data
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(rows.columns)
        writer.writerows(rows.rows)
    else:
        print_rows(rows, stdout_console())
    return 0
