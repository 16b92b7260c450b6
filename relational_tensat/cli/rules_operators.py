"""``rules operators``: the operators that rules may use."""

from __future__ import annotations

import argparse

from relational_tensat.cli.parser import Parser
from relational_tensat.cli.rules_frame import add_json, report

HELP = "list the operators that rules may speak of, with their attributes"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules operators``."""
    add_json(parser, "a JSON array of objects")


def execute(args: argparse.Namespace) -> int:
    """Print them."""
    from relational_tensat.cli.rules_text import operators_json, print_operators

    report(operators_json, print_operators, as_json=args.json)
    return 0
