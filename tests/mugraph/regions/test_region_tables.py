"""Regions, and why others are none, in a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat.cli.main import main

MODEL = Path(__file__).parents[3] / "bench" / "inputs" / "transformer_block.onnx"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command prints."""
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_database_has_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "regions.duckdb")
    found = json.loads(printed(capsys, "kernels", "regions", str(MODEL), "--db", path, "--json"))
    stored = json.loads(printed(capsys, "kernels", "regions", path, "--json"))
    assert stored["regions"] == found["regions"]
    key = json.dumps
    assert sorted(stored["left_out"], key=key) == sorted(found["left_out"], key=key)
    assert any(region["values"] > 1 for region in found["regions"])

    asked = "SELECT reason FROM fused_region WHERE fate = 'border' AND operators = ['softmax']"
    rows = json.loads(printed(capsys, "sql", path, asked, "--json"))
    wanted = [
        r for r in found["left_out"] if r["fate"] == "border" and r["operators"] == ["softmax"]
    ]
    assert len(rows) == len(wanted)
    asked = "SELECT number, count(*) AS places FROM region GROUP BY number ORDER BY number"
    rows = json.loads(printed(capsys, "sql", path, asked, "--json"))
    places = [len(r["outputs"]) // r["values"] for r in found["regions"]]
    assert [(row["number"], row["places"]) for row in rows] == list(enumerate(places))
    assert "As kernels search MODEL --region takes it" in printed(capsys, "schema", path)


def test_a_database_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "regions.duckdb"
    path.write_text("mine", encoding="utf-8")
    assert main(["kernels", "regions", str(MODEL), "--db", str(path)]) == 3
    assert capsys.readouterr().err.endswith("is there already; name another database\n")
    assert path.read_text(encoding="utf-8") == "mine"
    nowhere = str(tmp_path / "none" / "regions.duckdb")
    assert main(["kernels", "regions", str(MODEL), "--db", nowhere]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["kernels", "regions", "run.duckdb", "--db", str(path)]) == 2
    assert "run.duckdb is a database already" in capsys.readouterr().err
