"""``python -m bench onnx``: real ONNX files, beside onnxsim's and onnxruntime's own optimizers."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common.arguments import add_cost, add_extract_time_limit, add_save
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.onnx.model_files import add_model_files, model_files
from relational_tensat.base.errors import VerificationError
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from bench.onnx.measure import OnnxRun


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("onnx", help="optimize ONNX files, beside other optimizers")
    add_model_files(parser)
    add_cost(parser)
    add_extract_time_limit(parser, "model")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure the models and print the tables; 4 if onnxsim leaves less of one than we do.

    Raises:
        UsageError: a model, profile or limit that does not exist or cannot be.
        MissingDependencyError: onnx or onnxruntime is not installed.
        VerificationError: a result of ours is wrong.
    """
    files = model_files(options.models)
    settings = Options.of(cost=options.cost, extract_time_limit_s=options.extract_time_limit)
    # Only now: the other commands do without onnx and onnxruntime.
    from bench.onnx.losses import losses
    from bench.onnx.measure import measure_model
    from bench.onnx.report import print_runs
    from bench.onnx.tools import ONNXSIM
    from relational_tensat.cli.console import stdout_console

    runs = []
    for name, path in files.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        runs.append(measure_model(name, path, settings))
    print_runs(runs, options.cost, stdout_console())
    if options.save:
        report_saved(save(runs, settings, RESULTS))
    return VerificationError.exit_code if losses(runs, ONNXSIM) else 0


def save(runs: Sequence[OnnxRun], settings: Options, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file.

    A second save under the same profile on the same day replaces the first.
    """
    from bench.onnx.tools import tool_versions

    path = (
        directory / f"onnx-{date.today().isoformat()}-{Path(str(settings.costs.source)).stem}.json"
    )
    content = {
        "settings": {
            "cost": settings.costs.source,
            "extract_time_limit_s": settings.extraction.time_limit_s,
        },
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    return save_result(path, content, tool_versions())
