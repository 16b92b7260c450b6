"""``view``: a run as a page to look at."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import PAGE, check_outputs
from relational_tensat.cli.parser import Parser, whole_number

if TYPE_CHECKING:
    from relational_tensat.cli.database import RunDatabase

HELP = "a run as a page: before and after, every step, the search, the e-graph, and your questions"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``view``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "-o", "--output", type=PAGE, metavar="FILE", help="where to write the page [DB with .html]"
    )
    parser.add_argument(
        "--check", action="store_true",
        help="compute every tensor that a step replaces both ways, and show what that gave",
    )  # fmt: skip
    parser.add_argument(
        "--cost", metavar="SOURCE", default="",
        help="show costs of this source, too, as run --cost names it: measured beside modelled ones",
    )  # fmt: skip
    parser.add_argument(
        "--serve", action="store_true",
        help="serve the page on this machine instead, with the whole database behind it, until Ctrl-C",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=whole_number, default=0, metavar="N",
        help="with --serve: listen on this port [any that is free]",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="with --serve: print the address, open nothing"
    )


def execute(args: argparse.Namespace) -> int:
    """Write the page and print where it is, or serve it."""
    from relational_tensat.base.errors import InputError
    from relational_tensat.cli.database import RunDatabase

    if args.serve and (args.output or args.check or args.cost):
        raise UsageError("--serve writes no page: it goes without --output, --check and --cost")
    database = RunDatabase(args.db)
    try:
        return _serve(database, args) if args.serve else _write(database, args)
    except InputError as error:
        raise InputError(f"{args.db}: {error}") from error
    finally:
        database.close()


def _write(database: RunDatabase, args: argparse.Namespace) -> int:
    from relational_tensat.base.outputs import check_page
    from relational_tensat.cost import open_source
    from relational_tensat.view import collect, write_page

    output = args.output or args.db.with_suffix(".html")
    check_page(output)
    check_outputs([(output, PAGE)], [args.db])
    also = open_source(args.cost) if args.cost else None
    data = collect(database.connection, check=args.check, also=also)
    write_page(data, output)
    sys.stdout.write(f"{output}: {output.stat().st_size:,} bytes\n")
    return 0


def _serve(database: RunDatabase, args: argparse.Namespace) -> int:
    from relational_tensat.view.server import Server

    with Server(database.connection, args.port) as server:
        sys.stdout.write(f"{args.db} at {server.address} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        if not args.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
