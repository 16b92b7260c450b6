"""Cells of an experiment run in several processes, and their results kept in a folder."""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from bench.common.result_file import read_object
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.files import write_aside
from relational_tensat.base.process import collect_rarely

#: Plain JSON.
Result: TypeAlias = dict[str, Any]


class Named(Protocol):
    """A cell: what is run for one row or point."""

    @property
    def name(self) -> str:
        """How files and messages call it."""


CellT = TypeVar("CellT", bound=Named)
CellT_contra = TypeVar("CellT_contra", bound=Named, contravariant=True)


class Experiment(Protocol[CellT_contra]):
    """How cells are run; other processes get it pickled."""

    def run(self, cell: CellT_contra) -> Result:
        """Run a cell."""

    def made_with(self, cell: CellT_contra) -> Result:
        """Return what a result depends on, beside the code."""

    def short(self, result: Result) -> str:
        """Return a result in a few words."""


def results_of(
    cells: Sequence[CellT],
    experiment: Experiment[CellT],
    folder: Path,
    *,
    jobs: int = 1,
    fresh: bool = False,
    total_limit_s: float = math.inf,
) -> dict[CellT, Result]:
    """Return every cell's result; those that the folder has, made with the same, are not run.

    Args:
        folder: where results are kept, one file a cell.
        jobs: processes at a time; with 1, all runs in this one.
        fresh: run all again (the code has changed).
        total_limit_s: after so many seconds no cell is begun any more; those left are ``not_run``,
            and not kept.

    Raises:
        InputError: the folder cannot be written, or a file in it is broken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    deadline_s = time.monotonic() + total_limit_s
    results = {} if fresh else _kept(cells, experiment, folder)
    waiting = [cell for cell in cells if cell not in results]
    if results:
        _report(f"{len(results)} of {len(cells)} cells kept from before, in {folder}")
    ran = _in_turn if jobs == 1 else partial(_side_by_side, jobs)
    for cell, result in ran(waiting, experiment, folder, deadline_s):
        results[cell] = result
        text = str(result["error"]) if "error" in result else experiment.short(result)
        _report(f"{len(results)}/{len(cells)} {cell.name}: {text}")
    return {cell: results.get(cell, _NOT_RUN) for cell in cells}


_NOT_RUN: Result = {"error": "not run: the total limit was reached", "not_run": True}


def _in_turn(
    cells: Sequence[CellT], experiment: Experiment[CellT], folder: Path, deadline_s: float
) -> Iterator[tuple[CellT, Result]]:
    for cell in cells:
        if time.monotonic() < deadline_s:
            yield cell, _run(cell, experiment, folder)


def _side_by_side(
    jobs: int,
    cells: Sequence[CellT],
    experiment: Experiment[CellT],
    folder: Path,
    deadline_s: float,
) -> Iterator[tuple[CellT, Result]]:
    # Not forked: DuckDB and HiGHS have threads, which a fork would not copy.
    context = multiprocessing.get_context("spawn")
    waiting, running = list(cells), dict[Future[Result], CellT]()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=collect_rarely) as pool:
        while waiting or running:
            if time.monotonic() >= deadline_s:
                waiting.clear()
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                running[pool.submit(_run, cell, experiment, folder)] = cell
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _run(cell: CellT, experiment: Experiment[CellT], folder: Path) -> Result:
    """Run a cell and keep its result; one that fails is kept, with what it failed of."""
    try:
        result = experiment.run(cell)
    except RelationalTensatError as error:
        result = {"error": str(error)}
    keep_result(cell, experiment, folder, result)
    return result


def keep_result(cell: CellT, experiment: Experiment[CellT], folder: Path, result: Result) -> None:
    """Write a cell's result into the folder where results are kept.

    Raises:
        InputError: it cannot be written.
    """
    path = folder / f"{cell.name}.json"
    content = {"made_with": experiment.made_with(cell), "result": result}
    with write_aside(path) as aside:
        (aside / path.name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _kept(
    cells: Sequence[CellT], experiment: Experiment[CellT], folder: Path
) -> dict[CellT, Result]:
    found = ((cell, kept_result(cell, experiment, folder)) for cell in cells)
    return {cell: result for cell, result in found if result is not None}


def kept_result(cell: CellT, experiment: Experiment[CellT], folder: Path) -> Result | None:
    """Return the result of a cell that the folder has, made with the same; None: there is none.

    Raises:
        InputError: its file is broken.
    """
    path = folder / f"{cell.name}.json"
    if not path.exists():
        return None
    content = read_object(path, "the result of a run")
    is_same = content.get("made_with") == experiment.made_with(cell)
    result: Result | None = content["result"] if is_same else None
    return result


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
