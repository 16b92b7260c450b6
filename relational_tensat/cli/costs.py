"""``costs …``: show, export, import and clear what the cost cache has; time kernels of many models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import options_in
from relational_tensat.base.outputs import DATABASE, Written
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_json, add_model_files, report
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.run.options import HIGH, Options

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from relational_tensat.cost.cache import CostCache
    from relational_tensat.cost.inventory import Holding
    from relational_tensat.fleet.farm import FarmPlan


_SUFFIX = ".parquet"


def show_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs show``."""
    _add_device(parser, "show this device's rows, and how well others are estimated")
    add_json(parser)
    _add_cache(parser)


def show_costs(args: argparse.Namespace) -> int:
    """Print what the cost cache has."""
    from relational_tensat.cli.costs_text import (
        holding_json,
        print_calibration,
        print_holdings,
        print_records,
    )
    from relational_tensat.cost.opener import table_names

    cache = _cache(args)
    holdings = _holdings(cache, args.device)
    tables = table_names()

    def show(console: Console) -> None:
        count = sum(len(holding.records) for holding in holdings)
        console.print(f"{cache.path}: {count:,} configurations")
        if holdings:
            print_holdings(holdings, console)
        for holding in holdings if args.device is not None else ():
            print_records(holding, console)
            print_calibration(holding, console)
        if tables:
            names = ", ".join(f"table:{name}" for name in tables)
            console.print(f"recorded tables that ship: {names}")

    report(
        lambda: {
            "cache": str(cache.path),
            "devices": [holding_json(holding) for holding in holdings],
            "tables": list(tables),
        },
        show,
        as_json=args.json,
    )
    return 0


def export_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs export``."""
    parser.add_argument(
        "file", type=Written("a table of costs", (_SUFFIX,)), metavar="FILE",
        help="the table, NAME.parquet",
    )  # fmt: skip
    _add_device(parser, "the device, where the cache has several")
    _add_cache(parser)


def export_costs(args: argparse.Namespace) -> int:
    """Write what was measured on one device as a recorded table."""
    if args.file.suffix != _SUFFIX:
        raise UsageError(f"{args.file}: the suffix of a table must be {_SUFFIX}")
    from relational_tensat.cost.device import PROTOCOLS
    from relational_tensat.cost.inventory import only_one
    from relational_tensat.cost.key import describe_device
    from relational_tensat.cost.table import write_table

    holding = only_one(_holdings(_cache(args), args.device))
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
    write_line(
        f"{len(holding.measured):,} configurations of {describe_device(holding.key)} "
        f"written to {args.file}{left_out}"
    )
    return 0


def import_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs import``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a table (.parquet)")
    _add_device(parser, "refuse the table of any other device")
    _add_cache(parser)


def import_costs(args: argparse.Namespace) -> int:
    """Check a recorded table and add it to the cost cache."""
    from relational_tensat.base.errors import InputError
    from relational_tensat.cost.inventory import is_device
    from relational_tensat.cost.key import describe_device
    from relational_tensat.cost.table import read_table

    table = read_table(args.file)
    name = describe_device(table.key)
    if args.device is not None and not is_device(table.key, args.device):
        raise InputError(f"{args.file}: a table of {name}, expected one of {args.device!r}")
    cache = _cache(args)
    added = cache.add(table.records)
    existing_count = len(table.records) - added
    already = f"; {existing_count:,} were there already and stay" if existing_count else ""
    write_line(f"{added:,} configurations of {name} added to {cache.path}{already}")
    return 0


def clear_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs clear``."""
    _add_device(parser, "this device only")
    _add_cache(parser)


def clear_costs(args: argparse.Namespace) -> int:
    """Forget what was measured."""
    cache = _cache(args)
    if args.device is None:
        keys = cache.keys()
    else:
        keys = [holding.key for holding in _holdings(cache, args.device)]
    count = sum(map(cache.forget, keys))
    write_line(f"{count:,} configurations of {len(keys)} devices forgotten in {cache.path}")
    return 0


def _add_cache(parser: Parser) -> None:
    parser.add_argument(
        "--cost-cache",
        type=DATABASE,
        metavar="FILE",
        help="the file of the cost cache [in the user's cache folder]",
    )


def _add_device(parser: Parser, text: str) -> None:
    parser.add_argument(
        "--device", metavar="D", help=f"{text}: cpu, cuda, an id, or part of the device's name"
    )


def _cache(args: argparse.Namespace) -> CostCache:
    from relational_tensat.cost.cache import CostCache, default_cache

    return CostCache(args.cost_cache or default_cache())


def _holdings(cache: CostCache, device: str | None) -> list[Holding]:
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


def farm_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs farm``."""
    parser.usage = "relational-tensat costs farm MODEL… -o FOLDER [options of the runs to come]"
    add_model_files(parser, "+")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", required=True,
        help="where the snapshot goes, costs.duckdb, and a table of each device",
    )  # fmt: skip
    parser.add_argument(
        "--on", metavar="RUNNER", default="here",
        help="here, processes:N, ray, ray:ADDRESS or slurm:N: searches go anywhere; kernels are measured "
        "one at a time on each quiet core (Ray's resource quiet_core) [here]",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=("cpu", "cuda"),
        help="the device, if --cost and --effort do not say so [cpu]",
    )  # fmt: skip
    add_tree(parser, Options)


def farm_costs(args: argparse.Namespace) -> int:
    """Measure what runs of the models ask for; say before each part how long it takes."""
    from relational_tensat.fleet.farm import farm

    values = written_values(args, (option for _, option in options_in(Options)))
    if "cost" not in values and values.get("effort") != HIGH:
        values["cost"] = args.device or "cpu"
    farmed = farm(
        args.models,
        args.output,
        Options.of(**values),
        on=args.on,
        planned=lambda plan: write_line(plan_text(plan)),
        measured=None if args.quiet else _show,
    )
    for model, reason in farmed.refused.items():
        write_line(f"{model}: refused: {reason}")
    for table in farmed.tables:
        write_line(
            f"{table.path}: {table.kernels:,} kernels of {table.device}; asked for by "
            f"{', '.join(table.models) or 'no model of these'}"
        )
    write_line(f"{farmed.snapshot}: {farmed.measured:,} kernels measured now")
    return 0


def plan_text(plan: FarmPlan) -> str:
    """Return in one line what will be measured, where, how long, and what would halve that."""
    cores = "1 quiet core" if plan.quiet_cores == 1 else f"{plan.quiet_cores} quiet cores"
    more = "" if plan.kernels == 1 else f"; {2 * plan.quiet_cores} would halve it"
    return (
        f"{plan.kernels:,} kernels to measure on {plan.device}: about {_seconds(plan.seconds)} "
        f"on {cores}{more}"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{max(seconds, 1):.0f} s"


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,} kernels" + ("\n" if done == total else ""))
        sys.stderr.flush()
