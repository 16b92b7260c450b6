"""The rules of kernels: each finds its part of the model, all of them at once, and writes as it reads."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.formats import load_model
from relational_tensat.mugraph.fusion.candidates import region_candidates
from relational_tensat.mugraph.fusion.kernel_rule import kernel_rule
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.targets.known import know_kernels
from relational_tensat.rules.text import rule_text
from relational_tensat.tensor import Graph

INPUTS = Path(__file__).resolve().parents[3] / "bench" / "inputs"


def _rules(graph: Graph) -> list[Rule]:
    know_kernels()
    candidates = region_candidates(graph, 8)
    return [kernel_rule(c, f"k{n}", f"fused-k{n}") for n, c in enumerate(candidates)]


def test_each_rule_finds_its_part_beside_all_others() -> None:
    """Regions within regions share most of their patterns."""
    graph = load_model(INPUTS / "gated_mlp.onnx")
    rules = _rules(graph)
    assert len(rules) > 10
    with closing(EGraph.create(graph)) as egraph:
        exploration = explore(egraph, [*load_rules(), *rules], ExplorationOptions(iterations=2))
        assert all(exploration.rules[rule.name].applied for rule in rules)


def test_a_rule_can_be_read_from_its_text() -> None:
    for name in ("gated_mlp", "encoder_block"):
        for rule in _rules(load_model(INPUTS / f"{name}.onnx")):
            (read,) = parse_rules(rule_text(rule), rule.file, most_sources=4)
            assert rule_text(replace(read, line=rule.line)) == rule_text(rule)
