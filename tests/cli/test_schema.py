"""docs/schema.md is what the database says of itself, and its queries run."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from relational_tensat.cli.main import main
from relational_tensat.cli.schema import EXAMPLES, example_schema, schema_page
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import working_tables
from tests.explore.graphs import mixed

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "schema.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == schema_page(
        example_schema(), working_tables().values()
    ), "relational-tensat schema > docs/schema.md"


def test_the_examples_run_on_a_run(tmp_path: Path) -> None:
    database = tmp_path / "run.duckdb"
    model = Path(__file__).resolve().parent.parent.parent / "bench" / "inputs" / "nasrnn.json"
    arguments = [
        "--db",
        str(database),
        "--node-limit",
        "500",
        "--iterations",
        "2",
        "--search",
        "saturation",
        "--quiet",
        "--output",
        str(tmp_path / "o.json"),
    ]
    assert main(["run", str(model), *arguments]) == 0
    with duckdb.connect(str(database), read_only=True) as connection:
        for title, query in EXAMPLES:
            assert connection.execute(query).fetchall(), title


def test_a_file_describes_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EGraph.create(mixed(), tmp_path / "run.duckdb").close()
    assert main(["schema", str(tmp_path / "run.duckdb")]) == 0
    page = capsys.readouterr().out
    assert "### enode\n" in page
    assert "### instance\n" not in page
