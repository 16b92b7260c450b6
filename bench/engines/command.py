"""``python -m bench engines``: this engine beside egglog, on the same graphs and rules."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.common.table import table_row
from bench.engines.translation import translate
from bench.engines.works import Task
from bench.models import TENSAT_MODELS
from relational_tensat.base.errors import (
    MissingDependencyError,
    UsageError,
    VerificationError,
    check_choice,
)

ENGINES = ("egglog", "ours")
_HEADER = (
    "| work | e-nodes | e-classes | egglog: CPU s | compile | process | MiB | e-nodes/s "
    "| ours: CPU s | compile | process | MiB | e-nodes/s | ours / egglog | process |"
)


@dataclass(frozen=True, slots=True)
class Row:
    """What an engine took for a task: the medians of several times. The keys of what the bench writes.

    Attributes:
        work, size: of the task.
        cpu_s: CPU seconds from the graph in memory to the explored e-graph.
        compile_cpu_s: of the rules' text before that: egglog compiles rules then, ours only reads them, and
            compiles what it searches for as it explores.
        process_cpu_s: of the whole process, its packages' import included.
        peak_mib: the most memory that the process had.
    """

    work: str
    size: int | str
    engine: str
    cpu_s: float
    compile_cpu_s: float
    process_cpu_s: float
    peak_mib: float
    e_nodes: int
    e_classes: int


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("engines", help="this engine beside egglog, on the same rules")
    add = parser.add_argument
    add("--works", metavar="A,B", default="chain,taso", help="(chain,taso)")
    add("--sizes", metavar="N,M", default="10000,100000,1000000",
        help="e-nodes of a chain's e-graph (10000,100000,1000000)")  # fmt: skip
    add("--models", metavar="A,B", default=",".join(TENSAT_MODELS), help="of taso (all nine)")
    add("--repeat", type=int, metavar="N", default=3, help="medians of so many in turn (3)")
    add("--json", action="store_true", help="print JSON in place of the table")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure both engines in turn, print what they took.

    Raises:
        UsageError: a work, size or model that does not exist or cannot be.
        MissingDependencyError: egglog is not installed.
        VerificationError: the e-graphs of the two differ in size.
    """
    tasks = _tasks(options)
    if find_spec("egglog") is None:
        raise MissingDependencyError(
            "egglog is not installed, expected it: pip install 'relational-tensat[bench]'"
        )
    with _compiled_modules() as environment:
        rows = [row for task in tasks for row in _measure(task, options.repeat, environment)]
    content = {"rows": [asdict(row) for row in rows]}
    print(json.dumps(content, indent=2) if options.json else "\n".join(_table(rows)))
    if options.save:
        path = RESULTS / f"engines-{date.today().isoformat()}.json"
        settings = {name: getattr(options, name) for name in ("works", "sizes", "models", "repeat")}
        report_saved(
            save_result(path, {"settings": settings, **content}, {"egglog": version("egglog")})
        )
    return 0


def _tasks(options: argparse.Namespace) -> list[Task]:
    if options.repeat < 1:
        raise UsageError(f"--repeat {options.repeat}, expected 1 or more")
    sizes: dict[str, list[int | str]] = {
        "chain": [_size(text.strip()) for text in options.sizes.split(",")],
        "taso": [
            check_choice("model", m.strip(), TENSAT_MODELS) for m in options.models.split(",")
        ],
    }
    works = [check_choice("work", name.strip(), sizes) for name in options.works.split(",")]
    return [Task(work, size) for work in works for size in sizes[work]]


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"--sizes {text!r}, expected whole numbers above 0, separated by commas")
    return int(text)


@contextmanager
def _compiled_modules() -> Iterator[dict[str, str]]:
    """Compile what the engines import, as is once so where they are used; yield their environment."""
    with tempfile.TemporaryDirectory(prefix="engines-") as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for engine in ENGINES:
            command = [sys.executable, "-c", f"import bench.engines.run_{engine}"]
            subprocess.run(command, env=environment, check=True)
        yield environment


def _measure(task: Task, repeat: int, environment: Mapping[str, str]) -> list[Row]:
    """Run both engines in turn; return what each took.

    Raises:
        VerificationError: their e-graphs differ.
    """
    inputs = {"egglog": json.dumps(asdict(translate(task))), "ours": json.dumps(asdict(task))}
    taken: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    for turn in range(repeat):
        print(f"{task}: {turn + 1} of {repeat} ...", file=sys.stderr, flush=True)
        for engine in ENGINES:
            taken[engine].append(_in_a_process(engine, inputs[engine], environment))
    found = {(t["e_nodes"], t["e_classes"]) for engine in ENGINES for t in taken[engine]}
    if len(found) > 1:
        raise VerificationError(f"{task}: e-nodes and e-classes {sorted(found)}, expected the same")
    return [_row(task, engine, taken[engine]) for engine in ENGINES]


def _in_a_process(engine: str, given: str, environment: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", f"bench.engines.run_{engine}"]
    process = subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment, check=False
    )
    if process.returncode:
        raise VerificationError(f"{engine} failed: {process.stderr.strip()[-500:]}")
    taken: dict[str, Any] = json.loads(process.stdout)
    return taken


def _row(task: Task, engine: str, taken: Sequence[dict[str, Any]]) -> Row:
    measured = ("cpu_s", "compile_cpu_s", "process_cpu_s", "peak_mib")
    medians = {name: round(statistics.median(t[name] for t in taken), 4) for name in measured}
    e_nodes, e_classes = taken[0]["e_nodes"], taken[0]["e_classes"]
    return Row(task.work, task.size, engine, **medians, e_nodes=e_nodes, e_classes=e_classes)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, a task a line."""
    yield _HEADER
    yield "| --- |" + " ---: |" * (_HEADER.count("|") - 2)
    for egglog, ours in zip(rows[::2], rows[1::2], strict=True):
        size = f"{ours.size:,}" if isinstance(ours.size, int) else ours.size
        cells = [f"{ours.work} {size}", f"{ours.e_nodes:,}", f"{ours.e_classes:,}"]
        for row in (egglog, ours):
            cells += [f"{row.cpu_s:.2f}", f"{row.compile_cpu_s:.2f}", f"{row.process_cpu_s:.2f}"]
            cells += [f"{row.peak_mib:,.0f}", f"{row.e_nodes / row.cpu_s:,.0f}"]
        cells += [f"{ours.cpu_s / egglog.cpu_s:.2f}"]
        cells += [f"{ours.process_cpu_s / egglog.process_cpu_s:.2f}"]
        yield table_row(cells)
