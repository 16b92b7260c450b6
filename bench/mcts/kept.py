"""Runs of a kept table, read back: a later table need not make them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bench.common.cell_results import Result, keep_result, kept_result
from bench.common.result_file import read_object
from bench.mcts.cells import Cell
from bench.mcts.runs import Settings, TreeRuns
from relational_tensat.base.errors import InputError, UsageError

#: Limits that a run may have stayed below: then it is that of others, too.
_SECONDS = ("time_limit_s", "extract_time_limit_s")


def take_kept(table: Path, cells: Sequence[Cell], experiment: TreeRuns, folder: Path) -> int:
    """Let the runs of a kept table be results of cells that have none; return how many there are.

    Args:
        table: a folder that ``--save`` wrote.
        folder: where results are kept.

    Raises:
        UsageError: it was made with other settings.
        InputError: it cannot be read, or is no such table.
    """
    found = _kept_results(table, experiment.settings)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [cell for cell in cells if kept_result(cell, experiment, folder) is None]
    taken = [cell for cell in missing if cell in found]
    for cell in taken:
        keep_result(cell, experiment, folder, found[cell])
    return len(taken)


def _kept_results(table: Path, settings: Settings) -> dict[Cell, Result]:
    """Return the results of a kept table that are those of these limits of seconds, too."""
    path = table / "runs.json"
    if not path.is_file():
        raise InputError(f"{table}: no runs.json; expected a folder that bench mcts --save wrote")
    content = read_object(path, "the runs of bench mcts")
    made_with = content.get("settings", {})
    for name, value in asdict(settings).items():
        if name not in _SECONDS and made_with.get(name) != value:
            option = name.replace("_", "-")
            raise UsageError(
                f"{table}: made with --{option} {made_with.get(name)}; expected {value}"
            )
    results = {}
    for number, run in enumerate(content.get("runs", []), start=1):
        try:
            cell = Cell(**{field.name: run[field.name] for field in fields(Cell)})
            if _is_within(run, made_with, settings):
                results[cell] = {k: v for k, v in run.items() if k not in asdict(cell)}
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{path}: run {number}: no {error}; expected what bench mcts saves"
            ) from None
    return results


def _is_within(run: dict[str, Any], made_with: dict[str, Any], settings: Settings) -> bool:
    """Whether a run would have been the same with these limits of seconds: none of both was met."""
    searched_s, extracted_s = run.get("planning_cpu_s", 0.0), max(run["extract_cpu_s"].values())
    limits_s = [min(made_with[name], getattr(settings, name)) for name in _SECONDS]
    same = all(made_with[name] == getattr(settings, name) for name in _SECONDS)
    return same or (searched_s < limits_s[0] and extracted_s < limits_s[1])
