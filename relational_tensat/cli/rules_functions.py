"""``rules functions``: the functions that rules may use."""

from __future__ import annotations

import argparse
import json
import sys

from relational_tensat.cli.parser import Parser

HELP = "list the functions that the conditions and attributes of rules may use"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules functions``."""
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def execute(args: argparse.Namespace) -> int:
    """Print them."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.rules_vocabulary import functions_json, print_functions

    if args.json:
        sys.stdout.write(json.dumps(functions_json()) + "\n")
    else:
        print_functions(stdout_console())
    return 0
