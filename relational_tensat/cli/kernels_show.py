"""``kernels show``: a μGraph as text, as JSON (Mirage's, too), or as a picture."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.outputs import PAGE
from relational_tensat.cli.kernels_frame import DTYPES, add_mugraph, read_mugraph
from relational_tensat.cli.kernels_text import show_plans, show_rows, show_sql
from relational_tensat.cli.parser import Parser
from relational_tensat.cli.rules_frame import add_json, report

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.graph.mugraph import MuGraph

HELP = "print a μGraph: kernels, blocks and threads, with the dims and maps of every tensor"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels show``."""
    from relational_tensat.mugraph.graph.mirage_writer import ACCUMULATORS

    add_mugraph(parser)
    parser.add_argument(
        "--sql", action="store_true",
        help="with the rows of the search that it came from, and, with --db, the SQL that asks for them",
    )  # fmt: skip
    parser.add_argument(
        "--dot", action="store_true", help="as a picture of the three levels, in Graphviz' language"
    )
    parser.add_argument(
        "--html", type=PAGE, metavar="OUT",
        help="write a page, too, that draws the three levels, with maps and the bytes that move",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float16", metavar="TYPE",
        help=f"with --html and --plan: of elements: {', '.join(DTYPES)} [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--plan", action="store_true",
        help="with what a block does when, barriers, places in shared memory, and the layouts that were "
        "chosen, all as CUDA has them",
    )  # fmt: skip
    parser.add_argument(
        "--mirage", choices=ACCUMULATORS, metavar="NAMES",
        help="as Mirage's JSON, a file of one graph: accumulators named forloop_accum, as today's Mirage "
        "does, or accum, as its saved graphs do",
    )  # fmt: skip
    add_json(parser, "it as JSON; so a file of Mirage's is converted")


def execute(args: argparse.Namespace) -> int:
    """Read and print."""
    from relational_tensat.mugraph.graph.mirage_writer import to_mirage
    from relational_tensat.mugraph.graph.mugraph_json import encoded
    from relational_tensat.mugraph.graph.mugraph_text import mugraph_dot, mugraph_text
    from relational_tensat.mugraph.kernels.emission import emit

    key = str(args.file)
    graph = read_mugraph(args)
    if args.html is not None:
        _draw(graph, args.dtype, args.html)
    if args.mirage:
        sys.stdout.write(f"{json.dumps([to_mirage(graph, args.mirage)])}\n")
        return 0
    if args.dot:
        sys.stdout.write(mugraph_dot(graph))
        return 0
    emitted = emit(graph, "cuda", args.dtype) if args.plan else []

    def show(console: Console) -> None:
        console.print(mugraph_text(graph))
        if emitted:
            show_plans(emitted, console)
        if args.sql and args.db is not None:
            show_sql(args.db, key, console)
        elif args.sql:
            show_rows(graph, console)

    report(lambda: encoded(graph), show, as_json=args.json)
    return 0


def _draw(graph: MuGraph, dtype: str, path: Path) -> None:
    """Write the page of a μGraph.

    Raises:
        InputError: it cannot be written.
    """
    from relational_tensat.view.data.kernel_data import KernelPage
    from relational_tensat.view.document import write_page
    from relational_tensat.view.kernel_drawing import drawing

    write_page(KernelPage(graph.name, (drawing(graph, dtype),)), path)
