"""Runs for a backend: priced by its kernels, written as the operators that it makes them of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from relational_tensat import Options, load_model, load_profile, optimize, save_model
from relational_tensat.cost import as_source, graph_cost_us
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.soundness.store import check_trust
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.evaluate import evaluate_graph
from tests.graphs import f32
from tests.run.backend.test_onnxruntime_kernels import (
    convolutions,
    encoder_layer,
    gated_decoder,
    images_in_blocks,
    many_images_in_blocks,
)

GRAPHS = (convolutions, encoder_layer, gated_decoder, images_in_blocks, many_images_in_blocks)


def costs() -> BackendCosts:
    backend = load_backend("onnxruntime")
    return BackendCosts(
        as_source(load_profile("cpu")), backend, backend.rules(has_fixed_shapes=True)
    )


@pytest.mark.parametrize("make", GRAPHS)
def test_what_is_written_for_kernels_computes_the_same_and_is_run_by_them_again(
    make: Callable[[], Graph],
) -> None:
    graph, source = make(), costs()
    kernels = source.as_run(graph)
    assert any(isinstance(get_operator(node.op), FusedKernel) for node in kernels.nodes)
    written = expand_to_onnx(kernels, graph)
    assert not any(isinstance(get_operator(node.op), FusedKernel) for node in written.nodes)
    assert source.as_run(written).count_ops() == kernels.count_ops()
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal(kind.shape) for name, kind in graph.inputs.items()}
    weights = {name: np.asarray(weight.data, np.float64) for name, weight in graph.weights.items()}
    expected = evaluate_graph(graph, inputs, weights)["y"]
    for other in (kernels, written):
        used = {name: weights[name] for name in other.weights}
        np.testing.assert_allclose(evaluate_graph(other, inputs, used)["y"], expected, rtol=1e-6)


def test_what_a_kernel_hides_keeps_the_name_that_the_original_has_for_it() -> None:
    graph = images_in_blocks()
    written = expand_to_onnx(costs().as_run(graph), graph)
    assert {*"abcdefg"} <= written.types.keys()
    assert (
        "j" in expand_to_onnx(costs().as_run(convolutions()), convolutions()).types
    )  # a SiLU's gate


def test_a_kernel_of_several_operators_costs_less_than_these_and_as_much_however_it_is_written() -> (
    None
):
    graph, source = convolutions(), costs()
    before_us = graph_cost_us(graph, source)
    assert before_us < graph_cost_us(graph, load_profile("cpu"))
    assert graph_cost_us(expand_to_onnx(source.as_run(graph), graph), source) == pytest.approx(
        before_us
    )


def test_a_run_finds_no_gain_where_the_target_fuses_anyway(tmp_path: Path) -> None:
    model, output = tmp_path / "model.onnx", tmp_path / "optimized.onnx"
    save_model(convolutions(), model)  # that the rules are sound is not looked up again
    options = Options.of(cost="analytic:cpu", allow_unsound=True, iterations=3)
    plain = optimize(model, options)
    targeted = optimize(model, options.replace(backend="onnxruntime"), output=output)
    assert targeted.cost_profile == "cpu on onnxruntime"
    assert targeted.cost_before_us < plain.cost_before_us
    saved = plain.cost_before_us / plain.cost_after_us
    assert 1 <= targeted.cost_before_us / targeted.cost_after_us < saved
    assert targeted.verification.max_relative_error < 1e-5
    kernels = load_backend("onnxruntime").kernels
    assert not {kernel.name for kernel in kernels} & load_model(output).count_ops().keys()


def test_what_never_pays_there_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    nodes = [
        *(
            Node("conv", ("x", w), (w + "x",), {"stride": (1, 1), "pad": "valid"})
            for w in ("v", "w")
        ),
        Node("add", ("vx", "wx"), ("y",)),
    ]
    weights = {name: Weight(f32(16, 16, 1, 1)) for name in ("v", "w")}
    graph = build_graph("g", {"x": f32(1, 16, 4, 4)}, weights, nodes, ["y"])
    (name, _) = left_out = sorted(load_backend("onnxruntime").left_out)
    assert {*left_out} <= {rule.name for rule in load_rules()}

    def built_by(database: str, **options: Any) -> set[str]:
        """Return the rules that built the e-nodes of a run."""
        file = tmp_path / database
        settings = {"backend": "onnxruntime", "cost": "analytic:cpu", "budget_s": 0.0, **options}
        optimize(graph, Options.of(**settings, db=file, allow_unsound=True))
        with duckdb.connect(str(file)) as connection:
            rows = connection.execute("SELECT r.name FROM enode JOIN rule r ON r.id = enode.rule")
            return {rule for (rule,) in rows.fetchall()}

    assert name not in built_by("backend.duckdb")
    assert name in built_by("named.duckdb", only=(name,))
    assert name in built_by("no_backend.duckdb", backend=None)


def test_its_rules_are_sound() -> None:
    rules = [
        rule
        for rule in load_backend("onnxruntime").rules(has_fixed_shapes=True)
        if rule.name in ("ort-scale-of-product", "ort-skip-layer-norm", "ort-slices-as-split")
    ]
    assert len(rules) == 3
    assert check_trust(rules).untrusted == {}


def test_dynamic_dimensions_stay_so_in_what_is_written_for_kernels(tmp_path: Path) -> None:
    """Convolutions that run in blocks, at each size that the steps are carried out at."""
    onnx = pytest.importorskip("onnx")
    from tests.formats.dynamic.models import saved, weight
    from tests.formats.onnx_tools import model, tensor

    node = onnx.helper.make_node
    layers = [
        node("Conv", ["x", "v"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("Conv", ["c", "w"], ["y"]),
    ]
    kinds = [tensor("x", ["batch", 8, 6, 6])], [tensor("y", ["batch", 32, 6, 6])]
    weights = [weight("v", 32, 8, 1, 1), weight("w", 32, 32, 1, 1)]
    path, output = saved(model(layers, *kinds, weights), tmp_path), tmp_path / "out.onnx"
    options = Options.of(cost="analytic:cpu", backend="onnxruntime", budget_s=0.0)
    result = optimize(path, options, output=output)
    assert not result.rejections
    written = onnx.load(output).graph
    assert [(each.domain, each.op_type) for each in written.node] == [
        ("", "Conv"), ("", "Relu"), ("", "Conv"),
    ]  # fmt: skip
    assert written.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_norm_of_a_sum_of_dynamic_shapes_stays_two_kernels(tmp_path: Path) -> None:
    """onnxruntime makes the slow kernel of them where it finds the shapes of both operands alike."""
    onnx = pytest.importorskip("onnx")
    from tests.formats.dynamic.models import saved, weight
    from tests.formats.onnx_tools import model, tensor
    from tests.run.backend.saved_kernels import saved_kernels

    node = onnx.helper.make_node
    layers = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Add", ["b", "y"], ["c"]),
        node("LayerNormalization", ["c", "s", "t"], ["z"], axis=-1),
    ]
    kinds = [tensor(name, ["batch", "seq", 64]) for name in "xyz"]
    file = model(layers, kinds[:2], kinds[2:], [weight("s", 64), weight("t", 64)])
    path, output = saved(file, tmp_path), tmp_path / "out.onnx"
    options = Options.of(cost="analytic:cpu", backend="onnxruntime", budget_s=0.0)
    assert not optimize(path, options, output=output).rejections
    assert saved_kernels(path) == {"Relu": 2, "SkipLayerNormalization": 1}
    assert saved_kernels(output) == {"Relu": 1, "Sum": 1, "LayerNormalization": 1}


def test_matrices_of_an_unknown_size_are_multiplied_out_of_blocks(tmp_path: Path) -> None:
    """As images of one row, which onnxruntime does not know to be equally large."""
    onnx = pytest.importorskip("onnx")
    from tests.formats.dynamic.models import saved, weight
    from tests.formats.onnx_tools import constant, model, tensor
    from tests.run.backend.saved_kernels import (
        disagreement,
        predicted_kernels,
        saved_kernels,
    )

    node = onnx.helper.make_node
    layers = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Reshape", ["t", "row"], ["r"]),
        node("Conv", ["r", "v"], ["a"]),
        node("Conv", ["r", "w"], ["b"]),
        node("Mul", ["a", "b"], ["c"]),
        node("Conv", ["c", "u"], ["y"]),
    ]
    weights = [weight(name, 32, 32, 1, 1) for name in "uvw"]
    weights.append(constant("row", [1, 32, 1, -1], np.int64))
    backend = load_backend("onnxruntime")
    left_blocks = []
    for rows in ("rows", 6):
        kinds = [tensor("x", [rows, 32])], [tensor("y", [1, 32, 1, rows])]
        path = saved(model(layers, *kinds, weights), tmp_path)
        rules = backend.rules(has_fixed_shapes=rows == 6)
        costs = BackendCosts(as_source(load_profile("cpu")), backend, rules)
        sizes = {} if rows == 6 else {"rows": 6}
        predicted = predicted_kernels(costs.as_run(load_model(path, sizes)))
        assert disagreement(predicted, saved_kernels(path)) == {}
        left_blocks.append(predicted["ReorderOutput"])
    assert left_blocks == [3, 1]
