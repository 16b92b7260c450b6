"""Time is counted in the phase in which it passes, and only there."""

from __future__ import annotations

import time

import pytest

from bench.scale.families import chain
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.stopwatch import OTHER, Stopwatch
from relational_tensat.explore import explore
from tests.explore.example_rules import example_rules


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time, which stands still."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_a_phase_inside_another_is_not_part_of_it(clock: list[float]) -> None:
    watch = Stopwatch()
    clock[0] = 1.0
    with watch.phase("outer"):
        clock[0] = 3.0
        with watch.phase("inner"):
            clock[0] = 7.0
            watch.time_of("query").seconds += 1.5
        clock[0] = 15.0
    with pytest.raises(ValueError, match="raised"), watch.phase("inner"):
        clock[0] = 31.0
        raise ValueError("raised")
    clock[0] = 63.0
    spent = watch.spent()
    assert dict(spent.phases) == {OTHER: 33.0, "outer": 10.0, "inner": 20.0}
    assert set(spent.statements) == {("inner", "query")}
    assert spent.database_seconds("inner") == 1.5
    assert spent.database_seconds("outer") == 0.0


def test_rows_that_are_read_and_rows_that_change_are_counted() -> None:
    database = Database()
    database.execute("CREATE TABLE t AS SELECT range AS a FROM range(5)", name="make")
    database.execute("FROM t", name="read")
    database.execute("FROM t WHERE a > 2", name="read")
    database.execute("DELETE FROM t WHERE a > 1", name="delete")
    database.insert("t", {"a": [1, 2]})
    database.begin()
    with database.stopwatch.phase("later"):
        database.execute("SELECT count(*) FROM t", name="read")
    database.commit()
    statements = database.stopwatch.spent().statements
    counts = {key: (entry.count, entry.rows) for key, entry in statements.items()}
    assert counts == {
        (OTHER, "make"): (1, 5),
        (OTHER, "read"): (2, 7),
        (OTHER, "delete"): (1, 3),
        (OTHER, "insert t"): (1, 2),
        (OTHER, "begin"): (1, 0),
        ("later", "read"): (1, 1),
        (OTHER, "commit"): (1, 0),
    }


def test_an_exploration_has_its_phases() -> None:
    egraph = EGraph.create(chain(links=2))
    with egraph.database.stopwatch.phase("explore"):
        explore(egraph, example_rules("swap", "regroup"))
    spent = egraph.database.stopwatch.spent()
    assert {"tables", "explore", "match", "apply", "rebuild", "filter cycles"} <= set(spent.phases)
    assert ("match", "match") in spent.statements
    assert ("rebuild", "rebuild/components") in spent.statements
    for phase, seconds in spent.phases.items():
        assert spent.database_seconds(phase) <= seconds
    controls = {"begin", "commit", "rollback"}
    count = sum(e.count for (_, name), e in spent.statements.items() if name not in controls)
    assert count == egraph.database.statements
    egraph.close()
