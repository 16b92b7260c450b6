"""Between any two statements that are not of one transaction, the tables are a consistent e-graph."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.kills.kills import invariants_broken_in
from relational_tensat import Options, optimize, resume
from relational_tensat.base.files import sql
from relational_tensat.egraph.database import Database
from tests.run.resume.models import RULES, layers
from tests.tiers import nightly

SEARCHES = ("saturation", "focus", "mcts", "focus-mcts", "auto")


class Boundaries:
    """Looks at the tables of a file whenever a process killed now would leave them.

    Attributes:
        broken: the invariants that did not hold, each with the statement after which.
        seen: at how many moments all held.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken: list[tuple[str, str]] = []
        self.seen = 0
        self._is_inside = False
        self._patch(monkeypatch, "_control")
        self._patch(monkeypatch, "execute")
        self._patch(monkeypatch, "execute_all")

    def _patch(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        function = getattr(Database, name)

        def watched(database: Database, text: str, *args: Any, **named: Any) -> Any:
            result = function(database, text, *args, **named)
            if name == "_control":
                self._is_inside = text == "BEGIN"
            if database.is_file and not self._is_inside and _changes(text):
                self._look(database.connection, text)
            return result

        monkeypatch.setattr(Database, name, watched)

    def _look(self, connection: duckdb.DuckDBPyConnection, text: str) -> None:
        self.seen += 1
        connection = connection.cursor()  # it sees what is committed, and nobody interrupts it
        connection.execute("BEGIN")
        ((has_subgraphs,),) = connection.execute(sql("subgraphs/has_subgraphs")).fetchall()
        if has_subgraphs:  # a process that opens it does so first
            connection.execute(sql("subgraphs/show_all"))
        self.broken += [(name, text) for name in invariants_broken_in(connection)]
        connection.execute("ROLLBACK")


def _changes(text: str) -> bool:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    first = lines[0].split()[0]
    return first == "COMMIT" or (
        first in ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP")
        and " TEMP " not in lines[0]
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pair if pair == ("mcts", "focus") else nightly(*pair)
        for pair in itertools.product(SEARCHES, SEARCHES)
    ],
)
def test_a_kill_between_statements_leaves_a_consistent_e_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """Also where time is over before the search that goes on has begun."""
    database = tmp_path / "run.duckdb"
    options = Options.of(
        rules=RULES, db=database, cost="tensat_t4", search=first, iterations=6, multi_iterations=2,
        node_limit=300, subgraph_nodes=200, restarts=1, tree_decisions=2, tree_budget=12,
        extractor="greedy-dag", verify_runs=1, time_limit_s=20.0,
    )  # fmt: skip
    boundaries = Boundaries(monkeypatch)
    optimize(layers(), options)
    resume(database, layers(), search=second, time_limit_s=1e-6)
    resume(database, layers(), search=second, time_limit_s=0.5)
    assert boundaries.broken == []
    assert boundaries.seen > 5
