"""``python -m bench public-egraphs FOLDER``: e-graph files, by ours and by what one would use instead."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save, check_positive
from bench.common.machine import describe_commit, describe_machine, describe_versions
from bench.common.saving import RESULTS, report_saved
from bench.public_egraphs.families import COUNT, write_generated
from bench.public_egraphs.kept import Kept, Task, digest
from bench.public_egraphs.report import contradictions, markdown
from bench.public_egraphs.solving import METHODS, Solved, solve_apart
from relational_tensat.base.errors import InputError

_FOLDER = Path(__file__).parents[1] / "egraphs" / "public"

_SUFFIXES = (".json", ".json.gz")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("public-egraphs", help="e-graph files by ours, CP-SAT, HiGHS")
    add = parser.add_argument
    add("folder", nargs="?", type=Path, metavar="FOLDER",
        help=f"e-graph files, at any depth; by default {COUNT} generated ones")  # fmt: skip
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"of {', '.join(METHODS)}")  # fmt: skip
    add("--time-limit", type=float, default=60.0, metavar="S",
        help="CPU seconds of a method on a file (60)")  # fmt: skip
    add("--kept", type=Path, default=_FOLDER / "answers.jsonl", metavar="FILE",
        help="where each answer is kept at once; what is there is not done again")  # fmt: skip
    add("--fresh", action="store_true", help="do it again all the same")
    add("--limit", type=int, metavar="N", help="only the first N files")
    add_save(parser, "the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Solve, print the table, and save what was asked for; 4 where answers contradict each other.

    Raises:
        UsageError: a limit that cannot be.
        InputError: a folder or file that cannot be used.
    """
    check_positive(options.time_limit, "--time-limit")
    folder = options.folder
    if folder is None:
        folder = _FOLDER / "generated"
        write_generated(folder)
    kept = Kept(options.kept)
    rows: dict[str, dict[str, Solved]] = {}
    for file in egraph_files(folder)[: options.limit]:
        name = str(file.relative_to(folder)).removesuffix(".gz").removesuffix(".json")
        rows[name] = {
            method: _solved(file, name, method, kept, options) for method in options.methods
        }
    text = markdown(rows, options.methods)
    print(text)
    if options.save:
        path = RESULTS / f"public-egraphs-{date.today().isoformat()}.md"
        path.write_text(f"{_heading(options)}\n\n{text}", encoding="utf-8")
        report_saved(path)
    return 4 if contradictions(rows) else 0


def egraph_files(folder: Path) -> list[Path]:
    """Return the e-graph files of a folder and its sub-folders, by path.

    Raises:
        InputError: there is no such folder, or no such file in it.
    """
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_SUFFIXES))
    if not files:
        raise InputError(f"{folder}: expected a folder with e-graph files (.json, .json.gz)")
    return files


def _solved(file: Path, name: str, method: str, kept: Kept, options: argparse.Namespace) -> Solved:
    task = Task(name, digest(file), method, options.time_limit)
    solved = None if options.fresh else kept.get(task)
    if solved is None:
        solved = solve_apart(file, method, options.time_limit)
        kept.add(task, solved)
    print(f"{name}: {method} {solved.status} {solved.cost} {solved.cpu_s:.1f} s", file=sys.stderr)
    return solved


def _heading(options: argparse.Namespace) -> str:
    machine, versions = describe_machine(), describe_versions()
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"`python -m bench public-egraphs`, at most {options.time_limit:g} CPU seconds of a method on a "
        f"file, one thread; {date.today().isoformat()}, commit {describe_commit()}, {machine['cores']} "
        f"cores of {machine['cpu']}, load {os.getloadavg()[0]:.1f}; {packages}."
    )
