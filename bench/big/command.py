"""``python -m bench big``: models of gigabytes, and e-graph files of a million e-nodes.

Every measurement has a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from bench.big.egraphs import SHAPES, write_egraph
from bench.big.models import MODELS, ModelRow, measure_model
from bench.big.models import table as models_table
from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, report_saved, save_result
from relational_tensat.base.errors import RelationalTensatError, check_choice
from relational_tensat.base.option import choices
from relational_tensat.extract import ExtractionOptions

_READ = "read"
"""Stands among the extractors for reading the file and nothing else."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """What one process took. The attributes are keys of the results that the bench writes.

    Attributes:
        shape: of the e-graph, see ``big_egraphs``.
        what: ``read``, or an extractor.
        cpu_s, wall_s: seconds of reading or, without reading, of extraction.
        peak_mib: the most memory that the process had, Python and its packages included.
        cost: of the extracted graph, in the file's unit; None for reading.
        note: what made it.
    """

    shape: str
    what: str
    e_nodes: int
    file_mib: float
    cpu_s: float
    wall_s: float
    peak_mib: float
    cost: float | None = None
    note: str = ""


_EXTRACTORS = choices(ExtractionOptions, "extractor")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("big", help="large models, and e-graph files of a million e-nodes")
    add = parser.add_argument
    add(
        "--models", nargs="*", default=list(MODELS), metavar="MODEL", help=f"of {', '.join(MODELS)}"
    )
    add(
        "--shapes", nargs="*", default=list(SHAPES), metavar="SHAPE", help=f"of {', '.join(SHAPES)}"
    )
    add("--e-nodes", type=int, default=1_000_000, metavar="N", help="of a file (1000000)")
    add("--extractors", nargs="*", default=["greedy", "greedy-dag"], metavar="NAME",
        help=f"of {', '.join(_EXTRACTORS)} (greedy greedy-dag)")  # fmt: skip
    add("--time-limit", type=float, default=60.0, metavar="S", help="of one extraction (60)")
    add("--folder", type=Path, help="where the files are kept; by default they are not")
    add("--json", action="store_true", help="print JSON in place of the table")
    add_save(parser, "the rows")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the files, measure, print.

    Raises:
        UsageError: a shape or extractor that does not exist.
        RelationalTensatError: a measurement ended without an answer.
    """
    for model in options.models:
        check_choice("model", model, MODELS)
    for shape in options.shapes:
        check_choice("shape", shape, SHAPES)
    for extractor in options.extractors:
        check_choice("extractor", extractor, _EXTRACTORS)
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as temporary:
        folder = options.folder or Path(temporary)
        models = [row for model in options.models for row in measure_model(model, folder)]
        rows = _measure_all(options, folder)
    if options.json:
        print(json.dumps(_as_json(models, rows), indent=2))
    else:
        tables = [models_table(models)] if models else []
        print("\n\n".join([*tables, *([table(rows)] if rows else [])]))
    if options.save:
        report_saved(save(models, rows, options, RESULTS))
    return 0


def table(rows: list[Row]) -> str:
    """Return the rows for people."""
    lines = [
        f"{'shape':6} {'what':15} {'CPU s':>8} {'wall s':>8} {'peak MiB':>9} {'cost':>14}  note"
    ]
    for row in rows:
        cost = "" if row.cost is None else f"{row.cost:,.1f}"
        lines.append(
            f"{row.shape:6} {row.what:15} {row.cpu_s:8.1f} {row.wall_s:8.1f} {row.peak_mib:9,.0f} "
            f"{cost:>14}  {row.note}".rstrip()
        )
    return "\n".join(lines)


def _as_json(models: list[ModelRow], rows: list[Row]) -> dict[str, Any]:
    return {
        "models": [dataclasses.asdict(row) for row in models],
        "rows": [dataclasses.asdict(row) for row in rows],
    }


def save(
    models: list[ModelRow], rows: list[Row], options: argparse.Namespace, directory: Path
) -> Path:
    """Write the rows with their settings, machine, versions and commit; return the file."""
    path = directory / f"big-{date.today().isoformat()}.json"
    content = {
        "settings": {"e_nodes": options.e_nodes, "time_limit_s": options.time_limit},
        **_as_json(models, rows),
    }
    return save_result(path, content)


def _measure_all(options: argparse.Namespace, folder: Path) -> list[Row]:
    rows = []
    for shape in options.shapes:
        path = folder / f"{shape}-{options.e_nodes}.json"
        if not path.exists():
            print(f"{path} ...", file=sys.stderr, flush=True)
            write_egraph(path, shape, options.e_nodes)
        for task in (_READ, *options.extractors):
            print(f"{shape}, {task} ...", file=sys.stderr, flush=True)
            values = _in_a_process(path, task, options.time_limit)
            rows.append(Row(shape, task, options.e_nodes, path.stat().st_size / 2**20, **values))
    return rows


def _in_a_process(path: Path, task: str, time_limit_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.big.command", str(path), task, str(time_limit_s)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        reason = (process.stderr.splitlines() or ["no message"])[-1]
        raise RelationalTensatError(f"{path}: {task}: exit code {process.returncode}: {reason}")
    values: dict[str, Any] = json.loads(process.stdout)
    return values


def measure_here(path: Path, task: str, time_limit_s: float) -> dict[str, Any]:
    """Read or extract in this process; return the values of a row."""
    from relational_tensat.extract import extract
    from relational_tensat.extract.interchange import read_egraph_json

    cpu_s, wall_s = time.process_time(), time.perf_counter()
    egraph = read_egraph_json(path)
    answer: dict[str, Any] = {}
    if task != _READ:
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        extraction = extract(egraph.problem, ExtractionOptions(task, time_limit_s=time_limit_s))
        answer = {"cost": extraction.cost_us, "note": extraction.note}
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "cpu_s": time.process_time() - cpu_s,
        "wall_s": time.perf_counter() - wall_s,
        "peak_mib": peak_kib / 1024,
        **answer,
    }


if __name__ == "__main__":
    _file, _what, _limit = sys.argv[1:]
    print(json.dumps(measure_here(Path(_file), _what, float(_limit))))
