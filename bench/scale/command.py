"""``python -m bench scale``: how exploration grows with the e-graph, up to ten million e-nodes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save, check_positive
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.scale.families import FAMILIES
from bench.scale.growth import exponents, growth_table
from bench.scale.limits import Seen, limits_table, look_at_limits
from bench.scale.measure import Row, Task
from bench.scale.processes import Measure, run_task
from relational_tensat.base.errors import UsageError, check_choice, check_memory_limit


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("scale", help="growth of exploration up to 10 million e-nodes")
    add = parser.add_argument
    add("--families", metavar="A,B", default=",".join(FAMILIES),
        help=f"of {', '.join(FAMILIES)} (all)")  # fmt: skip
    add("--sizes", metavar="N,M", default="10000,100000,1000000",
        help="e-nodes of an e-graph (10000,100000,1000000)")  # fmt: skip
    add("--layers", metavar="N,M", default="100,300,1000", help="of a transformer (100,300,1000)")
    add("--time-limit", type=float, default=120.0, metavar="S",
        help="of one exploration, and of one extraction (120)")  # fmt: skip
    add("--memory-limit", default="6GB", metavar="SIZE", help="of one database (6GB)")
    add("--limits-at", type=int, metavar="N",
        help="see instead whether limits hold, on the first family at this size")  # fmt: skip
    add("--json", action="store_true", help="print JSON in place of the table")
    add_save(parser, "what was measured")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, measure: Measure = run_task) -> int:
    """Measure every family at every size, or the limits at one; print it.

    Raises:
        UsageError: a family, size or limit that does not exist or cannot be.
    """
    tasks = _tasks(options)
    if options.limits_at is not None:
        findings = list(look_at_limits(tasks[0], measure))
        content: dict[str, object] = {"limits": [asdict(finding) for finding in findings]}
        text, name = limits_table(findings), "scale-limits"
    else:
        rows = _measure_all(tasks, measure, options)
        content, findings = _content(rows), []
        text, name = growth_table(rows), "scale"
    print(json.dumps(content, indent=2) if options.json else text)
    if options.save:
        report_saved(_save(name, content, options))
    return _exit_code(findings)


def _save(name: str, content: Mapping[str, object], options: argparse.Namespace) -> Path:
    path = RESULTS / f"{name}-{date.today().isoformat()}.json"
    return save_result(path, {"settings": _settings(options), **content})


def _exit_code(findings: Sequence[Seen]) -> int:
    """Return 0, or 4 where a limit was not held."""
    return 0 if all(finding.holds for finding in findings) else 4


def _tasks(options: argparse.Namespace) -> list[Task]:
    names = [name.strip() for name in options.families.split(",")]
    for name in names:
        check_choice("family", name, FAMILIES)
    check_positive(options.time_limit, "--time-limit")
    check_memory_limit(options.memory_limit)
    sizes = {
        "e-nodes": _numbers("--sizes", options.sizes),
        "layers": _numbers("--layers", options.layers),
    }
    if options.limits_at is not None:
        sizes = dict.fromkeys(sizes, _numbers("--limits-at", str(options.limits_at)))
    return [
        Task(name, size, options.time_limit, options.memory_limit)
        for name in names
        for size in sizes[FAMILIES[name].sized_by]
    ]


def _numbers(flag: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise UsageError(f"{flag} {text!r}, expected whole numbers above 0, separated by commas")
    return [int(part) for part in parts]


def _measure_all(tasks: Sequence[Task], measure: Measure, options: argparse.Namespace) -> list[Row]:
    """Return the rows; what there is of them is saved after each, since a bench of hours may be ended."""
    rows: list[Row] = []
    for task in tasks:
        print(f"{task.family}, {task.size:,} ...", file=sys.stderr, flush=True)
        rows.append(measure(task))
        if options.save:
            _save("scale", _content(rows), options)
    return rows


def _content(rows: Sequence[Row]) -> dict[str, object]:
    families = dict.fromkeys(row.family for row in rows)
    return {
        "rows": [asdict(row) for row in rows],
        "exponents": {
            family: exponents([row for row in rows if row.family == family]) for family in families
        },
    }


def _settings(options: argparse.Namespace) -> dict[str, object]:
    left_out = ("command", "run", "json", "save")
    return {key: value for key, value in sorted(vars(options).items()) if key not in left_out}
