"""Runs that are killed and resumed, counted and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.kills import command as kills_command
from bench.kills import killing
from relational_tensat.formats import save_model
from tests.run.resume.models import layers


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of the kinds, as all of them take a minute."""
    monkeypatch.setattr(kills_command, "RESULTS", tmp_path)
    few = {kind: killing.KINDS[kind] for kind in ("run", "db")}
    monkeypatch.setattr(killing, "KINDS", few)
    model = tmp_path / "model" / "layers.onnx"
    model.parent.mkdir()
    save_model(layers(2, 3), model)
    assert main(["kills", "2", "--all", "--save", "--model", str(model)]) == 0
    assert "| db | 1 |" in capsys.readouterr().out
    table, rows = sorted(tmp_path.glob("kills-all-*"), reverse=True)
    assert table.read_text().count("\n") == 4
    assert [row["trouble"] for row in json.loads(rows.read_text())["rows"]] == ["", ""]


def test_what_does_not_hold_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(killing, "KINDS", {"run": killing.KINDS["run"]})
    monkeypatch.setattr(killing, "_best_us", lambda _: 0.0)
    model = tmp_path / "layers.onnx"
    save_model(layers(2, 3), model)
    assert main(["kills", "1", "--all", "--model", str(model)]) == 4
    assert "and 0.0 before the kill" in capsys.readouterr().out
