"""``run --fuse`` on products: attention becomes one kernel, with a rule, a cost and a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, Result, kernels, optimize
from relational_tensat.base.errors import InputError
from relational_tensat.cost import open_source
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion.candidates import Version, chain_candidates, region_candidates
from relational_tensat.mugraph.fusion.kernel_builder import computes_nodes
from relational_tensat.mugraph.fusion.kernel_fusion import own_kernels
from relational_tensat.mugraph.fusion.own_kernel import RegionReport
from relational_tensat.mugraph.fusion.savings import profile_of
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.tensor import Graph

INPUTS = Path(__file__).resolve().parents[3] / "bench" / "inputs"
HEADS, QUERIES, KEYS, WIDTH = 2, 8, 16, 4


def attention(scale: float | None = None) -> Graph:
    """Heads beside each other in one dim of queries, keys and values, as models have them."""
    b = GraphBuilder("attention")

    def heads(name: str, rows: int, *perm: int) -> str:
        given = b.input(name, rows, HEADS * WIDTH)
        split = b.op("reshape", given, shape=(rows, HEADS, WIDTH))
        return b.op("transpose", split, perm=perm)

    q, k = heads("q", QUERIES, 1, 0, 2), heads("k", KEYS, 1, 2, 0)
    scores = b.op("matmul", q, k)
    if scale is not None:
        scores = b.op("smul", scores, value=scale)
    weights = b.op("softmax", scores, axis=2)
    mixed = b.op("transpose", b.op("matmul", weights, heads("v", KEYS, 1, 0, 2)), perm=(1, 0, 2))
    return b.build(b.op("reshape", mixed, shape=(QUERIES, HEADS * WIDTH)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A folder with attention, fused; and the result."""
    folder = tmp_path_factory.mktemp("products")
    save_model(attention(), folder / "in.onnx")
    options = Options.of(
        cost="t4", fuse=True, fuse_operators=5, fuse_time_limit_s=None, kernels=folder / "kernels"
    )
    result = optimize(folder / "in.onnx", options, output=folder / "out.onnx")
    return folder, result


def test_attention_is_one_kernel(run: tuple[Path, Result]) -> None:
    _, result = run
    operators = result.graph.count_ops()
    assert operators["fused"] == 1
    assert set(operators) <= {"fused", "reshape"}
    launch_us = 5.0
    assert launch_us < result.cost_after_us < 1.1 * launch_us
    assert result.optimal


def test_the_kernel_is_stable_and_computes_what_the_model_does(run: tuple[Path, Result]) -> None:
    folder, _ = run
    ((key, kernel),) = kernels.load(folder / "kernels", "numpy").items()
    entry = json.loads((folder / "kernels" / "kernels.json").read_text())["kernels"][key]
    assert entry["targets"] == ["triton", "cuda"]
    session = onnxruntime.InferenceSession(folder / "in.onnx", providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    random = np.random.default_rng(0)
    for scale in (1.0, 30.0):  # logits of some hundreds
        feeds = {
            value.name: (scale * random.standard_normal(value.shape)).astype(np.float32)
            for value in session.get_inputs()
        }
        (expected,) = session.run(None, feeds)
        actual = kernel(*(feeds[name] for name in names))
        np.testing.assert_allclose(actual.ravel(), expected.ravel(), rtol=1e-4, atol=1e-4 * scale)
    assert kernels.load(folder / "kernels") == {}  # no C is made of products
    (function,) = onnx.load(folder / "out.onnx").functions
    assert function.name == f"fused_{key}"


def test_regions_within_regions_compute_what_their_nodes_do() -> None:
    for graph in (attention(0.5), load_model(INPUTS / "encoder_block.onnx")):
        candidates = region_candidates(graph, 5)
        assert len(candidates) > 2
        assert all(computes_nodes(candidate, 3) for candidate in candidates)


def test_a_program_with_another_number_is_refused() -> None:
    graph = attention(0.5)
    scaled = [c for c in region_candidates(graph, 6) if _has_scale(c.program)]
    assert scaled
    for candidate in scaled:
        steps = tuple(
            replace(step, attrs={"value": 0.6}) if step.op == "scale" else step
            for step in candidate.program.steps
            if isinstance(step, Operation)
        )
        wrong = replace(candidate, program=replace(candidate.program, steps=steps))
        assert not computes_nodes(wrong, 3)


def test_what_is_too_large_to_be_compared_is_refused() -> None:
    b = GraphBuilder("large")
    x = b.input("x", 1 << 14, 1 << 13)
    graph = b.build(b.op("tanh", b.op("relu", x)))
    (chain,) = chain_candidates(graph)
    with pytest.raises(InputError, match="too large to be compared"):
        computes_nodes(chain, 3)


def test_operands_may_have_their_dims_grouped_in_another_way(run: tuple[Path, Result]) -> None:
    folder, _ = run
    ((_, kernel),) = kernels.load(folder / "kernels", "numpy").items()
    draw = np.random.default_rng(0).standard_normal
    shapes = [(rows, HEADS * WIDTH) for rows in (QUERIES, KEYS, KEYS)]
    operands = [draw(shape).astype(np.float32) for shape in shapes]
    split = [x.reshape(1, x.shape[0], HEADS, WIDTH) for x in operands]
    np.testing.assert_array_equal(kernel(*split), kernel(*operands))
    with pytest.raises(InputError, match=r"an operand of \(8, 8\), expected"):
        kernel(operands[0], operands[0], operands[2])
    with pytest.raises(InputError, match=r"an operand of float64, expected float32"):
        kernel(operands[0].astype(np.float64), *operands[1:])
    with pytest.raises(InputError, match=r"an operand of \(2,\), expected"):
        kernel([1.0, 2.0], *operands[1:])


def _has_scale(program: MuGraph) -> bool:
    return any(isinstance(step, Operation) and step.op == "scale" for step in program.steps)


def test_without_a_gpus_profile_there_are_chains_only() -> None:
    graph = load_model(INPUTS / "gated_mlp.onnx")
    assert profile_of(open_source("analytic:cpu")) is None
    found = own_kernels(
        [[Version(graph)]], open_source("analytic:cpu"), SearchOptions(max_operators=6)
    ).kernels
    assert found
    for kernel in found:
        assert kernel.cost_us is None
        (step,) = kernel.graph.steps
        assert isinstance(step, Kernel)
        assert all(getattr(inner, "op", "") != "matmul" for inner in step.block.steps)


def test_when_the_time_is_over_the_chains_are_left() -> None:
    graph = load_model(INPUTS / "gated_mlp.onnx")
    reports: list[RegionReport] = []
    options = SearchOptions(max_operators=6, time_limit_s=0.0)
    sought = own_kernels([[Version(graph)]], open_source("t4"), options, report=reports.append)
    assert sought.kernels
    assert len(reports) == sought.parts < sought.total
    assert all("matmul" not in report.operators for report in reports)
    assert all(report.kernel_us is not None or report.reason for report in reports)
    late = [row for row in sought.regions if row.fate == "no time"]
    assert len(late) == sought.total - sought.parts
    assert all("matmul" in row.operators and row.operators_us for row in late)
