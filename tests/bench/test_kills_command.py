"""Runs that are killed and resumed, counted and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.kills import command as kills_command
from bench.kills import kills
from relational_tensat.formats import save_model
from tests.run.resume.models import layers


@pytest.mark.nightly
def test_all_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of the kinds, as all of them take a minute."""
    monkeypatch.setattr(kills_command, "RESULTS", tmp_path)
    few = {kind: kills.KINDS[kind] for kind in ("run", "db")}
    monkeypatch.setattr(kills, "KINDS", few)
    model = tmp_path / "model" / "layers.onnx"
    model.parent.mkdir()
    save_model(layers(2, 3), model)
    words = ["--all", "--save", "--model", str(model)]
    rows, table = tmp_path / "kills-all.jsonl", tmp_path / "kills-all.md"
    assert main(["kills", "1", *words]) == 0
    first = rows.read_text()
    assert "| db | 0 |" in table.read_text()
    assert main(["kills", "2", *words]) == 0
    kept = [json.loads(line) for line in rows.read_text().splitlines()]
    assert rows.read_text().startswith(first)
    assert [(row["kill"], row["kind"], row["trouble"]) for row in kept] == [
        (0, "run", ""),
        (1, "db", ""),
    ]
    assert "| db | 1 |" in table.read_text()
    assert "2: db at" in capsys.readouterr().out
    rows.write_text(first.replace('"trouble": ""', '"trouble": "lost"'))
    assert main(["kills", "1", *words]) == 4
    assert "- run, kill 0: lost" in table.read_text()


@pytest.mark.nightly
def test_what_does_not_hold_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kills, "KINDS", {"run": kills.KINDS["run"]})
    monkeypatch.setattr(kills, "_best_us", lambda _: 0.0)
    model = tmp_path / "layers.onnx"
    save_model(layers(2, 3), model)
    assert main(["kills", "1", "--all", "--model", str(model)]) == 4
    assert "and 0.0 before the kill" in capsys.readouterr().out
