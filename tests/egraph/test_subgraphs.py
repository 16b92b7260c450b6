"""Several e-graphs in one database: tables of their own, one catalogue."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import read_schema, without_comment
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.graphs import fan_of_matmuls, shared_matmuls


def test_each_has_the_tables_of_its_own_graph() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    second = first.beside(shared_matmuls(), "second")
    assert same(first, EGraph.create(fan_of_matmuls(3)))
    assert same(second, EGraph.create(shared_matmuls()))
    assert first.counts() != second.counts()
    assert_invariants(first)
    assert_invariants(second)


def test_they_share_the_catalogue() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    signatures = len(first.catalogue.signatures)
    second = first.beside(fan_of_matmuls(3), "again")
    assert second.catalogue is first.catalogue
    assert len(first.catalogue.signatures) == signatures
    assert first.database.execute("SELECT count(*) FROM signature") == [(signatures,)]


def test_each_can_be_asked_for_by_its_name() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    second = first.beside(shared_matmuls(), 'b\'s "subgraph"')
    ((count,),) = first.database.execute('SELECT count(*) FROM "b\'s ""subgraph""".enode_text')
    assert count == second.e_nodes != first.e_nodes


def test_temporary_tables_and_transactions_are_their_own() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    second = first.beside(shared_matmuls(), "second")
    for egraph in (first, second):
        text = "CREATE OR REPLACE TEMP TABLE match AS SELECT id FROM enode"
        egraph.database.execute(text)
    with pytest.raises(ZeroDivisionError), second.transaction():
        second.database.execute("DELETE FROM enode")
        with first.transaction():
            first.database.execute("UPDATE enode SET stamp = 7")
        raise ZeroDivisionError
    assert first.database.execute("SELECT count(*) FROM match") == [(first.e_nodes,)]
    assert second.database.execute("SELECT count(*) FROM match") == [(second.e_nodes,)]
    assert first.database.execute("SELECT DISTINCT stamp FROM enode") == [(7,)]
    assert second.counts() == (second.e_nodes, second.e_classes)


def test_they_are_interrupted_one_by_one() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    second = first.beside(shared_matmuls(), "second")
    second.database.interrupt()
    assert second.database.is_interrupted
    assert not first.database.is_interrupted


def test_a_name_is_of_one_subgraph() -> None:
    first = EGraph.create(fan_of_matmuls(3))
    first.beside(shared_matmuls(), "second")
    for name in ("second", "main"):
        with pytest.raises(
            UsageError, match=f"subgraph '{name}': the database has one of that name"
        ):
            first.beside(shared_matmuls(), name)


def test_a_file_keeps_them_all(tmp_path: Path) -> None:
    path = tmp_path / "two.duckdb"
    first = EGraph.create(fan_of_matmuls(3), path)
    second = first.beside(shared_matmuls(), "second")
    sizes = [(first.e_nodes,), (second.e_nodes,)]
    second.close()
    first.close()
    with duckdb.connect(str(path)) as connection:
        tables = ("enode", "second.enode")
        counts = [connection.execute(f"SELECT count(*) FROM {t}").fetchone() for t in tables]
    assert counts == sizes


def test_all_tables_of_a_file_have_comments(tmp_path: Path) -> None:
    path = tmp_path / "two.duckdb"
    first = EGraph.create(fan_of_matmuls(3), path)
    first.beside(shared_matmuls(), "second").close()
    tables = read_schema(first.connection)
    assert {"enode", "second.enode"} <= {table.name for table in tables}
    assert without_comment(tables) == []
    first.close()
