"""What a graph still has of the ONNX file that it was read from is written as it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.base.errors import ModelError, UsageError
from relational_tensat.formats import from_onnx_model, to_onnx_model
from relational_tensat.formats.onnx_origin import origin_of
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from relational_tensat.tensor.uses import share_equal_weights
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import RandomWeights, reseed
from tests.formats.onnx_tools import assert_same_results, constant, model, tensor

_X = tensor("x", [2, 4])
_W = constant("w", np.arange(20, dtype=np.float32).reshape(5, 4))


def changed(graph: Graph, nodes: list[Node], **weights: Weight) -> Graph:
    """Return a graph with other nodes, as a run makes it."""
    return build_graph(
        graph.name,
        graph.inputs,
        {**graph.weights, **weights},
        nodes,
        graph.outputs,
        graph.metadata,
        origin=graph.origin,
    )


def without_second(graph: Graph, op: str) -> Graph:
    """Return the graph without the second of two equal operators, which changes nothing."""
    first, second = (node for node in graph.nodes if node.op == op)
    nodes = [
        replace(node, outputs=second.outputs) if node is first else node for node in graph.nodes
    ]
    return changed(graph, [node for node in nodes if node is not second])


def written(graph: Graph, **options: Any) -> onnx.ModelProto:
    result = to_onnx_model(graph, **options)
    onnx.checker.check_model(result, full_check=True)
    return result


def ops(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def described() -> onnx.ModelProto:
    """Return a model with all that a file can say beside its graph, and one relu too many."""
    gemm = helper.make_node(
        "Gemm", ["x", "w"], ["g"], name="fc", doc_string="a layer", alpha=1.0, transB=1
    )
    gemm.metadata_props.add(key="scope", value="model.fc")
    nodes = [
        gemm,
        helper.make_node("Relu", ["g"], ["r"], name="act"),
        helper.make_node("Relu", ["r"], ["r2"], name="again"),
        helper.make_node("Unsqueeze", ["r2", "axes"], ["u"], name="as_image"),
        helper.make_node("GlobalAveragePool", ["u"], ["y"], name="pool"),
    ]
    axes = helper.make_tensor("axes", onnx.TensorProto.INT64, [2], [2, 3])
    proto = model(nodes, [_X], [tensor("y", [2, 5, 1, 1])], [_W, axes], producer_name="someone")
    proto.graph.value_info.extend(
        [tensor("g", [2, 5]), tensor("r2", [2, 5]), tensor("u", [2, 5, 1, 1])]
    )
    proto.graph.doc_string = "a graph"
    proto.graph.metadata_props.add(key="of", value="graph")
    proto.graph.input[0].doc_string = "an input"
    proto.metadata_props.add(key="of", value="model")
    onnx.checker.check_model(proto, full_check=True)
    return proto


def test_a_graph_that_was_only_read_is_written_as_it_was() -> None:
    proto = described()
    assert written(from_onnx_model(proto)) == proto


def test_what_was_not_rewritten_stays_as_it_was() -> None:
    proto = described()
    result = written(without_second(from_onnx_model(proto), "relu"))
    expected = described()
    del expected.graph.node[1]
    expected.graph.node[1].input[0] = "g"
    assert result == expected  # Gemm with its transB and GlobalAveragePool, names, words and types
    assert_same_results(proto, result)


@pytest.mark.parametrize(("opset", "raised"), [(9, 13), (11, 13), (13, 13), (17, 17)])
def test_versions_are_raised_only_where_a_node_needs_it(opset: int, raised: int) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
        helper.make_node("Flatten", ["b"], ["y"], name="last"),
    ]
    proto = model(nodes, [_X], [tensor("y", [2, 4])], opset=opset)
    proto.ir_version = 5
    graph = from_onnx_model(proto)
    result = written(without_second(graph, "relu"))
    assert (result.opset_import[0].version, result.ir_version) == (opset, 5)
    assert [node.name for node in result.graph.node] == ["second", "last"]
    last = graph.nodes[-1]
    tanh = Node("tanh", ("x",), ("a",))
    result = written(changed(graph, [tanh, replace(last, inputs=("a",))]))
    assert result.opset_import[0].version == opset  # it is spelled so in all of them
    assert ops(result) == ["Tanh", "Flatten"]
    total = Node("reduce_sum", ("x",), ("s",), {"axes": (1,), "keepdims": True})
    scaled = Node("mul", ("x", "s"), ("a",))
    changed_graph = changed(graph, [total, scaled, replace(last, inputs=("a",))])
    result = written(changed_graph)
    assert result.opset_import[0].version == raised
    assert ops(result) == ["ReduceSum", "Mul", "Flatten"]
    assert result.graph.node[-1].name == "last"  # spelled alike in both versions
    if opset < raised:
        with pytest.raises(
            UsageError, match=f"opset = {opset}: ReduceSum is not in version {opset}"
        ):
            written(changed_graph, opset=opset)


def test_a_version_can_be_named() -> None:
    proto = described()
    result = written(from_onnx_model(proto), opset=13)
    assert result.opset_import[0].version == 13
    assert ops(result) == ops(proto)
    assert_same_results(proto, result)
    for opset in (6, 1000):
        with pytest.raises(UsageError, match=f"opset = {opset}, expected 7 to"):
            to_onnx_model(from_onnx_model(proto), opset=opset)


def test_an_activation_within_a_kernel_is_the_node_that_it_was() -> None:
    weight = constant("w", np.eye(4, dtype=np.float32)[None])
    bias = constant("b", np.ones(4, np.float32))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Add", ["b", "m"], ["s"], name="bias"),
        helper.make_node("Relu", ["s"], ["y"], name="act"),
    ]
    proto = model(nodes, [tensor("x", [3, 2, 4])], [tensor("y", [3, 2, 4])], [weight, bias])
    graph = from_onnx_model(proto)
    kernel = Node("matmul", ("x", "w", "b"), ("y",), {"act": "relu"})
    assert written(changed(graph, [kernel])) == proto


def test_constants_are_the_tensors_of_the_file() -> None:
    """Also one number, which rules see as a number, and one of two equal ones."""
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["a"]),
        helper.make_node("Add", ["a", "same"], ["b"]),
        helper.make_node("Add", ["b", "typed"], ["y"]),
    ]
    typed = helper.make_tensor("typed", onnx.TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    typed.doc_string = "in float_data"
    same = constant("same", typed.float_data, np.float32)
    two = constant("two", 2, np.float32)
    proto = model(nodes, [_X], [tensor("y", [2, 4])], [two, typed, same])
    graph = share_equal_weights(from_onnx_model(proto))
    fill = Node("fill", (), ("number",), {"value": 2.0, "dtype": "float32", "shape": ()})
    product = replace(graph.nodes[0], inputs=("x", "number"))
    result = written(changed(graph, [fill, product, *graph.nodes[1:]]))
    assert list(result.graph.initializer) == [two, typed]
    assert [list(node.input) for node in result.graph.node] == [
        ["x", "two"],
        ["a", "typed"],
        ["b", "typed"],
    ]


def test_a_constant_that_is_new_has_a_name_of_its_own() -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "constant"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    shape = constant("constant", np.array([4, 2]))
    proto = model(nodes, [_X], [tensor("y", [4, 2])], [shape])
    graph = from_onnx_model(proto)
    clip = Node("clip", ("a",), ("y",), {"min": 0.0, "max": float("inf")})
    result = written(changed(graph, [graph.nodes[0], clip]))
    names = [each.name for each in result.graph.initializer]
    assert len(names) == len(set(names)) > 1
    assert_same_results(proto, result)


def function_model() -> onnx.ModelProto:
    body = [helper.make_node("Tanh", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["c"])]
    imports = [helper.make_opsetid("", 17)]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Relu", ["r"], ["r2"]),
        helper.make_node("F", ["r2"], ["p"], domain="own", name="call"),
        helper.make_node("F", ["p"], ["y"], domain="own"),
    ]
    return model(
        nodes, [_X], [tensor("y", [2, 4])], domains={"own": 1},
        functions=[helper.make_function("own", "F", ["a"], ["c"], body, imports)],
    )  # fmt: skip


def test_local_functions_are_kept_where_they_are_called() -> None:
    proto = function_model()
    graph = from_onnx_model(proto)
    assert written(graph) == proto
    result = written(without_second(graph, "relu"))
    assert ops(result) == ["Relu", "F", "F"]
    assert result.graph.node[1].name == "call"
    assert list(result.functions) == list(proto.functions)
    assert_same_results(proto, result)


def test_a_function_that_is_not_called_any_more_is_gone() -> None:
    graph = from_onnx_model(function_model())
    nodes = [replace(node, op="relu") if node.op == "tanh" else node for node in graph.nodes]
    result = written(changed(graph, nodes))
    assert ops(result) == ["Relu", "Relu", "Relu", "Neg", "Relu", "Neg"]
    assert not result.functions


def test_a_call_that_would_need_its_own_result_is_not_kept() -> None:
    body = [helper.make_node("Tanh", ["a"], ["p"]), helper.make_node("Neg", ["b"], ["q"])]
    function = helper.make_function(
        "own", "F", ["a", "b"], ["p", "q"], body, [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("F", ["x", "t"], ["p", "q"], domain="own"),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    proto = model(nodes, [_X], [tensor("y", [2, 4])], domains={"own": 1}, functions=[function])
    graph = from_onnx_model(proto)
    outer, inner, negated, total = graph.nodes
    assert (outer.outputs, inner.outputs, negated.inputs) == (("t",), ("p",), ("t",))
    result = written(changed(graph, [inner, replace(negated, inputs=("p",)), total]))
    assert ops(result) == ["Tanh", "Neg", "Add"]
    assert_same_results(proto, result)


def constants_model(
    nodes: list[onnx.NodeProto], size: int, constants: list[onnx.TensorProto]
) -> onnx.ModelProto:
    nodes = [*nodes, helper.make_node("Mul", ["x", "k"], ["y"])]
    return model(nodes, [tensor("x", [size, size])], [tensor("y", [size, size])], constants)


SHAPE = constant("shape", [4, 4], np.int64)
FOLDED: Mapping[str, tuple[list[onnx.NodeProto], list[onnx.TensorProto]]] = {
    "ConstantOfShape": ([helper.make_node("ConstantOfShape", ["shape"], ["k"])], [SHAPE]),
    "Identity of a constant": (
        [helper.make_node("Identity", ["c"], ["k"])],
        [constant("c", np.arange(16).reshape(4, 4), np.float32)],
    ),
    "the shape of an input": (
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("ConstantOfShape", ["s"], ["k"]),
        ],
        [],
    ),
    "a chain": (
        [
            helper.make_node("Constant", [], ["one"], value_float=1.0),
            helper.make_node("Exp", ["one"], ["e"]),
            helper.make_node("Expand", ["e", "shape"], ["k"]),
        ],
        [SHAPE],
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_is_known_is_written_out(name: str) -> None:
    proto = constants_model(FOLDED[name][0], 4, FOLDED[name][1])
    result = written(fold_weights(from_onnx_model(proto)))
    assert ops(result) == ["Mul"]
    assert [item.name for item in result.graph.initializer] == ["k"]
    assert_same_results(proto, result)


def test_a_large_tensor_of_one_number_stays_computed() -> None:
    shape = constant("shape", [100, 100], np.int64)
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["k"], name="zeros")]
    proto = constants_model(nodes, 100, [shape])
    assert written(fold_weights(from_onnx_model(proto))) == proto


@pytest.mark.parametrize("sizes", [[300, 300], [599, 1]])
def test_parts_of_a_large_tensor_stay_computed_by_one_split(sizes: list[int]) -> None:
    shape = constant("shape", [4, sum(sizes)], np.int64)
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["k"]),
        helper.make_node("Split", ["k", "sizes"], ["a", "b"], axis=1),
        helper.make_node("Add", ["x", "a"], ["y"]),
        helper.make_node("Add", ["x", "b"], ["z"]),
    ]
    outputs = [tensor(name, [4, size]) for name, size in zip("yz", sizes, strict=True)]
    proto = model(
        nodes, [tensor("x", [4, 1])], outputs, [shape, constant("sizes", sizes, np.int64)]
    )
    result = written(fold_weights(from_onnx_model(proto)))
    assert ops(result) == ["ConstantOfShape", "Split", "Add", "Add"]
    assert_same_results(proto, result)


def test_a_large_range_stays_computed() -> None:
    names = ("start", "limit", "delta")
    numbers = [
        constant(name, value, np.int64) for name, value in zip(names, (0, 60000, 1), strict=True)
    ]
    nodes = [
        helper.make_node("Range", list(names), ["r"]),
        helper.make_node("Add", ["r", "x"], ["y"]),
    ]
    proto = model(nodes, [tensor("x", [1], onnx.TensorProto.INT64)], [], numbers)
    proto.graph.output.append(tensor("y", [60000], onnx.TensorProto.INT64))
    assert written(fold_weights(from_onnx_model(proto))) == proto


def test_a_table_of_many_nodes_is_written_out() -> None:
    nodes = [
        helper.make_node("Range", ["zero", "limit", "step"], ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "half"], ["k"]),
        helper.make_node("Mul", ["x", "k"], ["y"]),
    ]
    numbers = [
        *(constant(n, v, np.int64) for n, v in (("zero", 0), ("limit", 900), ("step", 1))),
        constant("half", 0.5, np.float32),
    ]
    proto = model(nodes, [tensor("x", [4, 900])], [tensor("y", [4, 900])], numbers)
    result = written(fold_weights(from_onnx_model(proto)))
    assert ops(result) == ["Mul"]
    assert_same_results(proto, result)


def test_a_copy_of_a_constant_is_the_constant() -> None:
    nodes = [
        helper.make_node("Identity", ["w"], ["v"]),
        helper.make_node("MatMul", ["x", "v"], ["l"]),
        helper.make_node("MatMul", ["l", "w"], ["y"]),
        helper.make_node("Identity", ["w"], ["z"]),
    ]
    weight = constant("w", np.random.default_rng(0).random((40, 40)), np.float32)
    outputs = [tensor("y", [2, 40]), tensor("z", [40, 40])]
    proto = model(nodes, [tensor("x", [2, 40])], outputs, [weight])
    result = written(fold_weights(from_onnx_model(proto)))
    assert sorted(ops(result)) == ["Identity", "MatMul", "MatMul"]  # an output has its own name
    assert [item.name for item in result.graph.initializer] == ["w"]
    assert_same_results(proto, result)


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_weight_that_is_needed_twice_has_no_second_copy(is_tied: bool) -> None:
    weight = constant("w", np.random.default_rng(0).random((50, 40)), np.float32)
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["l"]),
    ]
    operands = ["l", "w"] if is_tied else ["l", "b"]
    nodes.append(helper.make_node("MatMul", operands, ["y"]))
    other = [] if is_tied else [constant("b", np.ones((50, 40)), np.float32)]
    proto = model(nodes, [tensor("x", [2, 40])], [tensor("y", [2, 40])], [weight, *other])
    result = written(fold_weights(from_onnx_model(proto)))
    assert ops(result) == (["Transpose"] if is_tied else []) + ["MatMul", "MatMul"]
    assert result.ByteSize() <= proto.ByteSize()
    assert_same_results(proto, result)


def test_strings_and_sparse_tensors_stay_initializers() -> None:
    values = helper.make_tensor("s", onnx.TensorProto.FLOAT, [1], [3.0])
    sparse = helper.make_sparse_tensor(values, constant("indices", [2], np.int64), [4])
    nodes = [helper.make_node("Add", ["x", "s"], ["y"])]
    proto = model(nodes, [_X], [tensor("y", [2, 4])])
    proto.graph.sparse_initializer.append(sparse)
    onnx.checker.check_model(proto)
    result = to_onnx_model(from_onnx_model(proto))
    assert ops(result) == ["Add"]
    assert list(result.graph.sparse_initializer) == [sparse]


def test_sparse_tensors_are_computed_with_and_stay_sparse() -> None:
    """Also where positions are counted among all elements, which onnxruntime has as constants only."""
    dense = np.zeros((2, 4), np.float32)
    dense[[0, 1], [3, 2]] = 3.0, 5.0
    values = helper.make_tensor("s", onnx.TensorProto.FLOAT, [2], [3.0, 5.0])
    for indices in ([3, 6], [[0, 3], [1, 2]]):
        sparse = helper.make_sparse_tensor(values, constant("indices", indices, np.int64), [2, 4])
        nodes = [helper.make_node("Add", ["x", "s"], ["y"])]
        proto = model(nodes, [_X], [tensor("y", [2, 4])])
        proto.graph.sparse_initializer.append(sparse)
        graph = from_onnx_model(proto)
        np.testing.assert_array_equal(graph.weights["s"].data, dense)
        result = to_onnx_model(graph)
        assert list(result.graph.sparse_initializer) == [sparse]
        node = helper.make_node("Constant", [], ["s"], sparse_value=sparse)
        proto = model([node, *nodes], [_X], [tensor("y", [2, 4])])
        np.testing.assert_array_equal(from_onnx_model(proto).weights["s"].data, dense)


def test_sparse_tensors_of_other_shapes_are_refused() -> None:
    values = helper.make_tensor("s", onnx.TensorProto.FLOAT, [1], [3.0])
    for indices in ([8], [-1], [[0, 4]], [[2, 0]], [[0, 0, 0]]):
        sparse = helper.make_sparse_tensor(values, constant("indices", indices, np.int64), [2, 4])
        proto = model([helper.make_node("Add", ["x", "s"], ["y"])], [_X], [tensor("y", [2, 4])])
        proto.graph.sparse_initializer.append(sparse)
        with pytest.raises(ModelError):
            from_onnx_model(proto)


def test_other_weights_are_not_those_of_the_file() -> None:
    graph = from_onnx_model(described())
    random = reseed(graph, RandomWeights(graph, seed=0))
    assert origin_of(random) is None
    stale = replace(random, origin=graph.origin)
    assert origin_of(stale) is None
    first, *_ = to_onnx_model(stale).graph.initializer
    assert not np.array_equal(onnx.numpy_helper.to_array(first), np.arange(20).reshape(5, 4))
