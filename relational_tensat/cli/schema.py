"""``schema``: what the tables of a run's database are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from relational_tensat.cli.parser import Parser

HELP = "print what the tables and columns of a run's database are, as Markdown"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``schema``."""
    parser.add_argument(
        "db", type=Path, nargs="?", metavar="DB", help="a database of run --db [what any has]"
    )


def execute(args: argparse.Namespace) -> int:
    """Print the page."""
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.cli.schema_text import example_schema, schema_page
    from relational_tensat.egraph.schema import read_schema, working_tables

    if args.db is None:
        page = schema_page(example_schema(), working_tables().values())
    else:
        database = RunDatabase(args.db)
        try:
            page = schema_page(read_schema(database.connection))
        finally:
            database.close()
    sys.stdout.write(page)
    return 0
