"""What made a graph wrong is found by bisecting the chain of steps, and left out."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from relational_tensat.run.stages import second_search
from relational_tensat.tensor import Node, build_graph
from tests.graphs import f32

#: Four neighbours that rules can do something about; the wrong rule's is one of them.
NODES = [
    Node("relu", ("x",), ("a",)),
    Node("relu", ("a",), ("b",)),
    Node("tanh", ("b",), ("c",)),
    Node("relu", ("c",), ("d",)),
    Node("relu", ("d",), ("y",)),
]
BUILDS = (
    '(rule wrong (law "relu(tanh(a)) = sigmoid(a)") (unsound)'
    " (from (relu (tanh ?a))) (to (sigmoid ?a)))"
)
UNITES = '(rule wrong (law "tanh(a) = a") (unsound) (from (tanh ?a)) (to ?a))'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_model(build_graph("m", {"x": f32(2, 3)}, {}, NODES, ["y"]), tmp_path / "m.json")
    return tmp_path / "m.json"


def run(model: Path, rule: str, *more: str) -> list[str]:
    """Return the arguments of a run with an unsound rule and a sound one."""
    rules = model.with_name("my.rules")
    sound = '(rule relus (law "relu(relu(a)) = relu(a)") (from (relu (relu ?a))) (to (relu ?a)))'
    rules.write_text(f"{sound}\n{rule}")
    output = str(model.with_name("m.opt.json"))
    flags = ["--rules", str(rules), "--allow-unsound", "--iterations", "3", "-o", output]
    return ["run", str(model), *flags, *more]


def test_a_rule_that_unites_what_differs_is_left_out(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = run(model, UNITES, "--db", str(model.with_name("run.duckdb")), "--force")
    assert main([*argv, "--strict", "--quiet"]) == 4
    assert not model.with_name("m.opt.json").exists()
    capsys.readouterr()
    assert main([*argv, "--quiet", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (rejection,) = content["rejections"]
    assert rejection["rule"] == "wrong"
    assert rejection["why"].startswith("wrong (tanh(a) = a) at ")
    assert rejection["why"].endswith("the rule is left out")
    assert content["verified"]["ok"] and not content["unchanged"]
    assert load_model(model.with_name("m.opt.json")).count_ops() == {"relu": 2, "tanh": 1}
    with duckdb.connect(str(model.with_name("run.duckdb"))) as connection:
        names = connection.execute("SELECT name FROM rule").fetchall()
    assert names == [("relus",)]  # what explain and resume see is the run without the rule


@pytest.mark.parametrize("more", [(), ("--set", "extract-every=1"), ("--extractor", "greedy")])
def test_only_the_application_at_fault_is_left_out(
    model: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    assert main([*run(model, BUILDS, *more), "--quiet", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (rejection,) = content["rejections"]
    assert rejection["rule"] == "wrong"
    assert rejection["why"].endswith("this application is left out")
    assert rejection["why"] in content["notes"]
    assert set(content["rules"]) == {"relus", "wrong"}  # the rule itself stays
    assert content["verified"]["ok"] and not content["unchanged"]
    assert load_model(model.with_name("m.opt.json")).count_ops() == {"relu": 2, "tanh": 1}


def test_a_rule_that_is_wrong_everywhere_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = []
    for i in range(3):
        nodes += [
            Node("tanh", (f"x{i}",), (f"t{i}",)),
            Node("relu", (f"t{i}",), (f"r{i}",)),
            Node("relu", (f"r{i}",), (f"y{i}",)),
        ]
    inputs = {f"x{i}": f32(2, 3) for i in range(3)}
    model = tmp_path / "m.json"
    save_model(build_graph("m", inputs, {}, nodes, ["y0", "y1", "y2"]), model)
    assert main([*run(model, BUILDS), "--quiet", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    endings = [rejection["why"].rpartition(": ")[2] for rejection in content["rejections"]]
    assert endings == ["this application is left out"] * 2 + ["the rule is left out"]
    assert content["verified"]["ok"] and not content["unchanged"]
    written = load_model(model.with_name("m.opt.json"))
    assert written.count_ops() == {"tanh": 3, "relu": 3}


def test_at_last_the_original_is_there(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = run(model, UNITES, "--db", str(model.with_name("run.duckdb")), "--force")
    rules = model.with_name("my.rules")
    rules.write_text(UNITES)
    assert main([*argv, "--quiet"]) == 0
    line = capsys.readouterr().out
    assert "wrong (tanh(a) = a) at " in line and "verified" not in line
    assert model.with_name("m.opt.json").read_bytes() == model.read_bytes()


def test_the_lines_reproduce_it(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    assert main([*run(model, UNITES), "-v"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert any(line.startswith("wrong (tanh(a) = a) at ") for line in lines[:2])
    begin = next(i for i, line in enumerate(lines) if line.startswith("  import numpy"))
    end = next(i for i, line in enumerate(lines) if line.startswith("  print("))
    exec("\n".join(line[2:] for line in lines[begin : end + 1]), {})
    assert "computes something else" in capsys.readouterr().out


def test_no_rule_is_blamed_where_the_original_is_wrong_as_soon_as_it_is_written(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(second_search, "_is_right", lambda _state, _graph: False)
    assert main([*run(model, UNITES), "--quiet", "--json", "--force"]) == 0
    content = json.loads(capsys.readouterr().out)
    (rejection,) = content["rejections"]
    assert not rejection["rule"]
    assert "the original, read and written without a change, is wrong, too" in rejection["why"]
    assert content["unchanged"]
