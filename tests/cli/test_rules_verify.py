"""``rules verify``: the table, the counterexamples, the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import relational_tensat
from relational_tensat.base.files import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.rules.soundness import DEFAULT_TRIALS

TASO = str(resource_dir("rules") / "taso" / "taso.rules")
MINE = """
(rule true (law "x + y = y + x") (from (add ?x ?y)) (to (add ?y ?x)))
(rule false (law "x - y = y - x") (from (sub ?x ?y)) (to (sub ?y ?x)))
(rule never (law "x = x") (from (relu (relu ?x))) (to (relu ?x)) (where (= (dim ?x 0) 97700000)))
(rule rounded (law "relu(sigmoid(x)) = sigmoid(x)") (from (relu (sigmoid ?x))) (to (sigmoid ?x)))
"""


@pytest.fixture
def rule_file(tmp_path: Path) -> str:
    path = tmp_path / "rule_file.rules"
    path.write_text(MINE, encoding="utf-8")
    return str(path)


def verify(*args: str) -> int:
    return main(["rules", "verify", "--on", "here", "--trials", "20", *args])


def test_shipped_rules_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("reassociate-left", "function-of-concat") == 0
    printed = capsys.readouterr().out
    for name in ("reassociate-left", "function-of-concat[relu]", "function-of-concat[tanh]"):
        assert name in printed
    assert "4 rules in" in printed and "4 sound" in printed
    assert "in machine arithmetic: 0 proved on integers of every width, 1 on moderate" in printed
    header = printed.splitlines()[0].split()
    assert header == ["rule", "verdict", "evidence", "instances", "ways", "seconds"]


def test_failures_are_shown_and_are_exit_code_4(
    rule_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify("--file", rule_file) == 4
    printed = capsys.readouterr().out
    assert "4 rules in" in printed and "2 sound, 1 unsound, 1 untested" in printed
    assert "1 of them about real numbers, so compared in float64: rounded" in printed
    assert "never is untested: only 0 of 12000 random operands fit the rule" in printed
    assert "false is unsound: x float32[], y float32[]: element [] is" in printed
    snippet = printed[printed.index("# false does not hold here") : printed.index("\nnever is")]
    done = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=True
    )
    left, right = done.stdout.splitlines()
    assert left.startswith("left: float32[] ") and right.startswith("right: float32[] ")
    assert left.split()[-1] != right.split()[-1]


def test_nothing_is_left_behind(rule_file: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    command = [sys.executable, "-m", "relational_tensat", "rules", "verify", "false"]
    root = str(Path(relational_tensat.__file__).parents[1])
    done = subprocess.run(
        [*command, "--file", rule_file],
        cwd=folder,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.returncode == 4, done.stderr
    assert list(folder.iterdir()) == []


def test_json_is_one_object(rule_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--file", rule_file, "--json", "--seed", "3") == 4
    report = json.loads(capsys.readouterr().out)
    assert report["failed"] == ["false", "never"] and report["only_float64"] == ["rounded"]
    assert [rule["verdict"] for rule in report["rules"]] == [
        "sound",
        "unsound",
        "untested",
        "sound",
    ]
    assert report["rules"][0]["instances"] > 40 and report["rules"][0]["counterexample"] is None
    assert report["rules"][0]["coverage"]["ones"] > 0
    example = report["rules"][1]["counterexample"]
    assert example["left"] != example["right"] and "apply('sub'" in example["snippet"]


def test_rules_of_taso_fail_where_they_are_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("taso-000", "taso-137", "--file", TASO) == 4
    printed = capsys.readouterr().out
    assert "1 sound, 1 unsound" in printed and "taso-137 is unsound" in printed


def test_unknown_names_and_files(rule_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("flase", "--file", rule_file) == 2
    assert "did you mean 'false'" in capsys.readouterr().err
    assert verify("--file", rule_file + ".gone") == 3


def test_help_says_how_many_configurations_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "verify", "--help"]) == 0
    assert f"[{DEFAULT_TRIALS}]" in capsys.readouterr().out


def test_the_command_line_is_light() -> None:
    for module, heavy in (("cli.main", "numpy"), ("rules.soundness", "hypothesis")):
        code = f"import sys, relational_tensat.{module}; print({heavy!r} in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["False"]


def test_the_file_of_a_target_is_read_as_any_other() -> None:
    """As the refusal of one of its rules says: its kernels are known, in a process of its own."""
    file = str(resource_dir("rules") / "backends" / "onnxruntime.rules")
    for words in (["check", file], ["verify", "--file", file, "ort-scale-of-product"]):
        command = [sys.executable, "-m", "relational_tensat", "rules", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
