"""The generated SQL of the cycle filter, as a golden file."""

from __future__ import annotations

from pathlib import Path

import duckdb

from relational_tensat.egraph.cycles import suspects_text
from tests.explore.test_snapshots import UPDATE

PATH = Path(__file__).parent / "snapshots" / "suspects.sql"


def test_the_sql_is_as_it_was() -> None:
    text = suspects_text(leaves=2) + ";\n"
    if UPDATE:
        PATH.write_text(text, encoding="utf-8")
    assert text == PATH.read_text(encoding="utf-8"), "UPDATE_SNAPSHOTS=1 accepts the change"
    assert len(duckdb.extract_statements(text)) == 1
