"""``rules operators``: the operators that rules may use."""

from __future__ import annotations

import argparse
import json
import sys

from relational_tensat.cli.parser import Parser

HELP = "list the operators that rules may speak of, with their attributes"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules operators``."""
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def execute(args: argparse.Namespace) -> int:
    """Print them."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.rules_vocabulary import operators_json, print_operators

    if args.json:
        sys.stdout.write(json.dumps(operators_json()) + "\n")
    else:
        print_operators(stdout_console())
    return 0
