"""The generated SQL that builds targets, as a golden file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from relational_tensat.explore.apply import direct
from relational_tensat.explore.apply.targets import (
    bind_text,
    hash_cons_text,
    new_classes_text,
    unions_text,
)
from tests.explore.test_snapshots import SNAPSHOTS, UPDATE

PATH = SNAPSHOTS / "build_sql" / "targets.sql"
DIRECT_PATH = SNAPSHOTS / "build_sql" / "direct_targets.sql"


def generated() -> str:
    """Return the statements for targets of two e-nodes, with up to three operands, below two leaves."""
    texts = [
        hash_cons_text(operands=3),
        bind_text(operands=3, bound=2),
        new_classes_text(bound=2, steps=2),
        unions_text(sources=1),
        unions_text(sources=2),
    ]
    return ";\n\n".join(texts) + ";\n"


def generated_direct() -> str:
    """Return the statements for the same targets with their roots in the classes of their sources."""
    texts = [
        direct.built_text(operands=3, sources=1, steps=2, bound=2),
        direct.built_text(operands=3, sources=2, steps=3, bound=2),
        direct.fresh_of_built_text(operands=3),
        direct.applications_of_built_text(roots=2),
        direct.fresh_text(operands=3, sources=1, is_first=True),
        direct.fresh_text(operands=3, sources=2, is_first=False),
        bind_text(operands=3, bound=2, has_fresh=True),
        direct.labelled_classes_text(bound=2, steps=2),
        direct.reasons_text(bound=2, steps=2),
    ]
    return ";\n\n".join(texts) + ";\n"


@pytest.mark.parametrize(("text", "path"), [(generated(), PATH), (generated_direct(), DIRECT_PATH)])
def test_the_sql_is_as_it_was(text: str, path: Path) -> None:
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "UPDATE_SNAPSHOTS=1 accepts the change"
    assert len(duckdb.extract_statements(text)) == text.count(";\n")


def test_no_column_of_operands_is_left_out_where_targets_need_all() -> None:
    assert "e.c4" in bind_text(operands=5, bound=1)
    assert "c4 = 0" not in hash_cons_text(operands=5)
