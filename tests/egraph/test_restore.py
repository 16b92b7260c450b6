"""An e-graph read back from its tables is the one that wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.restore import restore_egraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.models import MODELS
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed


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
