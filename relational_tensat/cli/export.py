"""``export``: a run's e-graph for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from relational_tensat.base.outputs import Written
from relational_tensat.cli.parser import Parser

HELP = "write a run's e-graph as egraph-serialize JSON, for other extractors and visualizers"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``export``."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")
    parser.add_argument(
        "--egraph-json",
        type=Written("an e-graph", (".json",)),
        required=True,
        metavar="FILE",
        help="the file to write",
    )


def execute(args: argparse.Namespace) -> int:
    """Write the file and report how large the e-graph in it is."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.extract.interchange import egraph_json, save_egraph_json

    database = RunDatabase(args.db)
    try:
        content = egraph_json(database)
    finally:
        database.close()
    save_egraph_json(content, args.egraph_json)
    stdout_console().print(
        f"{args.egraph_json}: {len(content['nodes']):,} e-nodes in "
        f"{len(content['class_data']):,} e-classes, {len(content['root_eclasses'])} to extract"
    )
    return 0
