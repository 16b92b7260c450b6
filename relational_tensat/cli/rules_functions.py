"""``rules functions``: the functions that rules may use."""

from __future__ import annotations

import argparse

from relational_tensat.cli.parser import Parser
from relational_tensat.cli.rules_frame import add_json, report

HELP = "list the functions that the conditions and attributes of rules may use"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules functions``."""
    add_json(parser, "a JSON array of objects")


def execute(args: argparse.Namespace) -> int:
    """Print them."""
    from relational_tensat.cli.rules_text import functions_json, print_functions

    report(functions_json, print_functions, as_json=args.json)
    return 0
