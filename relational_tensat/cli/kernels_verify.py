"""``kernels verify``: does a μGraph compute a program?"""

from __future__ import annotations

import argparse

from relational_tensat.cli.kernels_frame import (
    add_mugraph,
    add_program,
    read_mugraph,
    read_program,
    verification_json,
    verification_lines,
)
from relational_tensat.cli.parser import Parser
from relational_tensat.cli.process_limits import limit_blas_threads
from relational_tensat.cli.rules_frame import add_json, add_seed, report

HELP = "test a μGraph against its program: in finite fields, and in float64"

_FAILED = 4


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels verify``."""
    add_mugraph(parser)
    add_program(parser, "program")
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify and report; 4 where the graph is wrong."""
    limit_blas_threads()
    from relational_tensat.mugraph.verify.verification import verify_mugraph

    graph = read_mugraph(args)
    verification = verify_mugraph(read_program(args), graph, args.seed)
    report(
        lambda: verification_json(verification),
        lambda console: console.print("\n".join(verification_lines(verification))),
        as_json=args.json,
    )
    return 0 if verification.passed else _FAILED
