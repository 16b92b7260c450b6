"""``python -m bench kernels``: what a backend's rules say that runs, held against what runs."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import onnxruntime

from bench.common.result_file import RESULTS, report_saved, save_result
from bench.common.table import table_row
from bench.conformance.runs import sizes
from bench.exports.catalogue import EXPORTS
from bench.exports.models import Made
from bench.kernels.counts import Comparison, compare, total_differences
from relational_tensat.base.errors import UsageError

INPUTS = Path(__file__).parents[1] / "inputs"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "kernels", help="kernels that are predicted, and those that onnxruntime runs"
    )
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*", help="parts of the names of models; default: all")
    add("--folder", type=Path, help="where the exports are: see bench exports --folder")
    add("--save", action="store_true", help="keep the table in bench/results/")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare the kernels of models, print the table.

    Raises:
        UsageError: no model has such a name.
    """
    parts = options.names or [""]
    comparisons = []
    for path, dims in _models(options.folder):
        if any(part in path.stem for part in parts):
            print(f"{path.stem} ...", file=sys.stderr, flush=True)
            comparisons.append(compare(path, dims))
    if not comparisons:
        raise UsageError(f"no model has {parts[0]!r} in its name")
    print("\n".join(table(comparisons)))
    if options.save:
        path = RESULTS / f"kernels-{date.today().isoformat()}.json"
        content = {"comparisons": [dataclasses.asdict(c) for c in comparisons]}
        report_saved(save_result(path, content, {"onnxruntime": onnxruntime.__version__}))
    return 0


def table(comparisons: list[Comparison]) -> list[str]:
    """Return the lines of a Markdown table, and of the kinds that differ, most frequent first."""
    lines = ["| model | kernels there | predicted | agree | differ: predicted, there |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for each in comparisons:
        kinds = [f"{kind} {a}, {b}" for kind, (a, b) in (each.differ or {}).items()]
        cells = [each.name, str(each.saved), str(each.predicted), f"{each.agree} of {each.all}"]
        lines.append(table_row([*cells, each.failure or "; ".join(kinds)]))
    agree, number = sum(c.agree for c in comparisons), sum(c.all for c in comparisons)
    exact = sum(c.differ == {} for c in comparisons)
    lines += ["", f"{agree} of {number} kernels agree; all of {exact} of {len(comparisons)} models"]
    counts = total_differences(comparisons).most_common()
    return [*lines, "differ: " + ", ".join(f"{kind} {count}" for kind, count in counts)]


def _models(folder: Path | None) -> Iterator[tuple[Path, dict[str, int]]]:
    """Give the files of models with the sizes of their dynamic dimensions."""
    for path in sorted(INPUTS.glob("*.onnx")):
        yield path, {}
    for export in EXPORTS if folder is not None else ():
        assert folder is not None
        made = Made(export.name, folder / f"{export.name}.onnx")
        if made.path.exists():
            yield made.path, sizes(made.path.read_bytes(), made.input_sets()[0])
