"""Runs of a kept table, read back: a later table need not make them again."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias, TypeVar

from bench.common.cell_results import keep_result, kept_result
from bench.common.result_file import read_object
from bench.search.cells import Cell
from bench.search.measure import BUDGETS_S
from bench.search.runs import SearchRuns, Settings
from bench.search.search_run import (
    EXTRACTED_ONCE,
    GrownSubgraph,
    Made,
    Moment,
    SearchRun,
    Snapshot,
)
from bench.search.tables import MOMENTS, RUN_KEYS, RUNS, SUBGRAPHS
from relational_tensat.base.errors import InputError, UsageError

#: What the rows of a file are of.
_Key: TypeAlias = tuple[str, ...]

_ValueT = TypeVar("_ValueT")


def take_kept(table: Path, cells: Sequence[Cell], experiment: SearchRuns) -> int:
    """Let the runs of a kept table be results of cells that have none; return how many there are.

    What a run was made by (date, commit, load) goes with it.

    Args:
        table: a folder that ``--save`` wrote.

    Raises:
        UsageError: it was made with other settings.
        InputError: it cannot be read, or is no such table.
    """
    runs = {_cell_key(run): run for run in kept_runs(table, experiment.settings)}
    experiment.folder.mkdir(parents=True, exist_ok=True)
    taken = 0
    for cell in cells:
        run = runs.get(_key_of(cell))
        if run is None or run.cpu_limit_s != cell.limits.cpu_s:
            continue
        if kept_result(cell, experiment, experiment.folder) is None:
            keep_result(cell, experiment, experiment.folder, {"run": asdict(run)})
            taken += 1
    return taken


def kept_runs(table: Path, settings: Settings) -> list[SearchRun]:
    """Return the runs of a kept table.

    Raises:
        UsageError: it was made with other settings.
        InputError: it cannot be read, or is no such table.
    """
    origin = table / "runs.json"
    if not origin.is_file():
        raise InputError(f"{table}: no runs.json; expected a folder that bench search --save wrote")
    made_with = read_object(origin, "settings").get("settings", {})
    for name, value in _named(settings).items():
        if made_with.get(name) != value:
            raise UsageError(
                f"{table}: made with --{name.replace('_', '-')} {made_with.get(name)}; expected {value}"
            )
    moments = _grouped(table / "moments.csv", MOMENTS, _moment)
    subgraphs = _grouped(table / "subgraphs.csv", SUBGRAPHS, _subgraph, is_needed=False)
    return list(
        _read(
            table / "runs.csv",
            RUNS,
            lambda row: _run(row, moments[_key(row)], subgraphs[_key(row)]),
        )
    )


def _named(settings: Settings) -> dict[str, str]:
    """Return settings by the options that they are, as ``--save`` writes them."""
    values = {
        "rules": settings.rules,
        "cost": settings.cost,
        "subgraph_nodes": settings.subgraph_nodes,
        "universe_limit": settings.universe_limit,
        "time_limit": settings.time_limit_s,
        "extract_time_limit": settings.extract_time_limit_s,
    }
    return {name: str(value) for name, value in values.items()}


def _run(
    row: Mapping[str, str], moments: Sequence[Moment], subgraphs: Sequence[GrownSubgraph]
) -> SearchRun:
    cpu_limit_s = float(row["CPU limit"]) if row["CPU limit"] else None
    is_taken = row["search"] in EXTRACTED_ONCE and cpu_limit_s is not None
    budgets_s = [s for s in BUDGETS_S if is_taken and s < float(row["CPU limit"])]
    return SearchRun(
        model=row["model"],
        search=row["search"],
        k_multi=int(row["k_multi"]),
        node_limit=int(row["node limit"]),
        e_nodes=int(row["e-nodes"]),
        subgraphs=int(row["subgraphs"]),
        iterations=int(row["iterations"]),
        stop_reason=row["ended by"],
        cost_before_us=float(row["before µs"]),
        cost_after_us=float(row["after µs"]),
        bound_us=float(row["bound µs"] or 0),
        explore_cpu_s=float(row["exploration CPU s"]),
        cpu_s=float(row["CPU s"]),
        wall_s=float(row["wall s"]),
        join_ms=float(row["join ms"]),
        cpu_limit_s=cpu_limit_s,
        seed=int(row["seed"]),
        moments=tuple(moments),
        snapshots=tuple(Snapshot(s, float(row[f"at {s:g} s"])) for s in budgets_s),
        grown=tuple(subgraphs),
        same_as=row["run of"],
        made=Made(row["date"], row["commit"], float(row["least load"]), float(row["most load"])),
    )


def _moment(row: Mapping[str, str]) -> Moment:
    return Moment(float(row["CPU s"]), float(row["cost µs"]), int(row["e-nodes"]))


def _subgraph(row: Mapping[str, str]) -> GrownSubgraph:
    return GrownSubgraph(
        row["kind"],
        int(row["subgraph's limit"]),
        float(row["cheapest µs"]),
        int(row["e-nodes"]),
        int(row["iteration"]),
        row["ended by"],
        float(row["CPU s"]),
        float(row["bound µs"]),
    )


def _grouped(
    path: Path,
    titles: Sequence[str],
    made: Callable[[Mapping[str, str]], _ValueT],
    *,
    is_needed: bool = True,
) -> Mapping[_Key, list[_ValueT]]:
    """Return the rows of a file by the run that they are of."""
    found: dict[_Key, list[_ValueT]] = defaultdict(list)
    if is_needed or path.exists():
        for key, value in _read(path, titles, lambda row: (_key(row), made(row))):
            found[key].append(value)
    return found


def _read(
    path: Path, titles: Sequence[str], made: Callable[[Mapping[str, str]], _ValueT]
) -> Iterator[_ValueT]:
    """Yield what is made of each row of a file.

    Raises:
        InputError: it cannot be read, has other columns, or a row does not have numbers in their places.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None or list(reader.fieldnames) != list(titles):
                raise InputError(f"{path}:1: expected the columns {', '.join(titles)}")
            for row in reader:
                try:
                    yield made(row)
                except (TypeError, ValueError) as error:
                    raise InputError(f"{path}:{reader.line_num}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _key(row: Mapping[str, str]) -> _Key:
    return tuple(row[title] for title in RUN_KEYS)


def _cell_key(run: SearchRun) -> _Key:
    return tuple(map(str, (run.model, run.search, run.k_multi, run.node_limit, run.seed)))


def _key_of(cell: Cell) -> _Key:
    """Return what the run of a cell is called in tables: backtracking has no limit of e-nodes."""
    limits = (
        (0, 0) if cell.search == "backtracking" else (cell.limits.k_multi, cell.limits.node_limit)
    )
    return tuple(map(str, (Path(cell.model).stem, cell.search, *limits, cell.seed)))
