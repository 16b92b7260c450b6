"""Explorations resumed from what the disk had at a moment: between statements, and in mid-write."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.kills.tables import dump
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.restore import restore_egraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.explore.checkpoint import read_checkpoint
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed

SCHEDULE = {
    "schedule": "saturate(single); repeat 2 (multi; swap + all)", "multi_iterations": 1,
    "iterations": 9,
}  # fmt: skip
LIMITS = ExplorationOptions(4, 2, multi_schedule="first", node_limit=600)


def copied(database: Path, folder: Path) -> Path:
    """Copy a database with its log: what a process killed now would leave."""
    folder.mkdir()
    for file in database.parent.glob(f"{database.name}*"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
    return folder / database.name


def explored(
    graph: Graph,
    path: Path,
    before: Callable[[int], None] | None = None,
    after: Callable[[int], str | None] | None = None,
    **modes: Any,
) -> tuple[Exploration, dict[str, list[tuple[Any, ...]]], int]:
    """Explore in a file; return how it went, all its rows, and the count of statements."""
    egraph = EGraph.create(graph, path)
    execute, count = egraph.database.execute, 0

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if before is not None:
            before(count)
        return execute(*args, **kwargs)

    egraph.database.execute = counting  # type: ignore[method-assign]
    exploration = explore(
        egraph, example_rules(), replace(LIMITS, **modes), observer=Observer(after=after)
    )
    rows = dump(egraph.connection)
    egraph.close()
    return exploration, rows, count


def resumed(graph: Graph, path: Path, **modes: Any) -> tuple[int, dict[str, list[tuple[Any, ...]]]]:
    """Resume an exploration; return after which iteration, -1 if it had not begun, and all rows."""
    database = Database(path, keep=True)
    start = read_checkpoint(database.connection)
    if start is None:
        database.close()
        return -1, {}
    egraph = restore_egraph(graph, database, start.counters)
    if not database.execute("SELECT 1 FROM meta WHERE key = 'stop_reason'"):
        explore(egraph, example_rules(), replace(LIMITS, **modes), start=start)
    assert_invariants(egraph, modes.get("cycle_filter", "efficient"))
    rows = dump(egraph.connection)
    egraph.close()
    return start.iteration, rows


@pytest.mark.parametrize(
    ("modes", "step"),
    [({}, 23), ({"cycle_filter": "none"}, 31), (SCHEDULE, 53)],
    ids=["default", "no filter", "schedule"],
)
def test_between_any_two_statements(modes: dict[str, Any], step: int, tmp_path: Path) -> None:
    copies: list[Path] = []

    def before(count: int) -> None:
        if count % step == 0:
            copies.append(copied(tmp_path / "whole.duckdb", tmp_path / f"at{count}"))

    exploration, rows, _ = explored(mixed(), tmp_path / "whole.duckdb", before, **modes)
    assert exploration.iterations > 2
    iterations = set()
    for copy in copies:
        iteration, again = resumed(mixed(), copy, **modes)
        iterations.add(iteration)
        assert iteration < 0 or again == rows, copy
    assert len(iterations) > 1


def test_in_the_middle_of_any_write(tmp_path: Path) -> None:
    """The log of changes is cut anywhere behind the e-graph's creation: the last whole commit counts."""
    whole: list[Path] = []
    created: list[int] = []

    def before(_: int) -> None:
        created.append((tmp_path / "whole.duckdb.wal").stat().st_size)

    def after(iteration: int) -> None:
        """Keep the latest copy."""
        whole[:] = [copied(tmp_path / "whole.duckdb", tmp_path / f"after{iteration}")]

    _, rows, _ = explored(mixed(), tmp_path / "whole.duckdb", before, after=after)
    draw = random.Random(6)
    size = whole[0].with_name("whole.duckdb.wal").stat().st_size
    iterations = set()
    for cut in range(8):
        copy = copied(whole[0], tmp_path / f"cut{cut}")
        log = copy.with_name("whole.duckdb.wal")
        log.write_bytes(log.read_bytes()[: draw.randrange(created[0], size)])
        iteration, again = resumed(mixed(), copy)
        iterations.add(iteration)
        assert iteration < 0 or again == rows, cut
    assert len(iterations) > 1


def test_a_file_and_memory_hold_the_same_and_only_a_file_is_written_down(tmp_path: Path) -> None:
    _, rows, _ = explored(mixed(), tmp_path / "whole.duckdb")
    egraph = EGraph.create(mixed())
    explore(egraph, example_rules(), LIMITS)
    assert dump(egraph.connection) == rows
    assert egraph.connection.execute("SELECT count(*) FROM checkpoint").fetchall() == [(0,)]


def test_what_only_an_exploration_needs_goes_when_it_ends(tmp_path: Path) -> None:
    _, rows, _ = explored(mixed(), tmp_path / "whole.duckdb")
    assert not {"instance", "template"} & set(rows)


def test_another_exploration_of_the_same_file_can_be_resumed_too(tmp_path: Path) -> None:
    path = tmp_path / "twice.duckdb"
    copies: list[Path] = []

    def after(iteration: int) -> None:
        copies.append(copied(path, tmp_path / f"second{iteration}"))

    egraph = EGraph.create(mixed(), path)
    explore(egraph, example_rules("swap"), ExplorationOptions(2))
    explore(egraph, example_rules(), LIMITS, observer=Observer(after=after))
    rows = dump(egraph.connection)
    egraph.close()
    assert copies
    for copy in copies:
        _, again = resumed(mixed(), copy)
        assert again == rows
