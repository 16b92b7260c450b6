"""An e-graph's transaction: tables, counters and catalogue go back together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.models import MODELS
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database, Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import restore_egraph, weight_only_classes
from relational_tensat.explore import ExplorationOptions, explore
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed
from tests.graphs import f32, fan_of_matmuls


@pytest.mark.parametrize("seed", range(20))
def test_weight_only_classes_are_those_of_a_slow_search(seed: int) -> None:
    """Cycles among them, leaves of no operand, classes without any e-node."""
    rng = np.random.default_rng(seed)
    n_classes, n_nodes = 12, 25
    owner = rng.integers(1, n_classes, n_nodes).astype(np.int32)
    children = rng.integers(1, n_classes + 1, (n_nodes, 3)).astype(np.int32)
    children[rng.random((n_nodes, 3)) < 0.6] = 0
    known: set[int] = set()
    for _ in range(n_classes):
        for of, below in zip(owner.tolist(), children.tolist(), strict=True):
            if all(child in known for child in below if child):
                known.add(of)
    assert weight_only_classes(owner, children).tolist() == sorted(known)
    assert weight_only_classes(owner[:0], children[:0]).tolist() == []


@pytest.mark.parametrize("model", ["mixed", "mobilenet_v2", "nasrnn"])
def test_catalogue_root_and_counters_come_back(model: str, tmp_path: Path) -> None:
    graph = mixed() if model == "mixed" else MODELS[model]()
    egraph = EGraph.create(graph, tmp_path / "run.duckdb")
    explore(egraph, example_rules("swap", "negate"), ExplorationOptions(2, node_limit=2000))
    egraph.close()
    database = Database(tmp_path / "run.duckdb", keep=True)
    again = restore_egraph(graph, database)
    assert again.root == egraph.root
    ((latest,),) = again.connection.execute("SELECT max(stamp) FROM enode").fetchall()
    assert again.clock == latest <= egraph.clock
    assert (again.next_id, again.e_nodes, again.e_classes) == (
        egraph.next_id,
        egraph.e_nodes,
        egraph.e_classes,
    )
    assert again.counts() == (egraph.e_nodes, egraph.e_classes)
    for name in ("symbols", "types", "signatures", "written"):
        assert getattr(again.catalogue, name) == getattr(egraph.catalogue, name), name
    for number, signature in enumerate(again.catalogue.signatures, start=1):
        symbol = again.catalogue.symbols[signature.symbol - 1]
        operands = again.catalogue.operand_types(number)
        assert again.catalogue.intern_checked(symbol.op, symbol.attrs, operands, None) == number
    again.close()


def test_a_new_database_takes_nothing_from_a_log_that_was_left(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    for suffix in (".wal", ".wal.checkpoint", ".wal.recovery"):
        path.with_name(path.name + suffix).write_bytes(b"of another")
    egraph = EGraph.create(mixed(), path)
    names = {file.name for file in tmp_path.iterdir() if file.suffix != ".part"}  # what is spilled
    assert names <= {path.name, f"{path.name}.wal"}
    egraph.close()
    assert Database(path, keep=True).execute("SELECT count(*) > 0 FROM enode") == [(True,)]


def _work(egraph: EGraph) -> None:
    """Change what a transaction must take back."""
    egraph.next_id, egraph.clock = egraph.next_id + 5, egraph.clock + 1
    egraph.catalogue.intern("tanh", {}, (f32(1),))
    egraph.catalogue.flush(egraph.database)


def _operators(egraph: EGraph) -> list[str]:
    return [op for (op,) in egraph.database.execute("SELECT op FROM symbol ORDER BY id")]


def test_what_ends_well_stays() -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    before = egraph.counters()
    with egraph.transaction():
        _work(egraph)
    assert egraph.next_id == before.next_id + 5
    assert _operators(egraph).count("tanh") == 1


@pytest.mark.parametrize(
    "reason",
    [Interrupted(), OutOfMemory("too little"), ValueError("a rule's"), KeyboardInterrupt()],
)
def test_whatever_ends_it_undoes_it(reason: BaseException) -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    before, operators = egraph.counters(), _operators(egraph)
    with pytest.raises(type(reason)), egraph.transaction():
        _work(egraph)
        raise reason
    assert egraph.counters() == before
    assert _operators(egraph) == operators
    with egraph.transaction():  # what was interned is written again
        _work(egraph)
    assert _operators(egraph) == [*operators, "tanh"]


@pytest.mark.parametrize("reason", [Interrupted(), OutOfMemory("too little")])
def test_a_flush_that_cannot_end_is_as_if_it_had_not_begun(
    reason: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    operators, insert = _operators(egraph), egraph.database.insert

    def fails(table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        if table == "signature":
            raise reason
        insert(table, columns)

    monkeypatch.setattr(egraph.database, "insert", fails)
    with pytest.raises(type(reason)), egraph.transaction():
        _work(egraph)
    assert _operators(egraph) == operators
    monkeypatch.undo()
    with egraph.transaction():
        _work(egraph)
    assert _operators(egraph) == [*operators, "tanh"]
