"""``python -m bench fused``: what kernels of a model's own are worth: modelled for GPUs, timed as C."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TypeVar

from bench.common.arguments import add_cost, add_save
from bench.common.result_file import RESULTS, report_saved, save_rows
from bench.fused import blocks, c_kernels, rows
from relational_tensat.base.errors import check_choice


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("fused", help="blocks with kernels of their own, and a row as C")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[all four blocks]")
    add_cost(parser)
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one search (120)")
    parser.add_argument("--operators", type=int, default=8, help="of a part at most (8)")
    parser.add_argument(
        "--rows", action="store_true", help="time rows of functions as C, beside onnxruntime"
    )
    parser.add_argument(
        "--c-kernels", action="store_true", help="time kernels as C, beside onnxruntime and a pass"
    )
    parser.add_argument("--heats", type=int, default=31, help="of what is timed, in turn (31)")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, and keep.

    Raises:
        UsageError: there is no such block.
        MissingDependencyError: with --rows or --c-kernels, there is no C compiler.
    """
    if options.c_kernels:
        of_kernels = (c_kernels.run_kernel(name, options.heats) for name in c_kernels.MODELS)
        shown = _shown(of_kernels, c_kernels.HEADER, c_kernels.cells)
        if options.save:
            path = RESULTS / f"fused-c-kernels-{date.today().isoformat()}.json"
            report_saved(save_rows(path, options, shown, c_kernels.HEADER, c_kernels.cells))
        return 0
    if options.rows:
        timed = (rows.run_row(*size, options.heats) for size in rows.SIZES)
        found = _shown(timed, rows.HEADER, rows.cells)
        if options.save:
            path = RESULTS / f"fused-rows-{date.today().isoformat()}.json"
            report_saved(save_rows(path, options, found, rows.HEADER, rows.cells))
        return 0
    names = [check_choice("block", name, blocks.BLOCKS) for name in options.models or blocks.BLOCKS]
    runs = (
        blocks.run_block(name, options.cost, options.time_limit, options.operators)
        for name in names
    )
    kept = _shown(runs, blocks.HEADER, blocks.cells)
    if options.save:
        path = RESULTS / f"fused-{date.today().isoformat()}-{options.cost}.json"
        report_saved(save_rows(path, options, kept, blocks.HEADER, blocks.cells))
    return 0


Row = TypeVar("Row")


def _shown(
    runs: Iterable[Row], header: Sequence[str], cells: Callable[[Row], Sequence[str]]
) -> list[Row]:
    """Print rows as they come; return them."""
    print(" | ".join(header), flush=True)
    found = []
    for run in runs:
        print(" | ".join(cells(run)), flush=True)
        found.append(run)
    return found
