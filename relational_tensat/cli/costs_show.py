"""``costs show``: what the cost cache has."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from relational_tensat.base.outputs import DATABASE
from relational_tensat.cli.parser import Parser

if TYPE_CHECKING:
    from relational_tensat.cost.cache import CostCache
    from relational_tensat.cost.inventory import Holding

HELP = "show what has been measured, on which devices, and which of it is stale"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs show``."""
    add_device_argument(parser, "show this device's rows, and how well others are estimated")
    parser.add_argument("--op", metavar="OPERATOR", help="show the rows of this operator")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    add_cache_argument(parser)


def execute(args: argparse.Namespace) -> int:
    """Print it."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.costs_text import (
        holding_json,
        print_calibration,
        print_holdings,
        print_records,
    )
    from relational_tensat.cost.opener import table_names
    from relational_tensat.tensor.operators import get_operator

    if args.op is not None:
        get_operator(args.op)
    cache = cache_of(args)
    holdings = holdings_of(cache, args.device)
    rows = [
        holding.records if args.op is None else holding.of_operator(args.op) for holding in holdings
    ]
    if args.json:
        devices = [
            holding_json(holding, some) for holding, some in zip(holdings, rows, strict=True)
        ]
        content = {"cache": str(cache.path), "devices": devices, "tables": list(table_names())}
        sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")
        return 0
    console = stdout_console()
    console.print(
        f"{cache.path}: {sum(len(holding.records) for holding in holdings):,} configurations"
    )
    if holdings:
        print_holdings(holdings, console)
    if args.op is not None or args.device is not None:
        for holding, some in zip(holdings, rows, strict=True):
            print_records(holding, some, console)
    if args.device is not None:
        for holding in holdings:
            print_calibration(holding, console)
    if table_names():
        names = ", ".join(f"table:{name}" for name in table_names())
        console.print(f"recorded tables that ship: {names}")
    return 0


def add_cache_argument(parser: Parser) -> None:
    """Declare the flag that names the cache, of every command on it."""
    parser.add_argument(
        "--cost-cache",
        type=DATABASE,
        metavar="FILE",
        help="this cache [in the user's cache folder]",
    )


def add_device_argument(parser: Parser, text: str) -> None:
    """Declare the flag that names a device."""
    parser.add_argument(
        "--device", metavar="D", help=f"{text}: cpu, cuda, an id, or a part of the device's name"
    )


def cache_of(args: argparse.Namespace) -> CostCache:
    """Return the cache that the flags name."""
    from relational_tensat.cost.cache import CostCache, default_cache

    return CostCache(args.cost_cache or default_cache())


def holdings_of(cache: CostCache, device: str | None) -> list[Holding]:
    """Return what a cache has, of one device if it is named.

    Raises:
        UsageError: there is no such device in the cache.
    """
    from relational_tensat.cost.inventory import devices_here, holdings, matching

    records = cache.rows()
    kinds = sorted({record.key.kind for record in records})
    threads = {record.key.libraries.get("threads", "") for record in records} - {""}
    all_holdings = holdings(records, devices_here(kinds, threads))
    return all_holdings if device is None else matching(all_holdings, device)
