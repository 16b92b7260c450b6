"""Whoever has only the file understands it: tables, views and columns have comments, also unfinished."""

from __future__ import annotations

from pathlib import Path

import duckdb

from relational_tensat.base.files import resource_dir
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.published import (
    PURPOSES,
    WORKING,
    purpose_of,
    read_schema,
    without_comment,
)
from relational_tensat.explore import ExplorationOptions, Observer, explore
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed


def test_every_table_and_column_has_a_comment(tmp_path: Path) -> None:
    egraph = EGraph.create(mixed(), tmp_path / "run.duckdb")
    uncommented = []

    def look(_: int) -> None:
        uncommented.extend(read_schema(egraph.connection))

    explore(
        egraph,
        example_rules("swap", "negate"),
        ExplorationOptions(2),
        observer=Observer(after=look),
    )
    egraph.close()
    with duckdb.connect(str(tmp_path / "run.duckdb"), read_only=True) as connection:
        tables = read_schema(connection)
    assert without_comment(uncommented) == without_comment(tables) == []
    names = {table.name for table in tables}
    assert {table.name for table in uncommented} <= names
    assert {name for name in names if purpose_of(name) is None} == set()
    assert {"head", "enode", "eclass", "union_log", "chosen", "enode_text"} <= names


def test_a_column_without_a_comment_is_found(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
        connection.execute("COMMENT ON COLUMN t.b IS 'described'")
        assert without_comment(read_schema(connection)) == ["t", "t.a"]


def test_each_file_of_the_schema_is_a_purpose() -> None:
    files = {path.stem for path in (resource_dir("sql") / "schema").glob("*.sql")}
    assert files == {*PURPOSES, WORKING}


def test_heads_can_be_resolved() -> None:
    egraph = EGraph.create(mixed())
    explore(egraph, example_rules("swap", "negate"), ExplorationOptions(2))
    wrong = egraph.connection.execute(
        "SELECT y.op, y.arity, h.text FROM enode AS e JOIN signature AS s ON s.id = e.signature\n"
        "JOIN symbol AS y ON y.id = s.symbol LEFT JOIN head AS h ON h.id = e.head\n"
        "WHERE (e.head > 0) <> (h.text IS NOT NULL)\n"
        "    OR h.text NOT LIKE '(' || y.op || repeat(' _', y.arity) || '%'"
    ).fetchall()
    assert wrong == []
    heads = egraph.connection.execute("SELECT text FROM head ORDER BY text").fetchall()
    assert heads == [("(add _ _)",), ("(sub _ _)",)]
    explore(egraph, example_rules("negate"), ExplorationOptions(1))
    assert egraph.connection.execute("FROM head").fetchall() == [(1, "(sub _ _)")]
    egraph.close()
