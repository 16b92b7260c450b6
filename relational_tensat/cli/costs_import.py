"""``costs import``: a recorded table into the cost cache."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from relational_tensat.cli.costs_show import add_cache_argument, add_device_argument, cache_of
from relational_tensat.cli.parser import Parser

HELP = "add a recorded table to the cost cache; its times count on the device that they are of"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs import``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a table (.parquet)")
    add_device_argument(parser, "refuse the table of any other device")
    add_cache_argument(parser)


def execute(args: argparse.Namespace) -> int:
    """Check the table and add it."""
    from relational_tensat.base.errors import InputError
    from relational_tensat.cost.inventory import is_device
    from relational_tensat.cost.key import describe_device
    from relational_tensat.cost.table import read_table

    table = read_table(args.file)
    name = describe_device(table.key)
    if args.device is not None and not is_device(table.key, args.device):
        raise InputError(f"{args.file}: a table of {name}, expected one of {args.device!r}")
    cache = cache_of(args)
    added = cache.add(table.records)
    existing_count = len(table.records) - added
    already = f"; {existing_count:,} were there already and stay" if existing_count else ""
    sys.stdout.write(f"{added:,} configurations of {name} added to {cache.path}{already}\n")
    return 0
