"""``convert``: a model from one format to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from relational_tensat.cli.parser import Parser, dimensions, merged
from relational_tensat.formats.frontend import MODEL

HELP = "write a model in the other format (.json or .onnx), unchanged"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``convert``."""
    parser.add_argument("model", type=Path, metavar="IN", help="a .json or .onnx model")
    parser.add_argument("output", type=MODEL, metavar="OUT", help="a .json or .onnx file")
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of the model's dynamic dimensions",
    )  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Load the model and write it."""
    from relational_tensat.formats import load_model, save_model
    from relational_tensat.formats.frontend import check_output

    graph = load_model(args.model, merged(args.dim, "--dim"))
    target = check_output(args.output, args.model)
    if target is not None:
        save_model(graph, target)
    return 0
