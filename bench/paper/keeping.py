"""Cells run in several processes, and their results kept in a folder."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.paper.cells import Cell
from bench.paper.running import Result, Settings, rules_of, run_cell
from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.base.files import write_aside
from relational_tensat.rules.soundness.content import content_hash


def results_of(
    cells: Sequence[Cell],
    settings: Settings,
    folder: Path,
    *,
    jobs: int = 1,
    fresh: bool = False,
    total_limit_s: float = math.inf,
) -> dict[Cell, Result]:
    """Return every cell's result; those that the folder has, with the same settings and rules, are not run.

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
    results = {} if fresh else _kept(cells, settings, folder)
    waiting = [cell for cell in cells if cell not in results]
    if results:
        _report(f"{len(results)} of {len(cells)} cells kept from before, in {folder}")
    ran = _in_turn if jobs == 1 else partial(_side_by_side, jobs)
    for cell, result in ran(waiting, settings, folder, deadline_s):
        results[cell] = result
        _report(f"{len(results)}/{len(cells)} {cell.name}: {_short(result)}")
    return {cell: results.get(cell, _NOT_RUN) for cell in cells}


_NOT_RUN: Result = {"error": "not run: the total limit was reached", "not_run": True}


def _in_turn(
    cells: Sequence[Cell], settings: Settings, folder: Path, deadline_s: float
) -> Iterator[tuple[Cell, Result]]:
    for cell in cells:
        if time.monotonic() < deadline_s:
            yield cell, _run(cell, settings, folder)


def _side_by_side(
    jobs: int, cells: Sequence[Cell], settings: Settings, folder: Path, deadline_s: float
) -> Iterator[tuple[Cell, Result]]:
    # Not forked: DuckDB and HiGHS have threads, which a fork would not copy.
    context = multiprocessing.get_context("spawn")
    waiting, running = list(cells), dict[Future[Result], Cell]()
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        while waiting or running:
            if time.monotonic() >= deadline_s:
                waiting.clear()
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                running[pool.submit(_run, cell, settings, folder)] = cell
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _run(cell: Cell, settings: Settings, folder: Path) -> Result:
    """Run a cell and keep its result; one that fails is kept, with what it failed of."""
    try:
        result = run_cell(cell, settings)
    except RelationalTensatError as error:
        result = {"error": str(error)}
    path = folder / f"{cell.name}.json"
    content = {"made_with": _made_with(cell, settings), "result": result}
    with write_aside(path) as aside:
        (aside / path.name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return result


def _kept(cells: Sequence[Cell], settings: Settings, folder: Path) -> dict[Cell, Result]:
    results = {}
    for cell in cells:
        path = folder / f"{cell.name}.json"
        if path.exists():
            content = _read(path)
            if content.get("made_with") == _made_with(cell, settings):
                results[cell] = content["result"]
    return results


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}; expected the result of a run") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object with the result of a run")
    return content


_HASHES: dict[bool, str] = {}


def _made_with(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return what a result depends on, beside the code."""
    shipped = cell.variant == "shipped"
    if shipped not in _HASHES:
        hashes = [content_hash(rule) + repr(rule.worth) for rule in rules_of(cell)]
        _HASHES[shipped] = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return {"cell": asdict(cell), "settings": asdict(settings), "rules": _HASHES[shipped]}


def _short(result: Result) -> str:
    if "error" in result:
        return str(result["error"])
    parts = [str(result.get("stop_reason", ""))]
    parts += [f"{name} {answer['status']}" for name, answer in result.get("answers", {}).items()]
    return ", ".join(parts)


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
