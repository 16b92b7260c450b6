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
    command = ["run", str(ROOT / "bench/inputs/transformer_block.onnx"), "--for", "t4", "--quiet"]
    rules = ["--rules", str(ROOT / "rules"), "--rules", str(tmp_path / "mine.rules")]
    assert main([*command, *rules, "-o", str(tmp_path / "out.onnx")]) == 0


def test_the_first_command_names_a_model_that_ships_and_prints_what_the_readme_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what is timed, and the number of threads, which is the machine's."""
    command = re.search(r"relational_tensat (run \S+) -o faster\.onnx\n", README)
    assert command is not None
    monkeypatch.chdir(ROOT)
    output = ["-o", str(tmp_path / "faster.onnx"), "--effort", "low", "--threads-at-inference", "1"]
    assert main([*command[1].split(), *output]) == 0
    printed = capsys.readouterr().out
    place = re.search(r"\S+, for onnxruntime on this CPU", printed)
    explored = re.search(r"explored: .*", printed)
    assert place is not None and place[0] in README
    assert explored is not None and explored[0] in README


def test_every_named_path_exists() -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), path


def test_it_can_be_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 150
