"""The rules of kernels: each finds its part of the model, all of them at once, and writes as it reads."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from bench.models.builder import GraphBuilder
from relational_tensat import kernels
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion.candidates import chain_candidates, region_candidates
from relational_tensat.mugraph.fusion.kernel_builder import kernel_rule
from relational_tensat.mugraph.fusion.kernel_files import write_kernels
from relational_tensat.mugraph.kernel_finder import SearchEffort
from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.rules.backends.fused_chain import body_of
from relational_tensat.rules.backends.fused_kernel import FusedPart
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule, rule_text
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from tests.custom_ops.fused_files import builder
from tests.with_compilers import needs_c

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


def test_one_kernel_in_two_shapes_is_two_functions(tmp_path: Path) -> None:
    """The nodes that it stands for end in a reshape in one place only."""
    know_kernels()
    kind, flat = TensorType("float32", (2, 3)), {"shape": (6,)}
    bodies = [
        body_of([FusedPart("exp", (0,)), *more], [1 + len(more)])
        for more in ([], [FusedPart("reshape", (1,), flat)])
    ]
    nodes = [
        Node("fused", (name,), (f"{name}{n}",), {"mugraph": "k1", "body": bodies[n]})
        for name, n in (("x", 0), ("x", 1), ("y", 1))
    ]
    graph = build_graph("shapes", {"x": kind, "y": kind}, {}, nodes, ["x0", "x1", "y1"])
    save_model(graph, tmp_path / "out.onnx")
    model = onnx.load(tmp_path / "out.onnx")
    assert [function.name for function in model.functions] == ["fused_k1", "fused_k1_2"]
    session = onnxruntime.InferenceSession(
        tmp_path / "out.onnx", providers=["CPUExecutionProvider"]
    )
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")
    wanted = np.exp(x), np.exp(x).ravel(), np.exp(y).ravel()
    for one, other in zip(session.run(None, {"x": x, "y": y}), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@needs_c
def test_a_folder_has_the_shapes_of_the_graph_that_has_the_kernel(tmp_path: Path) -> None:
    """It was made for another part, whose result has another shape."""
    b = GraphBuilder("part")
    part = b.build(b.op("tanh", b.op("mul", b.input("x", 2, 3), b.input("y", 2, 3))))
    (candidate,) = chain_candidates(part)
    kernel = builder().make(candidate, SearchEffort(1, 0))
    flat = [
        FusedPart("mul", (0, 1)),
        FusedPart("tanh", (2,)),
        FusedPart("reshape", (3,), {"shape": (6,)}),
    ]
    attrs = {"mugraph": kernel.key, "body": body_of(flat, [4])}
    node = Node("fused", ("x", "y"), ("z",), attrs)
    assert (
        write_kernels([kernel], build_graph("flat", part.inputs, {}, [node], ["z"]), tmp_path) == 1
    )
    assert kernel.results == ((2, 3),)
    assert kernels.entries(tmp_path)[kernel.key].results == ((6,),)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(
        kernels.load(tmp_path)[kernel.key](x, x), np.tanh(x * x).ravel(), rtol=1e-5
    )
