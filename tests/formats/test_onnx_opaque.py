"""ONNX operators that are carried through: attributes, outputs, subgraphs, odd types, versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.base.errors import ModelError
from relational_tensat.formats import from_onnx_model, onnx_versions, to_onnx_model
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Graph, Node
from tests.formats.onnx_tools import (
    BOOL,
    FLOAT,
    INT64,
    assert_same_results,
    constant,
    model,
    round_trip,
    session,
    tensor,
)


def _opaque(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "opaque"]


def test_optional_inputs_that_are_left_out(tmp_path: Path) -> None:
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", name="up")]
    original = model(
        nodes,
        [tensor("x", [1, 1, 2, 2])],
        [tensor("y", [1, 1, 4, 4])],
        [constant("scales", [1, 1, 2, 2], np.float32)],
    )
    graph, written = round_trip(original, tmp_path)
    (node,) = _opaque(graph)
    assert (node.name, node.inputs, node.outputs) == ("up", ("x", "scales"), ("y",))
    assert node.attrs["key"] == ""
    assert_same_results(original, written)


@pytest.mark.parametrize("names", [["v", "i"], ["v"], ["i"]])
def test_several_outputs_and_unused_ones(names: list[str], tmp_path: Path) -> None:
    kinds = {"v": FLOAT, "i": INT64}
    original = model(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"])],
        [tensor("x", [3, 5])],
        [tensor(name, [3, 2], kinds[name]) for name in names],
        [constant("k", [2], np.int64)],
    )
    graph, written = round_trip(original, tmp_path)
    assert _opaque(graph)[0].outputs == ("v", "i")
    assert_same_results(original, written)


def test_outputs_that_are_left_out(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    original = model(
        [helper.make_node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=5)],
        [tensor("x", [2, 3, 4])],
        [tensor("h", [1, 3, 5])],
        [
            constant("w", generator.random((1, 15, 4)), np.float32),
            constant("r", generator.random((1, 15, 5)), np.float32),
        ],
    )
    graph, written = round_trip(original, tmp_path)
    assert _opaque(graph)[0].outputs == ("h",)
    assert_same_results(original, written)


def _branch(name: str, nodes: list[onnx.NodeProto], output: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [tensor(output, [2])])


def _conditional(opset: int = 17) -> onnx.ModelProto:
    """An If whose branches use an outer value, a weight and an input, and define ``t`` both."""
    then = _branch("then", [helper.make_node("Add", ["r", "w"], ["t"])], "t")
    inner = _branch("inner", [helper.make_node("Mul", ["s", "r"], ["i0"])], "i0")
    other = [
        helper.make_node("Sub", ["x", "w"], ["s"]),
        helper.make_node("If", ["c"], ["t"], then_branch=inner, else_branch=inner),
    ]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(
            "If", ["c"], ["y"], then_branch=then, else_branch=_branch("e", other, "t")
        ),
    ]
    return model(
        nodes,
        [tensor("x", [2]), tensor("c", [], BOOL)],
        [tensor("y", [2])],
        [constant("w", [5, 7], np.float32)],
        opset,
    )


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("condition", [True, False])
def test_branches_use_outer_values(condition: bool, opset: int, tmp_path: Path) -> None:
    original = _conditional(opset)
    graph, written = round_trip(original, tmp_path)
    assert sorted(_opaque(graph)[0].inputs) == ["c", "c", "r", "w", "x"]  # itself, and inside
    inputs = {"x": np.array([-1, 3], np.float32), "c": np.array(condition)}
    assert_same_results(original, written, inputs)


def test_names_inside_subgraphs_make_way(tmp_path: Path) -> None:
    graph = from_onnx_model(_conditional())
    names = {"x": "i0", "r": "t", "y": "s"}  # what the branches call their own values

    def renamed(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(value, value) for value in values)

    from relational_tensat.tensor import build_graph

    nodes = [
        Node(node.op, renamed(node.inputs), renamed(node.outputs), node.attrs)
        for node in graph.nodes
    ]
    inputs = {names.get(name, name): kind for name, kind in graph.inputs.items()}
    other = build_graph("renamed", inputs, graph.weights, nodes, ["s"])
    written = to_onnx_model(other)
    onnx.checker.check_model(written, full_check=True)
    for condition in (True, False):
        x = np.array([-1, 3], np.float32)
        (want,) = session(_conditional()).run(None, {"x": x, "c": np.array(condition)})
        (actual,) = session(written).run(None, {"i0": x, "c": np.array(condition)})
        np.testing.assert_array_equal(actual, want)


def test_loops(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "x"], ["v_next"]),
            helper.make_node("Identity", ["go"], ["go_next"]),
            helper.make_node("Identity", ["v_next"], ["seen"]),
        ],
        "body",
        [tensor("n", [], INT64), tensor("go", [], BOOL), tensor("v", [2])],
        [tensor("go_next", [], BOOL), tensor("v_next", [2]), tensor("seen", [2])],
    )
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["last", "all"], body=body)]
    original = model(
        nodes,
        [tensor("x", [2])],
        [tensor("last", [2]), tensor("all", [3, 2])],
        [constant("count", 3, np.int64)],
    )
    _, written = round_trip(original, tmp_path)
    assert_same_results(original, written)


def test_random_operators_are_kept_apart() -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"]),
        helper.make_node("RandomNormalLike", ["x"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]),
    ]
    one, other = _opaque(from_onnx_model(model(nodes, [tensor("x", [2])], [tensor("y", [2])])))
    assert one.attrs["key"] != other.attrs["key"]
    assert one.attrs["payload"] == other.attrs["payload"]


def test_shapes_that_depend_on_data(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["n"]),
        helper.make_node("Transpose", ["n"], ["y"]),
    ]
    original = model(nodes, [tensor("x", [3])], [tensor("y", [None, 1], INT64)])
    graph, written = round_trip(original, tmp_path)
    assert graph.count_ops() == {"opaque": 2, "relu": 1}
    assert_same_results(original, written, {"x": np.array([1, -1, 2], np.float32)})


def test_sequences_and_strings(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [2])
    string = helper.make_tensor("w", onnx.TensorProto.STRING, [2], ["a", "b"])
    nodes = [
        helper.make_node("SequenceAt", ["s", "i"], ["x"]),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["w"], ["z"]),
    ]
    original = model(
        nodes,
        [sequence],
        [tensor("y", [2]), tensor("z", [2], onnx.TensorProto.STRING)],
        [string, constant("i", 1, np.int64)],
    )
    _, written = round_trip(original, tmp_path)
    inputs = {"s": [np.array([1, 2], np.float32), np.array([-3, 4], np.float32)]}
    assert_same_results(original, written, inputs)


def test_other_domains(tmp_path: Path) -> None:
    node = helper.make_node("FusedMatMul", ["x", "x"], ["m"], domain="com.microsoft", transB=1)
    nodes = [node, helper.make_node("Relu", ["m"], ["y"])]
    original = model(
        nodes, [tensor("x", [2, 3])], [tensor("y", [2, 2])], domains={"com.microsoft": 1}
    )
    graph, written = round_trip(original, tmp_path)
    assert graph.types["m"] == graph.types["y"]
    assert {item.domain for item in written.opset_import} == {"", "com.microsoft"}
    assert_same_results(original, written)


def test_types_that_nothing_tells() -> None:
    nodes = [helper.make_node("Thing", ["x"], ["m"], domain="mine"), helper.make_node(
        "Relu", ["m"], ["y"])]  # fmt: skip
    original = model(nodes, [tensor("x", [2])], [tensor("y", [2])], domains={"mine": 1})
    unknown = from_onnx_model(original)  # carried, and so is all that it feeds
    assert [node.op for node in unknown.nodes] == ["opaque", "opaque"]
    assert [node.op_type for node in to_onnx_model(unknown).graph.node] == ["Thing", "Relu"]
    original.graph.value_info.append(tensor("m", [2]))
    graph = from_onnx_model(original)
    assert _opaque(graph)[0].attrs["key"]  # unknown operators may be random
    assert [node.op for node in graph.nodes] == ["opaque", "relu"]


def test_gradients_keep_what_they_name(tmp_path: Path) -> None:
    domain = "ai.onnx.preview.training"
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node("Add", ["x", "x"], ["b"]),  # equal, but what is named is not merged
        helper.make_node("Gradient", ["x"], ["g"], domain=domain, xs=["x"], y="b"),
    ]
    outputs = [tensor("a", [2]), tensor("g", [2])]
    original = model(nodes, [tensor("x", [2])], outputs, domains={domain: 1})
    graph = from_onnx_model(original)
    assert graph.nodes[-1].inputs == ("x", "x", "b")
    assert all(node.attrs["key"] for node in _opaque(graph))
    result = optimize(graph, Options.of(cost="t4", iterations=1), output=tmp_path / "a.onnx")
    written = onnx.load(tmp_path / "a.onnx").graph.node
    assert [node.op_type for node in written] == ["Add", "Add", "Gradient"]
    attributes = {item.name: helper.get_attribute_value(item) for item in written[2].attribute}
    assert attributes == {"xs": [b"x"], "y": b"b"}
    assert result.verification.stand_ins == (f"{domain}.Gradient",)


_OLD: list[tuple[int, str, dict[str, Any], list[int], dict[str, list[float]]]] = [
    (6, "PRelu", {}, [1, 3, 2, 2], {"s": [0.1, 0.2, 0.3]}),
    (6, "Elu", {"alpha": 0.5}, [1, 3, 2, 2], {}),
    (9, "LRN", {"size": 3}, [1, 3, 4, 4], {}),
    (9, "Upsample", {"mode": "nearest"}, [1, 1, 2, 2], {"s": [1, 1, 2, 2]}),
    (9, "LogSoftmax", {"axis": 1}, [1, 3, 4], {}),
    (7, "Upsample", {"mode": "linear", "scales": [1.0, 1.0, 2.0, 2.0]}, [1, 1, 2, 3], {}),
    (9, "Upsample", {"mode": "linear"}, [1, 1, 2, 3], {"s": [1, 1, 2, 2]}),
    (9, "Hardmax", {"axis": 1}, [2, 3, 4], {}),
    (11, "Hardmax", {"axis": -2}, [2, 3, 4], {}),
    (7, "Hardmax", {}, [2, 3, 2, 2], {}),
    (10, "Resize", {"mode": "linear"}, [1, 1, 2, 2], {"s": [1, 1, 2, 2]}),
    (10, "Resize", {"mode": "nearest"}, [1, 1, 2, 2], {"s": [1, 1, 2, 2]}),
]


@pytest.mark.parametrize(
    ("opset", "op", "attrs", "shape", "more"), _OLD, ids=lambda item: str(item)
)
def test_old_versions_are_converted(
    opset: int,
    op: str,
    attrs: dict[str, Any],
    shape: list[int],
    more: dict[str, list[float]],
    tmp_path: Path,
) -> None:
    nodes = [
        helper.make_node(op, ["x", *more], ["z"], **attrs),
        helper.make_node("Abs", ["z"], ["y"]),
    ]
    constants = [constant(name, value, np.float32) for name, value in more.items()]
    scale = 2 if op in ("Upsample", "Resize") else 1
    result = [*shape[:2], *(size * scale for size in shape[2:])]
    original = model(nodes, [tensor("x", shape)], [tensor("y", result)], constants, opset)
    graph, as_it_was = round_trip(original, tmp_path)
    assert [node.op for node in graph.nodes] == ["opaque", "abs"]
    written = to_onnx_model(graph, opset=13)
    assert written.opset_import[0].version == 13
    if opset >= 7:
        assert as_it_was.opset_import[0].version == opset
        assert_same_results(original, as_it_was)
    if op != "PRelu":  # onnxruntime runs no version below 7 of it
        assert_same_results(original, written)
        return
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(shape)
    slope = np.array(more["s"], np.float32).reshape(3, 1, 1)
    (actual,) = session(written).run(None, {"x": x})
    np.testing.assert_allclose(actual, np.abs(np.where(x < 0, x * slope, x)), rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1.3, 1.5, 2.5, 3.7])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsampling_is_what_it_was_for_any_factor(scale: float, mode: str, tmp_path: Path) -> None:
    size = int(7 * scale)
    factors = constant("s", [1, 1, 1, scale], np.float32)
    node = helper.make_node("Upsample", ["x", "s"], ["y"], mode=mode)
    kinds = [tensor("x", [1, 1, 1, 7])], [tensor("y", [1, 1, 1, size])]
    original = model([node], *kinds, [factors], 9)
    onnx.save(original, tmp_path / "m.onnx")
    optimize(tmp_path / "m.onnx", Options.of(cost="t4", opset=17), output=tmp_path / "out.onnx")
    written = onnx.load(tmp_path / "out.onnx")
    assert [each.op_type for each in written.graph.node if each.op_type != "Constant"] == ["Resize"]
    assert_same_results(original, written)


def test_what_is_converted_to_something_else_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ONNX's version converter did with Hardmax: it leaves the axis as it is."""

    def unchanged(proto: onnx.ModelProto, version: int) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        copy.graph.node[0].attribute[0].i = 2
        copy.opset_import[0].version = version
        return copy

    monkeypatch.setattr(onnx_versions.version_converter, "convert_version", unchanged)
    node = helper.make_node("LogSoftmax", ["x"], ["y"], axis=1)
    kinds = [tensor("x", [2, 3, 4])], [tensor("y", [2, 3, 4])]
    graph = from_onnx_model(model([node], *kinds, opset=9))
    with pytest.raises(ModelError, match="LogSoftmax of version 9 has no form in version 17"):
        to_onnx_model(graph, 17)


def test_what_no_later_version_has_stays_as_it_was() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        "body",
        [tensor("a", [2]), tensor("b", [2])],
        [tensor("c", [2])],
    )
    nodes = [
        helper.make_node("Scan", ["", "x", "z"], ["s"], body=body, num_scan_inputs=1),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    original = model(
        nodes, [tensor("x", [1, 2]), tensor("z", [1, 3, 2])], [tensor("y", [1, 2])], opset=8
    )
    written = to_onnx_model(from_onnx_model(original))
    assert [(item.domain, item.version) for item in written.opset_import] == [("", 8)]
    assert [node.op_type for node in written.graph.node] == ["Scan", "Relu"]


def test_initializers_that_no_weight_can_hold_stay_initializers(tmp_path: Path) -> None:
    """4-bit weights: a runtime that looks for constants beside DequantizeLinear finds no node there."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["dw"], axis=0, block_size=2),
        helper.make_node("Add", ["x", "dw"], ["y"]),
    ]
    weights = helper.make_tensor("w", onnx.TensorProto.INT4, [4, 2], [1, -2, 3, 4, 5, 6, 7, -8])
    scales = constant("s", [[0.5, 0.25], [1.0, 2.0]], np.float32)
    original = model(nodes, [tensor("x", [4, 2])], [tensor("y", [4, 2])], [weights, scales], 21)
    original.ir_version = 10
    _, written = round_trip(original, tmp_path)
    assert [node.op_type for node in written.graph.node] == ["DequantizeLinear", "Add"]
    assert_same_results(original, written)
