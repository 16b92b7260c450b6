"""Whoever has only the file understands it: tables, views and columns have comments, also unfinished."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import relational_tensat
from relational_tensat.base.files import resource_dir
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.cycles import filter_cycles
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.schema import (
    PURPOSES,
    WORKING,
    PublishedTable,
    purpose_of,
    read_schema,
    working_tables,
)
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.explore import step as step_module
from relational_tensat.explore.apply import application
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.egraph.random_graphs import unite
from tests.egraph.test_cycles import chain
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, scaled_products, separate_sums, sum_of
from tests.explore.universes import begin, grow, original, universe_of

Columns = dict[str, str]

_COLUMNS = (
    "SELECT t.table_name, c.column_name, c.data_type FROM duckdb_tables() AS t\n"
    "JOIN duckdb_columns() AS c ON c.database_name = t.database_name AND c.table_oid = t.table_oid\n"
    "WHERE t.temporary"
)


def temporary_tables(connection: Any) -> dict[str, Columns]:
    tables: dict[str, Columns] = {}
    for table, column, kind in connection.execute(_COLUMNS).fetchall():
        tables.setdefault(table, {})[column] = kind
    return tables


def declared() -> dict[str, Columns]:
    """Return the declared tables, as DuckDB understands them."""
    database = Database()
    for table in working_tables().values():
        table.create(database)
    return temporary_tables(database.connection)


def first_of_its_kind(column: str, columns: Mapping[str, str]) -> str:
    """Return ``v0`` of ``v3``, where only the first is declared."""
    first = re.sub(r"^([a-z]+)\d+$", r"\g<1>0", column)
    return first if column not in columns and first in columns else column


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Columns]]]:
    """Yield the list of temporary tables as they stand after each statement that creates one."""
    tables: list[tuple[str, Columns]] = []

    def watched(method: str) -> None:
        original = getattr(Database, method)

        def run(self: Database, text: str, *args: Any, **kwargs: Any) -> Any:
            result = original(self, text, *args, **kwargs)
            if "TEMP TABLE" in text:
                tables.extend(temporary_tables(self.connection).items())
            return result

        monkeypatch.setattr(Database, method, run)

    watched("execute")
    watched("execute_all")
    yield tables


def explore_in_batches(monkeypatch: pytest.MonkeyPatch, cycle_filter: str) -> EGraph:
    """Explore with few applications a batch, few pairs at first, and a small node budget."""
    with monkeypatch.context() as patch:
        patch.setattr(application, "FEWEST", 1)
        patch.setattr(application, "OVERBUILD", 1)
        patch.setattr(step_module, "FEWEST", 1)
        patch.setattr(step_module, "_LEAST_BUILT", 100_000)
        egraph = EGraph.create(separate_sums(6))
        options = ExplorationOptions(3, node_limit=60, cycle_filter=cycle_filter)
        explore(egraph, example_rules("join-sums", "swap"), options)
    return egraph


def without_comment(tables: Sequence[PublishedTable]) -> list[str]:
    """Return the names of tables and columns that have no comment."""
    return [t.name for t in tables if not t.comment] + [
        f"{t.name}.{c.name}" for t in tables for c in t.columns if not c.comment
    ]


def with_an_extreme_number() -> Graph:
    kind = TensorType("float32", (8,))
    number = Node("fill", (), ("big",), {"value": 1e8, "dtype": "float32", "shape": (8,)})
    nodes = [number, Node("add", ("x", "big"), ("t",)), Node("add", ("t", "y"), ("z",))]
    weights: dict[str, Weight] = {}
    return build_graph("extreme", {"x": kind, "y": kind}, weights, nodes, ["z"])


def test_every_working_table_is_declared(
    created: list[tuple[str, Columns]], monkeypatch: pytest.MonkeyPatch
) -> None:
    explore_in_batches(monkeypatch, "vanilla")
    egraph = explore_in_batches(monkeypatch, "efficient")
    explore(
        EGraph.create(with_an_extreme_number()), example_rules("regroup"), ExplorationOptions(1)
    )
    extraction_problem(egraph, load_profile("tensat_t4"))

    for graph, rules in (
        (sum_of(4), example_rules("regroup", "swap")),
        (scaled_products(), example_rules("scale-columns")),
    ):
        subgraph = universe_of(graph, rules)
        for number in (1, 2):
            begin(subgraph, number, original(subgraph.egraph))
            grow(subgraph, number, 3)

    cyclic = EGraph.create(chain(3))
    unite(cyclic, [(2, 3)])
    filter_cycles(cyclic.database)

    created_by_stages = list(created)
    tables = declared()
    columns_of: dict[str, Columns] = {}
    for name, columns in created_by_stages:
        declared_columns = tables[name]
        for column, kind in columns.items():
            column = first_of_its_kind(column, declared_columns)
            assert declared_columns.get(column) == kind, f"{name}.{column}"
            columns_of.setdefault(name, {})[column] = kind
    assert columns_of == tables


def test_every_statement_that_creates_one_creates_a_declared_one() -> None:
    names = set()
    package = Path(relational_tensat.__file__).parent
    for path in [*resource_dir("sql").rglob("*.sql"), *package.rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        names |= {*re.findall(r"CREATE OR REPLACE TEMP TABLE (\w+)", text)}
    assert "union_pair" in names
    assert names <= {*working_tables()}


def test_a_table_with_as_many_columns_as_asked_for(tmp_path: Path) -> None:
    database = Database(tmp_path / "run.duckdb")
    working_tables()["match"].create(database, v=3)
    before = database.statements
    working_tables()["pair"].create(database, g=4)
    assert database.statements == before + 1
    matches = [*temporary_tables(database.connection)["match"]]
    assert sorted(matches) == ["g0", "pattern", "root", "stamp", "v0", "v1", "v2"]
    assert read_schema(database.connection) == []  # a file has none of them
    database.close()


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
