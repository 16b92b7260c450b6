"""This engine beside egglog: what is translated, and the command on small graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.engines import command, shapes
from bench.engines.translation import Constructors, rule_command, translate
from bench.engines.works import Task
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules

ENGINE_KEYS = (
    "work", "size", "engine", "cpu_s", "compile_cpu_s", "peak_mib", "e_nodes", "e_classes",
)  # fmt: skip


def test_a_rule_as_egglog_writes_it() -> None:
    text = '(rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))'
    (swap,) = parse_rules(text, "swap.rules")
    constructors = Constructors()
    assert rule_command(swap, constructors, has_shapes=False) == (
        "(rule ((= e0 (add_2 a b))) ((let t0 (add_2 b a)) (union e0 t0))"
        ' :ruleset single :name "swap")'
    )
    assert constructors.declarations() == ["(constructor add_2 (T T) T)"]


def test_a_rule_asks_for_shapes_and_sets_those_of_what_it_builds() -> None:
    (rule,) = (rule for rule in taso_rules() if rule.name == "taso-128")
    text = rule_command(rule, Constructors(), has_shapes=True)
    assert "(!= e0 e1) (= e0 (ordering-min e0 e1))" in text
    assert all(f"(= s_{name} (shape {name}))" in text for name in "abc")
    assert "(let t0 (concat_2 1 b c)) (set (shape t0) s_t0)" in text
    assert text.count("(set (shape") == 2  # of the concat and the product: parts join their sources


def test_every_rule_of_tasos_is_translated() -> None:
    program = translate(Task("taso", "bert"))
    assert sum(command.startswith("(rule (") for command in program.rules) == 139


def test_a_shape_is_a_number() -> None:
    base = shapes.BASE
    assert shapes.pack([2, 3, 5]) == (2 * base + 3) * base + 5
    assert not shapes.fits([2, 0]) and not shapes.fits([base]) and not shapes.fits([1] * 5)


@pytest.mark.nightly
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("egglog")
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    arguments = ["engines", "--sizes", "1200", "--models", "vgg19", "--repeat", "1"]
    assert main([*arguments, "--json", "--save"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["work"], row["size"], row["engine"]) for row in rows] == [
        ("chain", 1200, "egglog"), ("chain", 1200, "ours"),
        ("taso", "vgg19", "egglog"), ("taso", "vgg19", "ours"),
    ]  # fmt: skip
    assert all(row.keys() >= set(ENGINE_KEYS) for row in rows)
    (file,) = tmp_path.iterdir()
    assert {"machine", "versions", "settings", "rows"} <= json.loads(file.read_text()).keys()


def test_the_table_has_a_line_for_each_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"egglog": _taken(1.0), "ours": _taken(2.5)}
    _answer(monkeypatch, taken)
    assert main(["engines", "--works", "chain", "--sizes", "600,1200", "--repeat", "2"]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("| chain 600 | 99 | 7 |") and second.startswith("| chain 1,200 |")
    assert first.endswith("| 2.50 | 1.00 |")


def test_e_graphs_that_differ_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _answer(monkeypatch, {"egglog": _taken(1.0), "ours": {**_taken(1.0), "e_classes": 8}})
    assert main(["engines", "--works", "chain", "--sizes", "600"]) == 4
    assert "chain, 600: e-nodes and e-classes [(99, 7), (99, 8)]" in capsys.readouterr().err


def _taken(cpu_s: float) -> dict[str, Any]:
    seconds = {"cpu_s": cpu_s, "compile_cpu_s": 0.1, "process_cpu_s": 3.0}
    return {**seconds, "peak_mib": 100.0, "e_nodes": 99, "e_classes": 7}


def _answer(monkeypatch: pytest.MonkeyPatch, taken: dict[str, dict[str, Any]]) -> None:
    """Let no engine run."""
    pytest.importorskip("egglog")
    monkeypatch.setattr(command, "_in_a_process", lambda engine, given, environment: taken[engine])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--works", "chains"], "unknown work 'chains'"),
        (["--models", "berd"], "unknown model 'berd'"),
        (["--sizes", "x"], "--sizes 'x', expected whole numbers"),
        (["--repeat", "0"], "--repeat 0, expected 1 or more"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["engines", *arguments]) == 2
    assert f"error: {message}" in capsys.readouterr().err
