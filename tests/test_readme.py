"""The README's blocks are run: Python, the rule, the query, the first command as far as a test can."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.rules.language import parse_rules

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_block_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("python")
    (tmp_path / "bench").symlink_to(ROOT / "bench")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    before, after = re.findall(r"[\d.]+", capsys.readouterr().out)[:2]
    assert float(after) < float(before)


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
    command = re.search(r"relational-tensat (run \S+) -o faster\.onnx\n", README)
    assert command is not None
    monkeypatch.chdir(ROOT)
    output = ["-o", str(tmp_path / "faster.onnx"), "--effort", "low", "--threads-at-inference", "1"]
    assert main([*command[1].split(), *output]) == 0
    place = re.search(r"\S+, for onnxruntime on this CPU", capsys.readouterr().out)
    assert place is not None and place[0] in README


def test_the_query_prints_what_the_readme_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench").symlink_to(ROOT / "bench")
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^relational-tensat ((?:run|sql) .*block.duckdb.*)$", README, re.M):
        assert main(shlex.split(command, comments=True)) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = [line.split() for line in blocks("text")[-1].splitlines() if line[0] not in "─…"]
    assert len(shown) == 4
    assert all(line in printed for line in shown)
