"""``costs export``: what was measured on one device, as a recorded table."""

from __future__ import annotations

import argparse
import sys

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import Written
from relational_tensat.cli.costs_show import (
    add_cache_argument,
    add_device_argument,
    cache_of,
    holdings_of,
)
from relational_tensat.cli.parser import Parser

HELP = "write what was measured on one device as a table that --cost table:FILE reads"

_SUFFIX = ".parquet"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs export``."""
    parser.add_argument(
        "file",
        type=Written("a table of costs", (_SUFFIX,)),
        metavar="FILE",
        help="the table, NAME.parquet",
    )
    add_device_argument(parser, "the device, where the cache has several")
    add_cache_argument(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the table."""
    if args.file.suffix != _SUFFIX:
        raise UsageError(f"{args.file}: the suffix of a table must be {_SUFFIX}")
    from relational_tensat.cost.device import PROTOCOLS
    from relational_tensat.cost.inventory import only_one
    from relational_tensat.cost.key import describe_device
    from relational_tensat.cost.table import write_table

    holding = only_one(holdings_of(cache_of(args), args.device))
    if not holding.measured:
        raise UsageError(
            f"nothing could be measured on {holding.key.name}: there is no table to write"
        )
    if holding.key.protocol != PROTOCOLS[holding.key.kind].version:
        raise UsageError(f"{holding.id}: {'; '.join(holding.why)}: such a table would be refused")
    write_table(args.file, holding.measured)
    left_out = (
        f"; {holding.unmeasurable} that cannot be measured left out" if holding.unmeasurable else ""
    )
    sys.stdout.write(
        f"{len(holding.measured):,} configurations of {describe_device(holding.key)} "
        f"written to {args.file}{left_out}\n"
    )
    return 0
