"""``kernels import``: a μGraph from elsewhere, verified, as a candidate of later searches."""

from __future__ import annotations

import argparse
from typing import Any

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

HELP = "verify a μGraph from elsewhere; searches for its program choose among it and what they find"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels import``."""
    add_mugraph(parser)
    add_program(parser, "program")
    parser.add_argument(
        "--raw-exp", action="store_true", help="even if exponentials of large numbers overflow"
    )
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify and keep.

    Raises:
        InputError: the file is malformed, or the graph has operators of libraries only.
        VerificationError: it computes something else; says which entry differs.
    """
    limit_blas_threads()
    from relational_tensat.base.errors import InputError, VerificationError
    from relational_tensat.mugraph.candidate_cache import CandidateCache
    from relational_tensat.mugraph.graph.concat_products import with_concat_products
    from relational_tensat.mugraph.graph.rewrites import (
        core,
        core_like,
        has_windows,
        with_wide_results,
    )
    from relational_tensat.mugraph.kernel_finder import made_ready
    from relational_tensat.mugraph.sizing.cost_model import graph_us
    from relational_tensat.mugraph.sizing.waves import a100
    from relational_tensat.mugraph.verify.verification import verify_mugraph

    program = with_concat_products(read_program(args))  # as searches have it
    given = read_mugraph(args)
    verification = verify_mugraph(program, given, args.seed)
    if not verification.passed:
        reason = verification_lines(verification)[0].removeprefix("refused: ")
        raise VerificationError(f"{args.file}: computes something else: {reason}")
    own = core_like(given, program) if has_windows(program) else None
    if own is not None:  # a search has windows as inputs of their own
        program, given = core(program), own
    if not given.kernels:
        raise InputError(f"{args.file}: expected a kernel, found operators of libraries only")
    try:
        graph = made_ready(with_wide_results(given), raw_exp=args.raw_exp)
    except VerificationError as error:
        raise VerificationError(f"{args.file}: {error}; --raw-exp takes it as it is") from None
    verification = verify_mugraph(program, graph, args.seed)
    if not verification.passed or not (verification.is_stable or args.raw_exp):
        raise VerificationError(f"{args.file}: {verification_lines(verification)[-1]}")
    path = CandidateCache.of_user().keep_imported(program, graph)
    cost_us = graph_us(graph, a100())
    content: dict[str, Any] = {
        "file": str(path), "cost_us": cost_us, "verification": verification_json(verification)
    }  # fmt: skip
    lines = [*verification_lines(verification), f"modelled {cost_us:.2f} µs", f"kept as {path}"]
    report(lambda: content, lambda console: console.print("\n".join(lines)), as_json=args.json)
    return 0
