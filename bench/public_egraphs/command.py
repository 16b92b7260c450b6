"""``python -m bench public-egraphs FOLDER``: e-graph files, by ours and by what one would use instead."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save, check_positive
from bench.common.machine import describe_commit, describe_machine, describe_versions
from bench.common.result_file import RESULTS, report_saved
from bench.public_egraphs.families import COUNT, write_generated
from bench.public_egraphs.kept import Kept, Task, digest
from bench.public_egraphs.report import contradictions, markdown
from bench.public_egraphs.solvers import METHODS, Solved, solve_apart
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
    add("--jobs", type=int, default=1, metavar="N",
        help="processes at a time, one on each core (1)")  # fmt: skip
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
    check_positive(options.jobs, "--jobs")
    folder, what = options.folder, "public-egraphs"
    if folder is not None:
        what = f"{what}-{folder.resolve().name}"
    else:
        folder, what = _FOLDER / "generated", "generated-egraphs"
        write_generated(folder)
    files = egraph_files(folder)[: options.limit]
    answers = _answers(files, Kept(options.kept), folder, options)
    rows = {
        name: {method: answers[name, method] for method in options.methods}
        for name in (_name(file, folder) for file in files)
    }
    text = markdown(rows, options.methods)
    print(text)
    if options.save:
        path = RESULTS / f"{what}-{date.today().isoformat()}{_variant(options)}.md"
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


def _answers(
    files: list[Path], kept: Kept, folder: Path, options: argparse.Namespace
) -> dict[tuple[str, str], Solved]:
    """Return the answer of every method to every file by their names; what is new is kept at once."""
    tasks = {
        Task(_name(file, folder), digest(file), method, options.time_limit): file
        for file in files
        for method in options.methods
    }
    known = {} if options.fresh else {task: kept.get(task) for task in tasks}
    answers = {task: solved for task, solved in known.items() if solved is not None}
    missing = {task: file for task, file in tasks.items() if task not in answers}
    for task, solved in _solved(missing, options.jobs):
        kept.add(task, solved)
        answers[task] = solved
        result = f"{task.method} {solved.status} {solved.cost} {solved.cpu_s:.1f} s"
        print(f"{task.file}: {result}", file=sys.stderr)
    return {(task.file, task.method): answers[task] for task in tasks}


def _solved(files: Mapping[Task, Path], jobs: int) -> Iterator[tuple[Task, Solved]]:
    """Yield what tasks come to, as soon as it is there; a thread each waits for its process."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {
            pool.submit(solve_apart, file, task.method, task.limit_s): task
            for task, file in files.items()
        }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _name(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder)).removesuffix(".gz").removesuffix(".json")


def _variant(options: argparse.Namespace) -> str:
    """Return what tells tables of one day apart: the limit, and whether methods or files were left out."""
    methods = "" if set(options.methods) == set(METHODS) else "-" + "-".join(options.methods)
    files = "" if options.limit is None else f"-first-{options.limit}"
    return f"-{options.time_limit:g}s{methods}{files}"


def _heading(options: argparse.Namespace) -> str:
    machine, versions = describe_machine(), describe_versions()
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"`python -m bench public-egraphs`, at most {options.time_limit:g} CPU seconds of a method on a "
        f"file, one thread; {date.today().isoformat()}, commit {describe_commit()}, {machine['cores']} "
        f"cores of {machine['cpu']}, load {os.getloadavg()[0]:.1f}; {packages}."
    )
