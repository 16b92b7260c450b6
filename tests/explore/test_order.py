"""No result depends on the order of rows or on how many threads a statement has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from bench.models import MODELS
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore, step
from relational_tensat.explore.compile import compiled_rules
from relational_tensat.explore.match import matcher
from relational_tensat.explore.subgraph import Subgraph
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.explore.example_rules import example_rules
from tests.explore.graphs import sum_of
from tests.tiers import nightly

_SHUFFLED = ("enode", "eclass", "instance", "template", "union_log")


def tables(
    graph: Graph,
    rules: Sequence[Rule],
    node_limit: int,
    *,
    opened: int = 1,
    later: int | None = None,
) -> Iterator[object]:
    """Yield the tables after an exploration, by how many threads DuckDB opens with and has later."""
    egraph = EGraph.create(graph, process=ProcessOptions(threads=opened))
    if later is not None:
        egraph.connection.execute(f"SET threads = {later}")
    explore(egraph, rules, ExplorationOptions(4, 2, node_limit=node_limit, search="saturation"))
    for table in ("enode", "eclass", "union_log"):
        yield egraph.connection.execute(f"FROM {table} ORDER BY ALL").fetchall()
    egraph.close()


def shuffle_before_steps(patch: pytest.MonkeyPatch) -> None:
    """Let every step find the rows of all tables in a random order."""
    begin = step._Step.__init__

    def shuffled(self: step._Step, subgraph: Subgraph) -> None:
        connection = subgraph.egraph.connection
        for table in _SHUFFLED:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE s AS FROM {table} ORDER BY random()")
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} FROM s")
        begin(self, subgraph)

    patch.setattr(step._Step, "__init__", shuffled)


_QUICK = ("nasrnn",)
CASES = [
    *((name, taso_rules) for name in _QUICK),
    *(nightly(name, taso_rules) for name in MODELS if name not in _QUICK),
    ("bert", load_rules),
    ("sum", lambda: example_rules("swap", "regroup")),
]


@pytest.mark.parametrize(("name", "rules"), CASES)
def test_threads_and_order_change_nothing(
    name: str, rules: Callable[[], Sequence[Rule]], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = sum_of(7) if name == "sum" else MODELS[name]()
    expected = list(tables(graph, rules(), 3_000))
    assert list(tables(graph, rules(), 3_000, opened=4)) == expected
    shuffle_before_steps(monkeypatch)
    assert list(tables(graph, rules(), 3_000, later=2)) == expected


def test_which_pairs_are_left_out_is_by_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more pairs of matches than are taken up."""
    for module in (compiled_rules, matcher):
        monkeypatch.setattr(module, "PAIR_CAP", 20)
    graph, rules = MODELS["nasrnn"](), taso_rules()
    expected = list(tables(graph, rules, 3_000))
    shuffle_before_steps(monkeypatch)
    assert list(tables(graph, rules, 3_000, later=2)) == expected
