"""``costs clear``: forget what was measured."""

from __future__ import annotations

import argparse
import sys

from relational_tensat.cli.costs_show import (
    add_cache_argument,
    add_device_argument,
    cache_of,
    holdings_of,
)
from relational_tensat.cli.parser import Parser

HELP = "forget what has been measured, on all devices or on one"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs clear``."""
    add_device_argument(parser, "this device only")
    add_cache_argument(parser)


def execute(args: argparse.Namespace) -> int:
    """Delete the rows."""
    cache = cache_of(args)
    if args.device is None:
        keys = cache.keys()
    else:
        keys = [holding.key for holding in holdings_of(cache, args.device)]
    count = sum(map(cache.forget, keys))
    sys.stdout.write(f"{count:,} configurations of {len(keys)} devices forgotten in {cache.path}\n")
    return 0
