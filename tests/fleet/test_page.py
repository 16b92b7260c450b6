"""The page of a fleet, and how a fleet is asked for: files of settings, events."""

from __future__ import annotations

import io
import json
import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.cli.fleet import line_of
from relational_tensat.cli.main import main
from relational_tensat.fleet import FleetRow
from relational_tensat.fleet.page import fleet_page
from tests.fleet.small_models import write_models

_ROW = FleetRow(
    "a.onnx", "d", "o", "v", "changed", speedup=1.5, basis="measured", low=1.4, high=1.6,
    host="h", rules=(("fuse", 2), ("drop", 1)), savings=(("drop", 7.5), ("fuse", 0.0)),
)  # fmt: skip


def test_the_page_shows_gains_rules_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "a.html").touch()
    kept = replace(_ROW, model="b.onnx", state="kept", speedup=1.0, low=None, rules=(), savings=())
    refused = FleetRow("c.onnx", "d", "o", "v", "refused", "c.onnx: no model")
    text = fleet_page([kept, _ROW, refused], tmp_path)
    assert "<h1>3 models: 1 changed, 1 kept, 1 refused</h1>" in text
    assert text.index('<a href="./a.html">a.onnx</a>') < text.index("<td>b.onnx</td>")
    assert "1.400 to 1.600" in text and "<td>c.onnx: no model</td>" in text
    assert text.index("<td>drop</td><td>1</td><td>7.5</td><td>1</td>") < text.index("<td>fuse</td>")


def test_names_are_no_markup(tmp_path: Path) -> None:
    name = 'javascript:"><script>alert(1)</script>\x1b[2J.onnx'
    hostile = replace(_ROW, model=name, host="<b>h</b>", reason="<i>", rules=(("<u>", 1),))
    page = tmp_path / Path(name).with_suffix(".html")
    page.parent.mkdir(parents=True)
    page.touch()
    text = fleet_page([hostile, replace(hostile, state="lost")], tmp_path)
    for markup in ("<script", "<b>", "<i>", "<u>", "\x1b", 'href="javascript'):
        assert markup not in text
    assert 'href="./javascript%3A%22%3E%3Cscript' in text


def test_a_file_of_settings_is_a_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_models(tmp_path / "models", 2)
    config = tmp_path / "fleet.toml"
    config.write_text("""
models = ["models/*.json"]
output = "out"
on = "here"
pages = true
[options]
deterministic = true
cost = "t4"
only = ["negative-difference"]
""")
    assert main(["fleet", "--config", "fleet.toml", "--json-events"]) == 0
    printed = capsys.readouterr()
    events = [json.loads(line) for line in printed.err.splitlines()]
    assert [event["event"] for event in events] == ["begun", "row"] * 2
    assert printed.out.splitlines()[-1] == "2 models: 2 changed"
    assert main(["fleet", "page", "out"]) == 0
    text = (tmp_path / "out" / "fleet.html").read_text()
    assert '<a href="./chain000.html">chain000.json</a>' in text
    assert main(["schema", "fleet"]) == 0
    assert "| `saved_us` | DOUBLE |" in capsys.readouterr().out
    config.write_text("ouput = 'x'")
    assert main(["fleet", "--config", "fleet.toml"]) == 3
    assert "'ouput' is no setting of a fleet, expected models, output" in capsys.readouterr().err
    assert main(["fleet", "models"]) == 2
    assert "expected -o FOLDER" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_runs_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is drawn each time that a line is printed above it."""
    write_models(tmp_path / "models", 3)
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", terminal)
    models, out = str(tmp_path / "models" / "*.json"), str(tmp_path / "out")
    flags = ["--on", "here", "--deterministic", "--cost", "t4"]
    assert main(["fleet", "run", models, "-o", out, *flags]) == 0
    shown = terminal.getvalue()
    for ended in (1, 2):
        assert re.search(rf"{ended} ended, {3 - ended} left, about \d+ s", shown)
    assert shown.endswith("3 models: 3 changed\n")


def test_a_row_of_another_machine_names_it() -> None:
    row = FleetRow(
        "a.onnx", "", "", "", "changed", host=platform.node(), speedup=1.25, basis="modelled"
    )
    assert line_of(row) == "a.onnx: changed, 1.250 times as fast, modelled, 0.0 s"
    assert line_of(replace(row, host="far")).endswith("0.0 s on far")
