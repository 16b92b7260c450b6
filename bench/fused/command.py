"""``python -m bench fused``: what kernels of a model's own are worth: modelled for GPUs, timed as C."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import TypeVar

import onnxruntime

from bench.common.arguments import add_cost, add_save
from bench.common.result_file import (
    RESULTS,
    provenance,
    report_saved,
    save_rows,
    save_with_table,
)
from bench.common.table import table_row
from bench.exports.catalogue import ALL_EXPORTS, EXPORTS, HELD_OUT, OF_A_DAY
from bench.exports.kept_timings import Kept
from bench.exports.models import make_all
from bench.fused import blocks, c_kernels, exports, rows, versions
from relational_tensat.base.errors import UsageError, check_choice

#: Exports by what they were made for.
_SETS = {"25": EXPORTS, "held-out": HELD_OUT, "of-a-day": OF_A_DAY}


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
    parser.add_argument(
        "--versions",
        nargs="+",
        metavar="V",
        help="of onnxruntime, to run MODEL in: a file with kernels",
    )
    parser.add_argument(
        "--exports",
        action="store_true",
        help="optimize exports with kernels and without, and time their files, OpenVINO's too; MODEL is"
        " then a part of a name in bench/exports, or of a file in --folder",
    )
    parser.add_argument("--folder", type=Path, help="of the exports; by default they are not kept")
    parser.add_argument(
        "--of",
        nargs="+",
        choices=list(_SETS),
        help="exports: the 25, those held out, those of a day",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        metavar="FILE",
        help="with --exports, write here each row that is timed, and time none that is here already",
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="M", help="begin no export later"
    )
    parser.add_argument("--python", metavar="PATH", help="an interpreter that makes the exports")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="of sessions (1)")
    parser.add_argument("--limit", type=float, default=600.0, help="wall seconds of one run (600)")
    parser.add_argument("--heats", type=int, default=31, help="of what is timed, in turn (31)")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, and keep.

    Raises:
        UsageError: there is no such block, or --versions has no file.
        MissingDependencyError: with --rows or --c-kernels, there is no C compiler.
    """
    if options.exports:
        return run_exports(options)
    if options.versions:
        if len(options.models) != 1:
            raise UsageError("--versions runs one MODEL, a file with kernels")
        with tempfile.TemporaryDirectory(prefix="onnxruntime-") as temporary:
            folder = options.folder or Path(temporary)
            file = Path(options.models[0])
            own = (versions.run_version(version, file, folder) for version in options.versions)
            _shown(own, versions.HEADER, versions.cells)
        return 0
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


def run_exports(options: argparse.Namespace) -> int:
    """Optimize exports with kernels, print the table, and what became of each part.

    Raises:
        UsageError: no export has such a name.
        InputError: a model is not there and cannot be made.
    """
    parts = options.models or [""]
    chosen = [export for name in options.of or () for export in _SETS[name]] or ALL_EXPORTS
    known = [export.name for export in chosen]
    if options.folder and not options.of:
        known += sorted(path.stem for path in options.folder.glob("*.npz"))
    names = list(dict.fromkeys(name for part in parts for name in known if part in name))
    if not names:
        raise UsageError(f"no export has {parts[0]!r} in its name")
    setting = {"heats": options.heats, "commit": provenance()["commit"]}
    kept = Kept(options.kept, setting, exports.ExportRow.of_json)
    end_s = time.monotonic() + 60 * options.minutes

    def timed() -> Iterator[exports.ExportRow]:
        with tempfile.TemporaryDirectory(prefix="kernels-") as temporary:
            folder = options.folder or Path(temporary)
            for name, threads in product(names, options.threads):
                key = f"{name}, {threads} threads"
                own = kept.of(key)
                if not own and time.monotonic() > end_s:
                    print(f"{key}: not timed, the time is over", file=sys.stderr)
                    continue
                if not own:
                    (made,) = make_all([name], folder, options.python)
                    own = [exports.run_export(made, threads, options.heats, options.limit)]
                    kept.keep(key, own)
                yield own[0]

    found = _shown(timed(), exports.HEADER, exports.cells)
    lines = [*exports.summary(found), "", *exports.parts_table(found)]
    print("\n".join(["", *lines]))
    if options.save:
        path = RESULTS / f"fused-exports-{date.today().isoformat()}.json"
        heading = [table_row(list(exports.HEADER)), table_row(["---"] * len(exports.HEADER))]
        rows_of = [table_row(exports.cells(row)) for row in found]
        text = "\n".join(["# Exports with kernels, timed", "", *heading, *rows_of, "", *lines, ""])
        content = {"rows": [row.to_json() for row in found]}
        report_saved(save_with_table(path, content, {"onnxruntime": onnxruntime.__version__}, text))
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
