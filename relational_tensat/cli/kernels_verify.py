"""``kernels verify``: does a μGraph compute a program?"""

from __future__ import annotations

import argparse
from pathlib import Path

from relational_tensat.cli.kernels_frame import (
    add_program,
    read_program,
    verification_json,
    verification_lines,
)
from relational_tensat.cli.parser import Parser, whole_number
from relational_tensat.cli.rules_frame import add_json, add_seed, report

HELP = "test a μGraph against its program: in finite fields, and in float64"

_FAILED = 4


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels verify``."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a μGraph as JSON, or a file of Mirage's"
    )
    parser.add_argument(
        "--graph", type=whole_number, default=0, metavar="N",
        help="which one, where the file has several [%(default)s]",
    )  # fmt: skip
    add_program(parser, "program")
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify and report; 4 where the graph is wrong."""
    from relational_tensat.mugraph.graph.mugraph_files import load_mugraph
    from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph

    graph = load_mugraph(args.file, args.graph)
    verification = verify_mugraph(read_program(args), graph, args.seed)
    report(
        lambda: verification_json(verification),
        lambda console: console.print("\n".join(verification_lines(verification))),
        as_json=args.json,
    )
    return 0 if verification.passed else _FAILED
