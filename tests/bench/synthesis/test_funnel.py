"""The whole funnel, for operators and for a model: what it finds, keeps, and goes on with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.synthesis.funnel import RuleFunnel, SynthesisRequest
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from relational_tensat.formats.frontend import save_model
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import term_text
from relational_tensat.tensor.graph import Graph, Node, build_graph
from relational_tensat.tensor.types import TensorType

LAWS = parse_rules('(rule known (law "l") (from (neg (neg ?x))) (to ?x))', "test")


def signs(tmp_path: Path, seed: int = 0) -> SynthesisRequest:
    return SynthesisRequest(operators=("neg", "abs", "relu"), size=2, seed=seed, trials=60)


def test_laws_of_operators_are_found_but_for_those_that_are_known(tmp_path: Path) -> None:
    with SynthesisStore(None) as store:
        tools = SynthesisTools("t4", LAWS)
        rules = RuleFunnel(store, signs(tmp_path), tools, lambda text: None).run()
        rows = dict(store.rows("funnel"))
    laws = {rule.law for rule in rules}
    assert {"abs(neg(a)) = abs(a)", "relu(relu(a)) = relu(a)", "abs(abs(a)) = abs(a)"} <= laws
    assert not any("neg(neg" in law for law in laws)
    assert rows["derived from the laws"] >= 1


def test_what_is_there_is_not_done_again(tmp_path: Path) -> None:
    db = tmp_path / "synth.duckdb"
    found = []
    for _ in range(2):
        with SynthesisStore(db) as store:
            tools = SynthesisTools("t4", LAWS)
            funnel = RuleFunnel(store, signs(tmp_path), tools, lambda text: None)
            found.append([rule.law for rule in funnel.run()])
            stages = store.rows("stages")
    assert found[0] == found[1]
    assert len(stages) == 4


def negative_part() -> Graph:
    """x - relu(x)."""
    nodes = [Node("relu", ("x",), ("above",)), Node("sub", ("x", "above"), ("y",))]
    kind = TensorType("float32", (64, 192))
    return build_graph("part", {"x": kind}, {}, nodes, ["y"], where="part")


def test_a_model_gets_a_rule_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, rules = tmp_path / "part.json", tmp_path / "found.rules"
    save_model(negative_part(), model)
    page = tmp_path / "part.html"
    command = ["synthesize", str(model), "--size", "1", "-o", str(rules), "--for", "t4"]
    assert main([*command, "--time-limit", "60", "--html", str(page)]) == 0
    (rule,) = load_rules([rules])
    assert term_text(rule.targets[0]) == "(clip ?a :max 0.0)"
    assert "% of part" in rules.read_text()
    assert "distinct up to names" in capsys.readouterr().out
    shown = page.read_text()
    assert "<td>found</td><td>1</td>" in shown
    assert "<td>judged</td><td>1</td>" in shown
    (gain,) = re.findall(r"<td>found</td><td>([\d.]+)%</td><td>part</td>", shown)
    assert float(gain) > 0
    assert "(rule" in shown and "more are in the file" not in shown


def test_nothing_is_written_over_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text('(rule known (law "l") (from (neg (neg ?x))) (to ?x))')
    command = ["synthesize", "--operators", "neg", "--rules", str(rules), "-o", str(rules)]
    assert main(command) == 2
    assert "is read, too, expected another name" in capsys.readouterr().err


def test_nothing_to_seek_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synthesize"]) == 2
    assert "expected models, or --operators" in capsys.readouterr().err
