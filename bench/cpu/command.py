"""``python -m bench cpu``: what measured costs bring on this machine's processor, in onnxruntime."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common.arguments import add_extract_time_limit, add_save
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.onnx.model_files import add_model_files, model_files

if TYPE_CHECKING:
    from bench.cpu.measure import CpuRun


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("cpu", help="time original and optimized models in onnxruntime")
    add_model_files(parser)
    parser.add_argument("--cost-cache", metavar="FILE", type=Path, help="(the user's own)")
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=40, help="samples of each graph (40)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=40.0, help="of timing one model (40)"
    )
    add_extract_time_limit(parser, "model")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure the models and print the table; 4 if one is slower than before, beyond the noise.

    Raises:
        UsageError: a model that does not exist.
        MissingDependencyError: onnx, onnxruntime or (to save) matplotlib is not installed.
        VerificationError: an optimized graph computes something else.
    """
    files = model_files(options.models)
    # Only now: the other commands do without onnx and onnxruntime.
    from bench.common.plots import check_plotting
    from bench.cpu.measure import cpu_options, measure_model
    from bench.cpu.report import losses, print_runs
    from relational_tensat.base.errors import VerificationError
    from relational_tensat.cli.console import stdout_console

    if options.save:
        check_plotting("the scatter plot needs")
    settings = cpu_options(options.cost_cache, options.extract_time_limit)
    runs = []
    for name, path in files.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        runs.append(measure_model(name, path, settings, options.rounds, options.seconds))
    print_runs(runs, stdout_console())
    if options.save:
        report_saved(save(runs, RESULTS))
    return VerificationError.exit_code if losses(runs) else 0


def save(runs: Sequence[CpuRun], directory: Path) -> Path:
    """Write the runs with machine, versions and commit, the points as CSV and the plot; return the JSON.

    A second save on the same day replaces the first.
    """
    from bench.cpu.plot import plot, write_points
    from bench.onnx.tools import tool_versions

    path = directory / f"cpu-{date.today().isoformat()}.json"
    save_result(path, {"runs": [dataclasses.asdict(run) for run in runs]}, tool_versions())
    write_points(runs, path.with_suffix(".csv"))
    plot(runs, path.with_suffix(".png"))
    return path
