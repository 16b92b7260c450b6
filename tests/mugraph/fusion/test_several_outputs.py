"""``run --fuse`` with kernels that give several values: tuples in the e-graph, in ONNX, in a folder."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, Result, kernels, optimize, resume
from relational_tensat.cli.main import main
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion.candidates import (
    KernelCandidate,
    chain_candidates,
    region_candidates,
)
from relational_tensat.mugraph.fusion.chains import Chain, chains, program_of, row_kernel
from relational_tensat.mugraph.fusion.kernel_builder import computes_nodes, kernel_rule
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.regions.groups import Surroundings
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.tensor import Graph, Node
from tests.mugraph.parts import t4_that_copies
from tests.with_compilers import skip_without_compiler

ROWS, COLUMNS = 8, 16


def residual() -> Graph:
    """A sum that is read again after its normalization is."""
    b = GraphBuilder("residual")
    total = b.op("add", b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS))
    gain, bias = b.weight("gain", COLUMNS), b.weight("bias", COLUMNS)
    normed = b.op("layer_norm", total, gain, bias, axis=1, epsilon=1e-5)
    square = b.weight("w", COLUMNS, COLUMNS)
    return b.build(b.op("add", b.op("matmul", normed, square), total))


def options(**more: object) -> Options:
    return Options.of(
        cost="t4", fuse=True, fuse_time_limit_s=0.0, iterations=2, verify_runs=1, **more
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A folder with the model, what became of it, its kernels and its database; and the result."""
    folder = tmp_path_factory.mktemp("residual")
    save_model(residual(), folder / "in.onnx")
    more = {"kernels": folder / "kernels", "db": folder / "run.duckdb"}
    return folder, optimize(folder / "in.onnx", options(**more), output=folder / "out.onnx")


def test_a_value_that_is_used_again_is_the_kernels_other_result(run: tuple[Path, Result]) -> None:
    folder, result = run
    assert result.graph.count_ops() == {"fused": 1, "matmul": 1}
    assert result.fusion is not None
    assert [(used.launches, used.results) for used in result.fusion.used] == [(1, 2)]
    assert result.optimal
    assert result.verification.runs
    plain = optimize(folder / "in.onnx", Options.of(cost="t4", iterations=2, verify_runs=1))
    launch_us = 5.0
    assert result.cost_after_us < plain.cost_after_us - 0.99 * launch_us


def test_in_onnx_it_is_a_function_with_two_results(run: tuple[Path, Result]) -> None:
    folder, _ = run
    model = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(model, full_check=True)
    (function,) = model.functions
    assert len(function.output) == 2
    plain = onnx.inliner.inline_local_functions(model)
    assert not plain.functions
    draw = np.random.default_rng(0).standard_normal
    feeds = {name: draw((ROWS, COLUMNS)).astype(np.float32) for name in ("x", "y")}
    files = [onnx.load(folder / "in.onnx"), model, plain]
    for graph in (file.graph for file in files):  # the builder's weights have no values
        assert {t.name for t in graph.initializer} | {i.name for i in graph.input} > feeds.keys()
    feeds |= {i.name: _ones(i) for i in files[0].graph.input if i.name not in feeds}
    sessions = [
        onnxruntime.InferenceSession(f.SerializeToString(), providers=["CPUExecutionProvider"])
        for f in files
    ]
    expected, *others = [session.run(None, feeds)[0] for session in sessions]
    for actual in others:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def _ones(given: onnx.ValueInfoProto) -> np.ndarray:
    return np.ones([dim.dim_value for dim in given.type.tensor_type.shape.dim], np.float32)


@pytest.mark.parametrize("runner", ["numpy", "c"])
def test_the_loader_gives_both_results(run: tuple[Path, Result], runner: str) -> None:
    skip_without_compiler(runner)
    folder, _ = run
    ((_, kernel),) = kernels.load(folder / "kernels", runner).items()
    random_numbers = np.random.default_rng(0)
    x, y = random_numbers.standard_normal((2, ROWS, COLUMNS)).astype(np.float32)
    gain, bias = random_numbers.standard_normal((2, COLUMNS)).astype(np.float32)
    total, normed = kernel(x, y, gain, bias)
    expected = x + y
    centred = expected - expected.mean(1, keepdims=True)
    size = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    np.testing.assert_allclose(normed, centred / size * gain + bias, rtol=1e-4, atol=1e-5)


def test_the_database_explains_shows_and_resumes_it(
    run: tuple[Path, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, result = run
    db = shutil.copy(folder / "run.duckdb", tmp_path / "run.duckdb")
    assert main(["explain", str(db), "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out
    assert main(["view", str(db), "-o", str(tmp_path / "page.html")]) == 0
    again = resume(Path(db), output=tmp_path / "again.onnx")
    assert again.cost_after_us == result.cost_after_us
    (key,) = json.loads((folder / "kernels" / "kernels.json").read_text())["kernels"]
    assert [n.attrs["mugraph"] for n in again.graph.nodes if n.op == "fused"] == [key]
    assert main(["kernels", "show", str(folder / "kernels" / f"{key}.json")]) == 0


def gates(*, is_cyclic: bool) -> Graph:
    """Two functions of one value, each times another; twice, where the second time one needs the other."""
    b = GraphBuilder("gates")
    x = b.input("x", ROWS, COLUMNS)
    one = b.op("mul", b.op("tanh", x), b.input("g", ROWS, COLUMNS))
    other = b.op("mul", b.op("sigmoid", x), b.input("h", ROWS, COLUMNS))
    y = b.op("matmul", b.op("softmax", b.op("add", one, other), axis=1), b.weight("w", 16, 16))
    third = b.op("mul", b.op("tanh", y), one)
    between = b.op("matmul", third, b.weight("v", COLUMNS, COLUMNS))
    fourth = b.op("mul", b.op("sigmoid", y), between if is_cyclic else other)
    more = [b.op("matmul", value, b.weight(f"w{value}", 16, 16)) for value in (one, other)]
    return b.build(*more, third, fourth, between)


@pytest.mark.parametrize("cycle_filter", ["efficient", "vanilla"])
def test_no_kernel_waits_for_itself(cycle_filter: str) -> None:
    """Its rule finds the place where one operand needs a result, too: that would be a cycle."""
    know_kernels()
    for is_cyclic, places in ((False, 2), (True, 1)):
        graph = gates(is_cyclic=is_cyclic)
        (candidate,) = (c for c in chain_candidates(graph) if set(c.outputs) == {"mul", "mul_2"})
        rule = kernel_rule(candidate, "k0", "fused-k0")
        with closing(EGraph.create(graph)) as egraph:
            explore(egraph, [rule], ExplorationOptions(iterations=1, cycle_filter=cycle_filter))
            ((kept,),) = egraph.database.execute(
                "SELECT count(*) FROM enode e JOIN signature s ON s.id = e.signature"
                " JOIN symbol y ON y.id = s.symbol WHERE y.op = 'fused' AND NOT e.filtered"
            )
        assert kept == places


def test_where_cycles_stay_in_the_e_graph_the_result_has_none() -> None:
    graph = gates(is_cyclic=True)
    plain = optimize(graph, Options.of(cost="t4", iterations=1, verify_runs=1))
    fused = optimize(graph, options(cycle_filter="none"))
    assert fused.verification.runs
    assert fused.cost_after_us < plain.cost_after_us
    assert any(len(node.outputs) == 2 for node in fused.graph.nodes if node.op == "fused")


def _slowly_convex(graph: Graph, nodes: tuple[Node, ...]) -> bool:
    """Whether no path leads out of some nodes and back in, by all paths."""
    inner = {name for node in nodes for name in node.outputs}
    readers = {name: [n for n in graph.nodes if name in n.inputs] for name in graph.types}

    def paths(name: str, was_outside: bool) -> Iterator[bool]:
        for node in readers[name]:
            is_outside = node.outputs[0] not in inner
            yield was_outside and not is_outside
            yield from paths(node.outputs[0], was_outside or is_outside)

    return not any(back for node in nodes for back in paths(node.outputs[0], False))


def _random_graph(choices: random.Random) -> Graph:
    b = GraphBuilder("random")
    values = [b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS)]
    for _ in range(9):
        op = choices.choice(["tanh", "relu", "add", "mul", "softmax"])
        operands = [choices.choice(values[-4:]) for _ in range(2 if op in ("add", "mul") else 1)]
        values.append(b.op(op, *operands, **({"axis": 1} if op == "softmax" else {})))
    return b.build(values[-1], values[-2])


def test_pairs_are_convex_and_their_kernels_right() -> None:
    choices, found = random.Random(0), 0
    for _ in range(12):
        graph = _random_graph(choices)
        for size in (2, 3):
            nodes = tuple(sorted(choices.sample(graph.nodes, size), key=graph.nodes.index))
            around = Surroundings(graph)
            places = around.places(nodes)
            assert around.is_convex(places) == _slowly_convex(graph, nodes)
        for chain in chains(graph):
            if len(chain.outputs) == 2:
                found += 1
                _check(graph, chain)
    assert found > 10


def _check(graph: Graph, chain: Chain) -> None:
    assert _slowly_convex(graph, chain.nodes)
    inner = {name for node in chain.nodes for name in node.outputs}
    outside = [node for node in graph.nodes if node not in chain.nodes]
    read = {name for node in outside for name in node.inputs}.union(graph.outputs)
    assert inner & read == set(chain.outputs)
    program = program_of(chain, graph)
    assert verify_mugraph(program, row_kernel(program), seed=7).passed


def test_the_blocks_have_sums_that_are_used_again() -> None:
    inputs = Path(__file__).resolve().parents[3] / "bench" / "inputs"
    graph = load_model(inputs / "transformer_block.onnx")
    both = [chain for chain in chains(graph) if len(chain.outputs) == 2]
    assert any({"add", "layer_norm"} <= {node.op for node in chain.nodes} for chain in both)
    for chain in both:
        _check(graph, chain)


def test_a_layer_is_normalized_without_a_bias() -> None:
    b = GraphBuilder("norm")
    x = b.input("x", 4, 8)
    normed = b.op("layer_norm", b.op("tanh", x), b.weight("gain", 8), axis=1, epsilon=1e-5)
    graph = b.build(normed)
    found = [*chain_candidates(graph), *region_candidates(graph, 10)]
    assert len(found) > 1
    for candidate in found:
        assert candidate.outputs == (normed,)
        assert computes_nodes(candidate, 3)


def test_products_of_one_value_are_one_kernel(tmp_path: Path) -> None:
    b = GraphBuilder("products")
    x = b.input("x", ROWS, COLUMNS)
    one, other = (b.op("matmul", x, b.weight(name, COLUMNS, COLUMNS)) for name in "vw")
    graph = b.build(b.op("tanh", one), other)
    cost = t4_that_copies(tmp_path)
    plain = optimize(graph, Options.of(cost=cost, iterations=2, verify_runs=1))
    more = {"fuse_time_limit_s": None, "fuse_operators": 3, "iterations": 2, "verify_runs": 1}
    result = optimize(graph, Options.of(cost=cost, fuse=True, kernels=tmp_path, **more))
    assert result.graph.count_ops() == {"fused": 1}
    assert result.cost_after_us < plain.cost_after_us
    ((_, kernel),) = kernels.load(tmp_path, "numpy").items()
    (node,) = result.graph.nodes
    draw = np.random.default_rng(0).standard_normal
    arrays = {name: draw(graph.types[name].shape).astype(np.float32) for name in node.inputs}
    expected = {"v": np.tanh(arrays["x"] @ arrays["v"]), "w": arrays["x"] @ arrays["w"]}
    results = dict(zip(node.outputs, kernel(*arrays.values()), strict=True))
    for value, wanted in zip(graph.outputs, expected.values(), strict=True):
        np.testing.assert_allclose(results[value], wanted, rtol=1e-4, atol=1e-5)


def test_pairs_of_regions_compute_what_their_nodes_do() -> None:
    inputs = Path(__file__).resolve().parents[3] / "bench" / "inputs"
    graph = load_model(inputs / "gated_mlp.onnx")
    both = [c for c in region_candidates(graph, 8) if len(c.outputs) == 2]
    assert any(c.has_products for c in both)
    for candidate in both:
        assert _slowly_convex(graph, candidate.nodes)
        assert computes_nodes(candidate, 3)
        _check_other_program(candidate)


def _check_other_program(candidate: KernelCandidate) -> None:
    """Where the first output is another tensor of the same dims, the check finds that it is wrong."""
    program, dims = candidate.program, kernel_tensors(candidate.program)
    first, *rest = program.outputs
    for step in program.steps:
        (name,) = step.outputs
        if name not in program.outputs and dims[name] == dims[first]:
            wrong = replace(candidate, program=replace(program, outputs=(name, *rest)))
            assert not computes_nodes(wrong, 3)
