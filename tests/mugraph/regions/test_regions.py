"""Regions of models: each program computes what its nodes compute, and repeats nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import load_model, save_model
from relational_tensat.base.errors import ShapeError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Operation
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.kernels.emit_c import compiled_kernels
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.regions.region_program import IndexAtoms
from relational_tensat.mugraph.regions.regions import Cones, find_regions
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from relational_tensat.verify.evaluate import evaluate_graph
from tests.with_compilers import needs_c

MODEL = Path(__file__).parents[3] / "bench" / "inputs" / "transformer_block.onnx"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command prints."""
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_database_has_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "regions.duckdb")
    found = json.loads(printed(capsys, "kernels", "regions", str(MODEL), "--db", path, "--json"))
    stored = json.loads(printed(capsys, "kernels", "regions", path, "--json"))
    assert stored["regions"] == found["regions"]
    key = json.dumps
    assert sorted(stored["left_out"], key=key) == sorted(found["left_out"], key=key)
    assert any(region["values"] > 1 for region in found["regions"])

    asked = "SELECT reason FROM fused_region WHERE fate = 'border' AND operators = ['softmax']"
    rows = json.loads(printed(capsys, "sql", path, asked, "--json"))
    wanted = [
        r for r in found["left_out"] if r["fate"] == "border" and r["operators"] == ["softmax"]
    ]
    assert len(rows) == len(wanted)
    asked = "SELECT number, count(*) AS places FROM region GROUP BY number ORDER BY number"
    rows = json.loads(printed(capsys, "sql", path, asked, "--json"))
    places = [len(r["outputs"]) // r["values"] for r in found["regions"]]
    assert [(row["number"], row["places"]) for row in rows] == list(enumerate(places))
    assert "As kernels search MODEL --region takes it" in printed(capsys, "schema", path)


def test_a_database_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "regions.duckdb"
    path.write_text("mine", encoding="utf-8")
    assert main(["kernels", "regions", str(MODEL), "--db", str(path)]) == 3
    assert capsys.readouterr().err.endswith("is there already; name another database\n")
    assert path.read_text(encoding="utf-8") == "mine"
    nowhere = str(tmp_path / "none" / "regions.duckdb")
    assert main(["kernels", "regions", str(MODEL), "--db", nowhere]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["kernels", "regions", "run.duckdb", "--db", str(path)]) == 2
    assert "run.duckdb is a database already" in capsys.readouterr().err


INPUTS = Path(__file__).parents[3] / "bench" / "inputs"


def nodes_of(model: Graph, output: str, count: int) -> list[Node]:
    """Return a region's nodes: as many as lie before its end and are read within only."""
    makers = {name: node for node in model.nodes for name in node.outputs}
    chosen = {output: makers[output]}
    changed = True
    while changed:
        changed = False
        for node in reversed(model.nodes):
            name = node.outputs[0]
            readers = {n.outputs[0] for n in model.nodes if name in n.inputs}
            if name not in chosen and readers and readers <= chosen.keys() and len(chosen) < count:
                chosen[name] = node
                changed = True
    return [node for node in model.nodes if node.outputs[0] in chosen]


def test_programs_compute_what_their_nodes_compute() -> None:
    """Every chain of nodes before every node of four models, as far as it can be lowered."""
    compared = 0
    for name in ("decoder_block", "gated_mlp", "encoder_block", "transformer_block"):
        model = load_model(INPUTS / f"{name}.onnx")
        for node in model.nodes:
            for count in (2, 6, 12):
                nodes = nodes_of(model, node.outputs[0], count)
                try:
                    compare(model, nodes)
                except ShapeError:
                    continue
                compared += 1
    assert compared > 180


def compare(model: Graph, nodes: list[Node]) -> None:
    made = {name for node in nodes for name in node.outputs}
    read = dict.fromkeys(n for node in nodes for n in node.inputs if n not in made)
    region = lowered(model, nodes, "region")
    weights = {n: model.weights[n] for n in read if n in model.weights}
    kinds = {n: model.types[n] for n in read if n not in weights}
    inputs = {n: kind for n, kind in kinds.items() if isinstance(kind, TensorType)}
    part = build_graph("part", inputs, weights, nodes, [nodes[-1].outputs[0]])
    random = np.random.default_rng(0)
    values = {n: random.uniform(0.5, 1.5, kind.shape) for n, kind in inputs.items()}
    values |= {n: v > 1.0 for n, v in values.items() if inputs[n].dtype == "bool"}
    (expected,) = evaluate_graph(part, values, {n: w.data for n, w in weights.items()}).values()
    every = values | {n: w.data for n, w in weights.items() if w.data is not None}
    program = region.program
    given = {
        key: np.asarray(every[name], np.float64).reshape([d.size for d in dims])
        for (key, dims), name in zip(program.inputs.items(), region.inputs, strict=True)
    }
    (computed,) = evaluate(program, given, Numbers()).values()
    names = variables(kernel_tensors(program)[program.outputs[0]])
    ordered = computed.transpose([names.index(name) for name in region.orders[0]])
    wanted = np.asarray(expected)
    # onnxruntime expands in float32
    np.testing.assert_allclose(ordered.reshape(wanted.shape), wanted, rtol=1e-6, atol=1e-7)


def test_grouped_queries_repeat_no_keys() -> None:
    regions, _ = find_regions(load_model(INPUTS / "decoder_block.onnx"))
    (attention,) = [r for r in regions if r.outputs == ("_unsafe_view_2",)]
    steps = [step for step in attention.program.steps if isinstance(step, Operation)]
    assert "repeat" not in {step.op for step in steps}
    (scores,) = [s for s in attention.program.operators[:5] if s.op == "matmul"]
    dims = kernel_tensors(attention.program)
    queries, keys = (set(variables(dims[name])) for name in scores.operands)
    assert (
        len(queries & keys) == 2
    )  # the shared head and what is summed; the group is the queries' own


def test_a_gated_mlp_with_its_norm_and_residual_is_one_kernel() -> None:
    (region,), _ = find_regions(load_model(INPUTS / "gated_mlp.onnx"))
    assert region.nodes == 14
    (route,) = search_kernels(region.program, SearchOptions(max_operators=12, max_kernels=1)).routes
    assert len(route.alternatives) == 1


def test_a_normalized_layer_with_its_product_is_one_kernel() -> None:
    regions, left_out = find_regions(load_model(INPUTS / "transformer_block.onnx"))
    (region,) = [r for r in regions if r.outputs == ("gelu",)]
    steps = [step.op for step in region.program.steps if isinstance(step, Operation)]
    assert steps == ["sum", "scale", "sub", "rms", "div", "mul", "add", "matmul", "add", "gelu"]
    (route,) = search_kernels(region.program, SearchOptions(max_operators=10, max_kernels=1)).routes
    assert len(route.alternatives) == 1
    assert {row.fate for row in left_out} == {"border"}


def test_why_a_region_goes_no_further_is_a_row() -> None:
    """The norm's result is read by two products: with it, the region of one would not be convex."""
    graph = load_model(INPUTS / "gated_mlp.onnx")
    cones = Cones(graph)
    (gate,) = (node for node in graph.nodes if node.outputs == ("/gate/MatMul_output_0",))
    *_, cone = cones.grown(gate)
    (row,) = cones.borders(cone, "model")
    assert (row.fate, row.outputs, row.operators) == ("border", gate.outputs, ("mul",))
    assert row.reason == (
        "/norm/Mul_1_output_0 (mul) is not within: others read it, too: with it, the region would not "
        "be convex"
    )
    assert row.values()[-3:] == (None, None, None)


def test_regions_of_two_values_come_after_those_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The largest, equal ones once; what nodes of a pair compute, test_several_outputs compares."""
    model = INPUTS / "transformer_block.onnx"
    regions, _ = find_regions(load_model(model))
    values = [region.values for region in regions]
    assert values == sorted(values) and set(values) == {1, 2}
    for region in regions:
        assert len(region.program.outputs) == region.values
        assert len(region.outputs) % region.values == 0
    (norm,) = [r for r in regions if r.outputs[:2] == ("layer_norm", "transpose_3")]
    assert len(norm.outputs) == 3 * 2  # queries, keys and values each, beside what all of them read
    model = INPUTS / "decoder_block.onnx"
    regions, _ = find_regions(load_model(model))
    number = regions.index(next(r for r in regions if r.outputs == ("transpose_1", "unsqueeze_1")))
    assert main(["kernels", "regions", str(model)]) == 0
    assert "transpose_1 + unsqueeze_1" in capsys.readouterr().out
    search = ["kernels", "search", str(model), "--region", str(number), "--max-kernels", "1"]
    assert main([*search, "--no-cache", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (kernel,) = found["best"]["graph"]["steps"]
    assert len(kernel["savers"]) == len(found["best"]["graph"]["outputs"]) == 2
    assert found["verification"]["passed"]


def test_queries_keys_and_values_are_a_region_of_three_values() -> None:
    """After those of two; one kernel stores all three."""
    regions, _ = find_regions(load_model(INPUTS / "decoder_block.onnx"))
    assert [region.values for region in regions] == sorted(region.values for region in regions)
    three = regions[-1]
    assert three.outputs == ("transpose", "transpose_1", "unsqueeze_1") and three.values == 3
    assert [step.op for step in three.program.operators] == ["matmul"] * 3
    best = find_kernels(three.program, SearchOptions(max_kernels=1, max_operators=6)).best
    assert best is not None and len(best.graph.kernels[0].outputs) == 3
    assert verify_mugraph(three.program, best.graph, 3).passed


def test_the_commands_name_regions(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(INPUTS / "gated_mlp.onnx")
    assert main(["kernels", "regions", model]) == 0
    assert "rms, div, mul, matmul, sigmoid, mul, matmul" in capsys.readouterr().out
    assert main(["kernels", "search", model]) == 2
    assert "--region N names one of its 1 regions" in capsys.readouterr().err
    assert main(["kernels", "regions", str(INPUTS / "decoder_block.onnx")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "gives no zeros for zeros" in printed and "is not within" in printed


def test_a_region_that_recurs_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(INPUTS / "decoder_block.onnx")
    regions, _ = find_regions(load_model(Path(model)))
    assert main(["kernels", "regions", model]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    recurring = [number for number, region in enumerate(regions) if len(region.places) > 1]
    assert recurring
    for number, region in enumerate(regions):
        ends = " + ".join(region.places[0]).split()
        assert lines[number].split()[: len(ends) + 2] == [
            str(number), *ends, str(len(region.places)),
        ]  # fmt: skip


def test_regions_of_a_model_with_dynamic_dims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What regions takes, search and verify take, too."""
    node = onnx.helper.make_node
    kind = onnx.TensorProto.FLOAT
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node("Mul", ["x", "x"], ["a"]), node("MatMul", ["a", "w"], ["y"])], "dynamic",
        [info("x", kind, ["rows", 8]), info("w", kind, [8, 4])], [info("y", kind, ["rows", 4])],
    )  # fmt: skip
    model, kept = str(tmp_path / "dynamic.onnx"), str(tmp_path / "kernel.json")
    imports = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8), model)
    region = [model, "--region", "0"]
    assert main(["kernels", "search", *region]) == 3
    assert "--dim rows=1" in capsys.readouterr().err
    dims = [*region, "--dim", "rows=6"]
    assert main(["kernels", "search", *dims, "--no-cache", "-o", kept]) == 0
    assert main(["kernels", "verify", kept, *dims]) == 0
    assert main(["kernels", "verify", kept, *region, "--dim", "rows=5"]) == 4
    for wrong in (["lora", "--dim", "rows=6"], [*region, "--size", "rows=6"]):
        capsys.readouterr()
        assert main(["kernels", "search", *wrong]) == 2
        assert "goes with a" in capsys.readouterr().err


def test_dims_split_and_merge_everywhere_at_once() -> None:
    atoms = IndexAtoms()
    heads, width = atoms.new(6), atoms.new(16)
    (merged,) = atoms.regrouped([heads, width], [96])
    group = atoms.regrouped([heads], [2, 3])
    assert atoms.resolved(merged) == (*group[0], *group[1], *width)
    other = atoms.new(2)
    atoms.identify(group[0], other)
    assert atoms.resolved(other) == atoms.resolved(group[0])
    with pytest.raises(ShapeError):
        atoms.regrouped([width], [3, 5])
    with pytest.raises(ShapeError):
        atoms.identify(width, atoms.new(9))


@needs_c
def test_a_region_that_is_searched_alone_is_stored_as_the_model_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Transposes rename variables in programs: a kernel that is made of one has to be told the order."""
    b = GraphBuilder("transposed")
    x, y = b.input("x", 4, 8), b.input("y", 4, 8)
    last = b.op("transpose", b.op("tanh", b.op("mul", x, y)), perm=(1, 0))
    save_model(b.build(last), tmp_path / "model.onnx")
    found = str(tmp_path / "best.json")
    printed(
        capsys,
        "kernels",
        "search",
        str(tmp_path / "model.onnx"),
        "--region",
        "0",
        "--no-cache",
        "-o",
        found,
    )
    graph = load_mugraph(tmp_path / "best.json")
    (function,) = compiled_kernels(graph, tmp_path).values()
    rng = np.random.default_rng(0)
    one, other = (rng.standard_normal((4, 8)).astype(np.float32) for _ in range(2))
    result = np.empty((8, 4), np.float32)
    function([one, other], [result])
    np.testing.assert_allclose(result, np.tanh(one * other).T, rtol=1e-5, atol=1e-6)
