"""Ledgers of many fleets in one DuckLake catalogue: one query gives the savings of a rule over all of
them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.fleet.fleet import ledger_of
from relational_tensat.fleet.ledger import TABLES


def add_to_lake(folders: Sequence[Path], catalogue: Path) -> None:
    """Put the tables of fleets into a catalogue, instead of what it had of these fleets.

    All of them land at once, as one snapshot, or none does. Each table has a column ``fleet`` before its
    own: the output folder. Reports stay in the ledgers.

    Args:
        folders: output folders of fleets; one that runs has tables that are some seconds old.
        catalogue: its file, made if it does not exist.

    Raises:
        InputError: a folder has no ledger, or the catalogue cannot be written.
        MissingDependencyError: DuckDB has no extension ``ducklake`` here.
    """
    ledgers = [(folder.resolve(), ledger_of(folder)) for folder in folders]
    try:
        with closing(duckdb.open_lake(catalogue, folders)) as lake:
            lake.execute("BEGIN")
            for folder, ledger in ledgers:
                for table in TABLES:
                    of, path = {"fleet": str(folder)}, {"path": str(ledger.exported(table))}
                    lake.execute(
                        f"CREATE TABLE IF NOT EXISTS lake.{table} AS "
                        "SELECT '' AS fleet, * FROM read_parquet($path) LIMIT 0",
                        path,
                    )
                    lake.execute(f"DELETE FROM lake.{table} WHERE fleet = $fleet", of)
                    lake.execute(
                        f"INSERT INTO lake.{table} BY NAME "
                        "SELECT $fleet AS fleet, * FROM read_parquet($path)",
                        of | path,
                    )
            lake.execute("COMMIT")
    except (duckdb.Error, OSError) as error:
        raise InputError(
            f"{catalogue}: cannot be written as a catalogue: {first_line(error)}"
        ) from error
