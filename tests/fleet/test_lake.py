"""Ledgers in a DuckLake catalogue, where DuckDB has the extension; else one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat import InputError
from relational_tensat.base import duckdb
from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.cli.main import main
from relational_tensat.fleet import fleet
from relational_tensat.fleet.lake import add_to_lake
from tests.fleet.small_models import QUICK, write_models


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return the output folder of a fleet of three models."""
    folder = tmp_path / "it's here"
    fleet(write_models(tmp_path / "models", 3), folder, QUICK)
    return folder


def _has_extension(tmp_path: Path) -> bool:
    try:
        duckdb.open_lake(tmp_path / "asked.ducklake", []).close()
    except MissingDependencyError:
        return False
    return True


def test_fleets_are_asked_together(out: Path, tmp_path: Path) -> None:
    if not _has_extension(tmp_path):
        pytest.skip("DuckDB has no extension ducklake here")
    catalogue = tmp_path / "it's.ducklake"
    add_to_lake([out], catalogue)
    other = tmp_path / "other"
    fleet([tmp_path / "models" / "*.json"], other, QUICK)
    add_to_lake([out, other], catalogue)  # the first one's rows are there once
    lake = duckdb.open_lake(catalogue, [])
    text = "SELECT fleet, count(*) FROM lake.fleet_run GROUP BY ALL ORDER BY ALL"
    assert lake.execute(text).fetchall() == [(str(out), 3), (str(other), 3)]
    assert lake.execute("SELECT count(*) FROM lake.fleet_attempt").fetchall() == [(6,)]
    with pytest.raises(duckdb.Error):
        lake.execute(f"SELECT * FROM read_text('{tmp_path}/models/*')")
    lake.close()
    (tmp_path / "text.ducklake").write_text("not one")
    with pytest.raises(InputError, match="cannot be written as a catalogue"):
        add_to_lake([out], tmp_path / "text.ducklake")


def test_a_folder_without_a_ledger_and_no_extension_are_one_line(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="has no fleet"):
        add_to_lake([tmp_path / "models"], tmp_path / "lake.ducklake")
    if _has_extension(tmp_path):
        return
    assert main(["fleet", "lake", str(out), "-o", str(tmp_path / "lake.ducklake")]) == 2
    error = capsys.readouterr().err
    assert "expected: INSTALL ducklake" in error and error.count("\n") == 1
    assert not (tmp_path / "lake.ducklake").exists()
