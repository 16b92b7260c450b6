"""Runs that are killed and resumed, counted and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.kills import command as kills_command


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kills_command, "RESULTS", tmp_path)
    assert main(["kills", "2", "--save"]) == 0
    assert "survived: 2 of 2" in capsys.readouterr().out
    (path,) = tmp_path.iterdir()
    result = json.loads(path.read_text())
    assert result["kills"] == result["survived"] == len(result["rows"]) == 2
    assert sum(result["places"].values()) == 2
