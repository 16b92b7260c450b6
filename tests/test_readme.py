"""The README's blocks are run: the Python one, the rule, and the two commands as far as a test can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.rules.language import parse_rules

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run_python_block(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(blocks("python")[number], "README.md", "exec"), {})


def test_the_first_python_block_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_python_block(0, monkeypatch)
    before, after = re.findall(r"[\d.]+", capsys.readouterr().out)[:2]
    assert float(after) < float(before)


def test_the_block_on_costs_of_ones_own_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_python_block(1, monkeypatch)
    assert "'conv': 16" in capsys.readouterr().out


def test_the_rule_is_well_formed() -> None:
    (block,) = blocks("lisp")
    (rule,) = parse_rules(block, "README.md")
    assert rule.symmetric
    assert len(rule.sources) == 2


def test_the_rule_can_be_added_to_those_that_ship(tmp_path: Path) -> None:
    (tmp_path / "mine.rules").write_text(blocks("lisp")[0], encoding="utf-8")
    command = ["run", str(ROOT / "bench/inputs/transformer_block.onnx"), "--quiet"]
    rules = ["--rules", str(ROOT / "rules"), "--rules", str(tmp_path / "mine.rules")]
    assert main([*command, *rules, "-o", str(tmp_path / "out.onnx")]) == 0


def test_the_first_command_names_a_model_that_ships_and_prints_what_the_readme_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = re.search(r"relational_tensat run (\S+) -o faster\.onnx", README)
    assert model is not None
    assert main(["run", str(ROOT / model[1]), "-o", str(tmp_path / "faster.onnx")]) == 0
    cost = re.search(r"modelled for .*", capsys.readouterr().out)
    assert cost is not None
    assert cost[0].strip() in README


def test_every_named_path_exists() -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), path


def test_it_can_be_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 150
