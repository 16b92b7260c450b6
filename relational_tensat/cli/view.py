"""``view``: a run as a page to look at."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from relational_tensat.cli.parser import Parser

HELP = "write the page that shows a run: before and after, every step, the search, the e-graph"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``view``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where to write the page [DB with .html]"
    )


def execute(args: argparse.Namespace) -> int:
    """Write the page, and print where it is."""
    from relational_tensat.base.errors import InputError
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.view import collect, write_page

    output = args.output or args.db.with_suffix(".html")
    database = RunDatabase(args.db)
    try:
        data = collect(database.connection)
    except InputError as error:
        raise InputError(f"{args.db}: {error}") from error
    finally:
        database.close()
    write_page(data, output)
    sys.stdout.write(f"{output}: {output.stat().st_size:,} bytes\n")
    return 0
