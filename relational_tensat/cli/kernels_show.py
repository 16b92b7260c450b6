"""``kernels show``: a μGraph as text, as JSON, or as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from relational_tensat.cli.parser import Parser, whole_number
from relational_tensat.cli.rules_frame import add_json, report

HELP = "print a μGraph: kernels, blocks and threads, with the dims and maps of every tensor"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels show``."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a μGraph as JSON, or a file of Mirage's"
    )
    parser.add_argument(
        "--graph", type=whole_number, default=0, metavar="N",
        help="which one, where the file has several [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--dot", action="store_true", help="as a picture of the three levels, in Graphviz' language"
    )
    add_json(parser, "it as JSON; so a file of Mirage's is converted")


def execute(args: argparse.Namespace) -> int:
    """Read and print."""
    from relational_tensat.mugraph.graph.mugraph_dot import mugraph_dot
    from relational_tensat.mugraph.graph.mugraph_files import load_mugraph
    from relational_tensat.mugraph.graph.mugraph_json import encoded
    from relational_tensat.mugraph.graph.mugraph_text import mugraph_text

    graph = load_mugraph(args.file, args.graph)
    if args.dot:
        sys.stdout.write(mugraph_dot(graph))
        return 0
    report(
        lambda: encoded(graph),
        lambda console: console.print(mugraph_text(graph)),
        as_json=args.json,
    )
    return 0
