from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from relational_tensat.base.errors import InputError, NoSolutionError, UsageError
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import FEW_ROWS, Database, Interrupted, OutOfMemory
from tests.graphs import shared_matmuls

#: Takes minutes if nothing stops it.
SLOW = "SELECT count(*) FROM range(100000) AS a, range(100000) AS b WHERE a.range * b.range % 7 = 3"


def test_statements_are_counted_and_timed_by_name() -> None:
    database = Database()
    assert database.execute("SELECT 1 + $x", {"x": 2}, "sum") == [(3,)]
    database.execute("SELECT 1", name="sum")
    assert database.statements == 2
    spent = database.stopwatch.spent()
    assert set(spent.statements) == {("other", "sum")}
    assert spent.statements["other", "sum"].seconds > 0


def test_a_statement_that_fails_is_counted_too() -> None:
    database = Database()
    with pytest.raises(duckdb.CatalogException):
        database.execute("FROM nowhere")
    assert database.statements == 1


def test_many_rows_go_in_where_nothing_else_imported_the_package() -> None:
    code = (
        "import sys; from relational_tensat.egraph.database import Database, MANY_ROWS as n;"
        "database = Database(); before = 'duckdb' in sys.modules;"
        "database.execute('CREATE TABLE t (a INTEGER)'); database.insert('t', {'a': list(range(n))});"
        "print(before, database.execute('SELECT count(*) = max(a) + 1 FROM t'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False [(True,)]\n", "")


def test_rows_with_lists_of_numbers_are_inserted_as_they_are() -> None:
    database = Database()
    database.execute("CREATE TABLE t (a INTEGER, b INTEGER[], c VARCHAR)")
    rows = [(-i, [-i] * (i % 3), f"[{i}, ") for i in range(FEW_ROWS + 1)]
    database.append("t", rows)
    assert database.execute("FROM t ORDER BY a DESC") == rows


def test_rows_are_inserted_by_columns() -> None:
    database = Database()
    database.execute("CREATE TABLE t (a INTEGER, b INTEGER[])")
    database.insert("t", {"a": [1, 2], "b": [[], [3, 4]]})
    database.insert("t", {"a": [], "b": []})
    assert database.execute("FROM t ORDER BY a") == [(1, []), (2, [3, 4])]


def test_an_insertion_that_fails_does_not_spoil_the_next() -> None:
    database = Database()
    database.execute("CREATE TABLE t (a INTEGER NOT NULL)")
    with pytest.raises(duckdb.ConstraintException):
        database.insert("t", {"a": [1, None]})
    database.insert("t", {"a": [2]})
    assert database.execute("FROM t") == [(2,)]


def test_a_rollback_undoes_the_transaction() -> None:
    database = Database()
    database.execute("CREATE TABLE t (a INTEGER)")
    database.begin()
    database.insert("t", {"a": [1]})
    database.rollback()
    database.begin()
    database.insert("t", {"a": [2]})
    database.commit()
    assert database.execute("FROM t") == [(2,)]


def test_a_running_statement_can_be_stopped_from_another_thread() -> None:
    database = Database()
    timer = threading.Timer(0.1, database.interrupt)
    started = time.monotonic()
    timer.start()
    with pytest.raises(Interrupted):
        database.execute(SLOW)
    assert time.monotonic() - started < 20
    with pytest.raises(Interrupted):
        database.execute("SELECT 1")
    with pytest.raises(Interrupted):
        database.check_interrupt()
    database.resume()
    assert database.execute("SELECT 1") == [(1,)]


def test_transactions_end_whenever_an_interrupt_arrives() -> None:
    database = Database()
    database.execute("CREATE TABLE t (a INTEGER)")
    end = threading.Event()

    def hammer() -> None:
        while not end.is_set():
            database.connection.interrupt()
            time.sleep(0.0001)

    thread = threading.Thread(target=hammer)
    thread.start()
    committed = undone = 0
    try:
        for number in range(40):
            try:
                database.begin()
                database.append("t", [(number,)])
                database.commit()
                committed += 1
            except Interrupted:
                undone += 1
                database.rollback()
    finally:
        end.set()
        thread.join()
    assert committed + undone == 40
    assert database.execute("SELECT count(*) FROM t") == [(committed,)]


def test_too_little_memory_for_a_statement() -> None:
    database = Database(process=ProcessOptions(memory_limit="30MB"))
    with pytest.raises(OutOfMemory, match=r"(?i)memory"):
        database.execute("CREATE TEMP TABLE t AS SELECT list(range) FROM range(40000000)")
    assert database.execute("SELECT 1") == [(1,)]


def test_what_does_not_fit_goes_to_the_folder_that_was_chosen(tmp_path: Path) -> None:
    """Two databases of a process have a folder each, and leave nothing behind."""
    large = "CREATE TEMP TABLE t AS SELECT range AS i, hash(range) AS h FROM range(4000000)"
    process = ProcessOptions(memory_limit="30MB", temp_directory=tmp_path)
    databases = [Database(process=process) for _ in range(2)]
    for database in databases:
        database.execute(large)
        files = database.execute("SELECT path FROM duckdb_temporary_files()")
        assert files
        assert all(Path(path).is_relative_to(tmp_path) for (path,) in files)
    assert len(list(tmp_path.iterdir())) == 2
    assert databases[0].execute("SELECT sum(i) FROM t") == [(4000000 * 3999999 // 2,)]
    for database in databases:
        database.close()
    assert not list(tmp_path.rglob("*.tmp"))


def test_tables_in_memory_take_their_folder_with_them(tmp_path: Path) -> None:
    database = Database(process=ProcessOptions(temp_directory=tmp_path))
    connection = database.connection
    del database
    gc.collect()
    assert list(tmp_path.iterdir())  # a result may still have the tables
    del connection
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^temp-directory .*missing: no such folder$"):
        Database(process=ProcessOptions(temp_directory=tmp_path / "missing"))


def test_too_little_memory_for_any_egraph() -> None:
    with pytest.raises(NoSolutionError, match=r"^the database's memory limit is reached: [^\n]*$"):
        EGraph.create(shared_matmuls(), process=ProcessOptions(memory_limit="1MB"))


@pytest.mark.parametrize("limit", ["much", "3 parsecs", ""])
def test_a_memory_limit_that_is_none_is_rejected(limit: str) -> None:
    with pytest.raises(UsageError, match=f"^memory_limit = '{limit}', expected [^\n]*$"):
        Database(process=ProcessOptions(memory_limit=limit))


def test_a_memory_limit_that_is_too_large_to_be_one_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"^--memory-limit 99999999999TB: [^\n]*too large$"):
        Database(process=ProcessOptions(memory_limit="99999999999TB"))


def test_a_memory_limit_that_not_even_an_empty_database_keeps() -> None:
    with pytest.raises(OutOfMemory, match=r"^the database's memory limit is reached: [^\n]*$"):
        Database(process=ProcessOptions(memory_limit="0GB"))


def test_a_file_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "run.duckdb", tmp_path):
        with pytest.raises(InputError, match=f"^{path}: cannot create the database: [^\n]*$"):
            Database(path)


def test_a_run_starts_its_file_again(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    path.write_text("no database")
    for _ in range(2):
        egraph = EGraph.create(shared_matmuls(), path)
        assert egraph.counts() == (8, 8)
        egraph.close()


def test_a_file_can_be_opened_again_and_read(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    EGraph.create(shared_matmuls(), path).close()
    with duckdb.connect(str(path), read_only=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM eclass WHERE id = parent").fetchall()
        text = "SELECT op, type FROM enode_text WHERE class = 4"
        assert count == (8,)
        assert connection.execute(text).fetchall() == [("matmul", "float32[64,64]")]
        assert connection.execute("FROM union_find WHERE id <> parent").fetchall() == []
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            connection.execute("DELETE FROM enode")


def test_many_rows_go_in_and_come_out_as_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled() -> list[tuple[object, ...]]:
        database = Database()
        database.execute("CREATE TABLE t (a INTEGER, b INTEGER[], c VARCHAR, d BOOLEAN)")
        columns = {"a": [1, 2], "b": [[], [3, 4]], "c": ["x", "y"], "d": [True, False]}
        database.insert("t", columns)
        return database.execute("FROM t ORDER BY a")

    row_by_row = filled()
    monkeypatch.setattr("relational_tensat.egraph.database.MANY_ROWS", 1)
    assert filled() == row_by_row


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER", [1, -2, 3]),
        ("UBIGINT", [2**64 - 1, 0, 2**63]),
        ("HUGEINT", [2**63, -1, 2**53 + 1]),
        ("HUGEINT", [2**70, 1, 2]),
        ("DOUBLE", [0.1, float("inf"), float("nan")]),
        ("DOUBLE", [0.1, 2, None]),
        ("BOOLEAN", [True, False, False]),
        ("VARCHAR", ["größe", "", "a\x00b"]),
        ("VARCHAR", ["x", None, "y"]),
        ("INTEGER[]", [[], [3, 4], [5]]),
    ],
)
def test_several_rows_are_appended_as_each_alone_is(kind: str, values: list[object]) -> None:
    database = Database()
    database.execute(f"CREATE TABLE one (id INTEGER, a {kind})")
    database.execute(f"CREATE TABLE several (id INTEGER, a {kind})")
    rows = list(enumerate(values * 4))
    assert len(rows) > FEW_ROWS
    for row in rows:
        database.append("one", [row])
    database.append("several", rows)
    assert repr(database.execute("FROM several")) == repr(database.execute("FROM one"))
    assert database.statements == 2 + len(rows) + 1 + 2


def test_whoever_asks_an_e_graph_has_queries_that_are_built_in_python() -> None:
    code = (
        "from relational_tensat.egraph import EGraph; from tests.explore.graphs import sum_of;"
        "print(EGraph.create(sum_of(2)).connection.sql('SELECT count(*) FROM enode').fetchall())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[(3,)]\n", "")
