"""``run --fuse``: parts of a model become kernels, in the e-graph, in ONNX and in a folder."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, kernels, optimize
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion.chains import MOST_INPUTS, chains, program_of, row_kernel
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.run.request import Run
from relational_tensat.run.stages.explore import with_kernel_costs
from relational_tensat.run.values import Model
from relational_tensat.tensor import Array
from tests.with_compilers import needs_c

INPUTS = Path(__file__).resolve().parents[3] / "bench" / "inputs"
GATED = INPUTS / "gated_mlp.onnx"
DOMAIN = "relational_tensat.kernels"


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the result of chains only, and its kernels in a folder of its own."""
    folder = tmp_path_factory.mktemp("fused")
    more = {"kernels": folder / "kernels", "db": folder / "run.duckdb"}
    options = Options.of(cost="t4", fuse=True, fuse_time_limit_s=0.0, iterations=2, **more)
    plain = optimize(GATED, Options.of(cost="t4", iterations=2))
    result = optimize(GATED, options, output=folder / "out.onnx")
    assert result.cost_after_us < plain.cost_after_us
    assert result.verification.runs
    return folder


def _outputs(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


def test_a_kernel_is_a_local_function_that_the_inliner_dissolves(fused: Path) -> None:
    model = onnx.load(fused / "out.onnx")
    onnx.checker.check_model(model, full_check=True)
    calls = [node.op_type for node in model.graph.node if node.domain == DOMAIN]
    assert calls
    assert {function.name for function in model.functions} == set(calls)
    for function in model.functions:
        (entry,) = function.metadata_props
        assert function.name == f"fused_{entry.value}"
    plain = onnx.inliner.inline_local_functions(model)
    assert not [node for node in plain.graph.node if node.domain == DOMAIN]
    x = np.random.default_rng(0).standard_normal((1, 32, 96)).astype(np.float32)
    feeds = {model.graph.input[0].name: x}
    (original,) = _outputs(onnx.load(GATED), feeds)
    for one in (model, plain):
        np.testing.assert_allclose(_outputs(one, feeds)[0], original, rtol=1e-4, atol=1e-5)


def test_a_function_of_the_models_own_is_not_taken_for_a_kernel(tmp_path: Path) -> None:
    b = GraphBuilder("chain")
    x, y = b.input("x", 4, 8), b.input("y", 4, 8)
    save_model(b.build(b.op("tanh", b.op("mul", b.op("add", x, y), y))), tmp_path / "chain.onnx")
    optimize(
        tmp_path / "chain.onnx", Options.of(cost="t4", fuse=True), output=tmp_path / "out.onnx"
    )
    (kernel,) = onnx.load(tmp_path / "out.onnx").functions
    model = onnx.load(tmp_path / "chain.onnx")
    negated = onnx.helper.make_node("Neg", ["a"], ["b"])
    opsets = [onnx.helper.make_opsetid("", 17)]
    own = onnx.helper.make_function(DOMAIN, kernel.name, ["a"], ["b"], [negated], opsets)
    model.functions.append(own)
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    model.graph.node.append(onnx.helper.make_node(kernel.name, ["z"], ["other"], domain=DOMAIN))
    for values, name in ((model.graph.input, "z"), (model.graph.output, "other")):
        values.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 8]))
    onnx.save(model, tmp_path / "own.onnx")
    result = optimize(
        tmp_path / "own.onnx", Options.of(cost="t4", fuse=True), output=tmp_path / "out.onnx"
    )
    assert result.graph.count_ops()["fused"] == 1
    written = onnx.load(tmp_path / "out.onnx")
    assert {f.name for f in written.functions} == {kernel.name, f"{kernel.name}_2"}
    feeds = {name: np.full((4, 8), 0.5, np.float32) for name in "xyz"}
    for one, expected in zip(_outputs(written, feeds), _outputs(model, feeds), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-6)


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Return the shapes of all values outside of functions."""
    plain = onnx.shape_inference.infer_shapes(onnx.inliner.inline_local_functions(model)).graph
    declared = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*plain.value_info, *plain.input)
    }
    return declared | {tensor.name: list(tensor.dims) for tensor in plain.initializer}


@needs_c
def test_the_kernels_of_the_folder_compute_what_the_functions_do(fused: Path) -> None:
    loaded = kernels.load(fused / "kernels")
    model = onnx.load(fused / "out.onnx")
    assert {f"fused_{key}" for key in loaded} == {function.name for function in model.functions}
    shapes = _shapes(model)
    random = np.random.default_rng(0)
    for node in model.graph.node:
        if node.domain != DOMAIN:
            continue
        values = [random.uniform(0.5, 1, shapes[name]).astype(np.float32) for name in node.input]
        graph = onnx.helper.make_graph(
            [node], "call",
            [onnx.helper.make_tensor_value_info(n, 1, shapes[n]) for n in node.input],
            [onnx.helper.make_tensor_value_info(node.output[0], 1, None)],
        )  # fmt: skip
        call = onnx.helper.make_model(
            graph, functions=model.functions, opset_imports=model.opset_import, ir_version=10
        )
        (want,) = _outputs(call, dict(zip(node.input, values, strict=True)))
        actual = loaded[node.op_type.removeprefix("fused_")](*values)
        np.testing.assert_allclose(actual.ravel(), want.ravel(), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="operands, expected"):
        next(iter(loaded.values()))()


def test_the_folder_has_each_kernel_in_every_language(fused: Path) -> None:
    names = {path.name for path in (fused / "kernels").iterdir()}
    keys = {name.removesuffix(".c") for name in names if name.endswith(".c")}
    assert keys
    files = {f"{key}{suffix}" for key in keys for suffix in (".json", ".py", ".cu", ".c")}
    assert names == files | {"kernels.json", "common.cuh", "tiles.cuh", "fused.cuh"}


def test_chains_of_models_are_theirs_alone_and_their_kernels_right() -> None:
    for name in ("gated_mlp", "encoder_block", "transformer_block"):
        graph = load_model(INPUTS / f"{name}.onnx")
        found = chains(graph)
        assert found
        for chain in found:
            inner = {node.outputs[0] for node in chain.nodes} - {*chain.outputs}
            outside = [node for node in graph.nodes if node not in chain.nodes]
            assert not inner & {name for node in outside for name in node.inputs}
            assert not inner & set(graph.outputs)
            assert len(chain.inputs) <= MOST_INPUTS
            program = program_of(chain, graph)
            assert verify_mugraph(program, row_kernel(program), seed=7).passed


def test_a_kernel_has_more_operands_than_an_e_node_has_columns(tmp_path: Path) -> None:
    b = GraphBuilder("many")
    names = [b.input(f"x{n}", 4, 8) for n in range(7)]
    total = names[0]
    for name in names[1:]:
        total = b.op("mul", b.op("add", total, name), name)
    save_model(b.build(b.op("tanh", total)), tmp_path / "many.onnx")
    options = Options.of(
        cost="t4", fuse=True, kernels=tmp_path / "kernels", db=tmp_path / "many.duckdb"
    )
    result = optimize(tmp_path / "many.onnx", options, output=tmp_path / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    (node,) = result.graph.nodes
    assert len(node.inputs) == 7
    assert result.verification.runs
    assert main(["explain", str(tmp_path / "many.duckdb"), "--check"]) == 0
    ((_, kernel),) = kernels.load(tmp_path / "kernels", "numpy").items()
    draw = np.random.default_rng(0).standard_normal
    feeds = {name: draw((4, 8)).astype(np.float32) for name in names}
    (expected,) = _outputs(onnx.load(tmp_path / "many.onnx"), feeds)
    np.testing.assert_allclose(
        kernel(*(feeds[name] for name in node.inputs)), expected, rtol=1e-5, atol=1e-6
    )


def test_a_folder_without_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kernels\.json: no list of kernels"):
        kernels.load(tmp_path)


def test_the_run_can_be_explained_from_its_database(
    fused: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(fused / "run.duckdb"), "--check"]) == 0
    printed = capsys.readouterr().out
    assert "fused-k" in printed
    assert "checked: every step is what its rule says" in printed


def test_a_folder_without_fusion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--kernels goes with --fuse"):
        optimize(GATED, Options.of(cost="t4", kernels=tmp_path))


def test_costs_measured_on_a_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from relational_tensat.run.progress import Silent

    run = Run.begin(Options.of(cost="t4", fuse=True), GATED, None, None, Silent(), optimize)
    monkeypatch.setattr(
        type(run.cost),
        "device",
        property(lambda self: SimpleNamespace(key=SimpleNamespace(kind="cuda"))),
    )
    with pytest.raises(UsageError, match="--fuse goes with modelled costs"):
        with_kernel_costs(run.options, Model(GATED, load_model(GATED)), run.cost)
