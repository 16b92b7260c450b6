"""The checkpoint is what its table holds, and comes back as it was."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed


def test_the_columns_are_the_fields() -> None:
    egraph = EGraph.create(mixed())
    columns = [name for name, *_ in egraph.connection.execute("DESCRIBE checkpoint").fetchall()]
    assert columns == [field.name for field in fields(Checkpoint)]


def test_the_last_one_written_is_read() -> None:
    egraph = EGraph.create(mixed())
    assert read_checkpoint(egraph.connection) is None
    first = Checkpoint(7, iteration=1, scarce=True, rule_seconds=[0.5, 0.0])
    second = replace(first, iteration=2, stopped="nodes")
    for checkpoint in (first, second):
        write_checkpoint(egraph, checkpoint)
    stored = read_checkpoint(egraph.connection)
    assert stored is not None
    assert stored.counters == egraph.counters()
    now = egraph.counters()
    counters = {name: getattr(now, name) for name in ("next_id", "clock", "e_nodes", "e_classes")}
    assert stored == replace(second, **counters)


def test_there_is_one_for_each_iteration(tmp_path: Path) -> None:
    egraph = EGraph.create(mixed(), tmp_path / "run.duckdb")
    explore(egraph, example_rules(), ExplorationOptions(3, 2, node_limit=600))
    rows = egraph.connection.execute("SELECT iteration FROM checkpoint ORDER BY rowid").fetchall()
    assert rows == [(0,), (1,), (2,), (3,)]
