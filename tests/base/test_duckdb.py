"""Databases that others have made: nothing in one reads a file, loads code, or names a place to write."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb as package
import pytest

from relational_tensat.base import duckdb
from relational_tensat.base.duckdb import open_database

PACKAGE = Path(duckdb.__file__).resolve().parent.parent

_FORBIDDEN = (
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM glob('/*')",
    "ATTACH '{other}' AS o",
    "COPY (SELECT 1) TO '{other}'",
    "EXPORT DATABASE '{other}'",
    "INSTALL httpfs",
    "LOAD '{other}'",
    "SET enable_external_access = true",
    "SET temp_directory = '{other}'",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("statement", _FORBIDDEN)
def test_nothing_outside_of_a_database_is_reached(
    tmp_path: Path, statement: str, writes: bool
) -> None:
    secret, other = tmp_path / "secret", tmp_path / "other"
    secret.write_text("never told")
    path = tmp_path / "run.duckdb"
    package.connect(str(path)).close()
    with (
        open_database(path, writes=writes) as connection,
        pytest.raises(duckdb.Error),
    ):
        connection.execute(statement.format(secret=secret, other=other)).fetchall()
    assert sorted(tmp_path.iterdir()) == [path, secret]


def test_one_other_database_may_be_attached_and_its_views_read_nothing(tmp_path: Path) -> None:
    secret, path, other = (tmp_path / name for name in ("secret", "run.duckdb", "other.duckdb"))
    secret.write_text("never told")
    with package.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW v AS SELECT content FROM read_text('{secret}')")
    package.connect(str(other)).close()
    with open_database(None, attaches=path) as connection:
        connection.execute(f"ATTACH '{path}' AS run (READ_ONLY)")
        for statement in ("FROM run.v", f"ATTACH '{other}' AS o", f"COPY (SELECT 1) TO '{secret}'"):
            with pytest.raises(duckdb.Error, match="disabled by configuration"):
                connection.execute(statement).fetchall()


def test_every_name_is_one_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "md:x", "s3:", "it's", "µ*[a]"):
        open_database(Path(name), writes=True).close()
        assert (tmp_path / name).is_file()
    for name, reason in (("\udcff", "the name is not UTF-8"), ("a?b", "question mark")):
        with pytest.raises(duckdb.Error, match=reason):
            open_database(Path(name), writes=True)


def test_databases_are_opened_in_one_place() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bduckdb\.connect\(|_compiled\.connect\(", path.read_text())
    }
    assert found == {"base/duckdb.py"}
