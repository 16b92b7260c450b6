"""Several sizes of a graph in one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.formats.dynamic.size_reader import read_dynamic
from relational_tensat.formats.dynamic.sized_model import DynamicModel, SizeError
from relational_tensat.formats.dynamic.writer import short_shape, write_dynamic
from relational_tensat.formats.onnx_wire import LARGE_BYTES
from relational_tensat.rules.backends.fused_chain import body_of
from relational_tensat.rules.backends.fused_kernel import FusedPart
from relational_tensat.tensor import Attrs, Graph, Node, tensors_of
from relational_tensat.verify.fold import fold_alike
from tests.formats.dynamic.models import attention, mlp, reshaped, saved
from tests.formats.onnx_tools import INT64, assert_same_results, constant, model, tensor

node = helper.make_node


def written(proto: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Read a model at several sizes, and write it unchanged."""
    sized = read_dynamic(saved(proto, folder), {})
    assert isinstance(sized, DynamicModel)
    result, _ = write_dynamic(sized, [there.graph for there in sized.all])
    onnx.checker.check_model(result, full_check=True)
    return result


def dims(values: list[onnx.ValueInfoProto]) -> list[list[str | int]]:
    return [
        [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in values
    ]


def constants(proto: onnx.ModelProto) -> dict[str, list[int]]:
    return {
        item.name: onnx.numpy_helper.to_array(item).tolist() for item in proto.graph.initializer
    }


@pytest.mark.parametrize("sizes", [(2, 9), (1, 1), (7, 100)])
def test_an_attention_block_stays_what_it_is(tmp_path: Path, sizes: tuple[int, int]) -> None:
    file = attention()
    result = written(file, tmp_path)
    assert dims(list(result.graph.input)) == [["batch", "seq"], ["batch", "seq"]]
    assert dims(list(result.graph.output)) == [["batch", "seq", 8]]
    generator = np.random.default_rng(1)
    inputs = {name: generator.integers(0, 2, sizes) for name in ("ids", "mask")}
    assert_same_results(file, result, inputs)


@pytest.mark.parametrize(
    ("shape", "short"),
    [
        (["batch", "seq", 2, 4], [0, 0, 2, 4]),
        (["batch", 2, "seq", 4], [0, 2, -1, 4]),
        ([4, "batch", "seq", 2], None),
        (["seq", "batch", 8], None),
        (["batch", "seq", 8], [0, 0, 8]),
        ([1, 1, "batch", "seq", 8], None),
        (["batch", 1, "seq", 8], [0, 1, -1, 8]),
    ],
)
def test_shapes_are_spelled_with_0_and_minus_1_or_computed(
    tmp_path: Path, shape: list[str | int], short: list[int] | None
) -> None:
    file = reshaped(shape)
    result = written(file, tmp_path)
    operators = [item.op_type for item in result.graph.node]
    assert (short in constants(result).values()) if short else "Concat" in operators
    for sizes in ((2, 3), (1, 1), (5, 4)):
        data = np.random.default_rng(0).random((*sizes, 8)).astype(np.float32)
        assert_same_results(file, result, {"x": data})


def test_a_large_weight_of_a_node_that_was_kept_stays_out_of_the_file(tmp_path: Path) -> None:
    """Gemm takes its weight transposed: the file's, which the graph has not, and a placeholder for it."""
    large = LARGE_BYTES // 16
    data = np.ones((4, large), np.float32)
    gemm = node("Gemm", ["x", "w"], ["y"], transB=1)
    inputs, outputs = [tensor("x", ["batch", large])], [tensor("y", ["batch", 4])]
    file = model([gemm], inputs, outputs, [constant("w", data, np.float32)])
    sized = read_dynamic(saved(file, tmp_path), {})
    assert isinstance(sized, DynamicModel)
    result, weights = write_dynamic(sized, fold_alike([there.graph for there in sized.all]))
    assert [list(item.input) for item in result.graph.node] == [["x", "w"]]
    assert weights.keys() == {"w"}
    assert np.array_equal(weights["w"], data)


def test_a_node_that_is_one_of_the_files_at_size_1_only_is_written_alike_at_all_sizes(
    tmp_path: Path,
) -> None:
    """Of a row, a reshape by [n, 1, 4] is the file's Unsqueeze, which gives [1, n, 4] of more."""
    nodes = [
        node("Unsqueeze", ["x", "zero"], ["u"]),
        node("Transpose", ["u"], ["v"], perm=[1, 0, 2]),
        node("Mul", ["u", "v"], ["y"]),
    ]
    zero = constant("zero", [0], np.int64)
    file = model(nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", "n", 4])], [zero])
    sized = read_dynamic(saved(file, tmp_path), {})
    assert isinstance(sized, DynamicModel)
    assert 1 in {there.graph.inputs["x"].shape[0] for there in sized.all}
    graphs = []
    for graph in (there.graph for there in sized.all):
        shape = tensors_of(graph.types["v"])[0].shape
        reshape = Node("reshape", ("x",), ("v",), {"shape": shape})
        first, _, last = graph.nodes
        graphs.append(replace(graph, nodes=(reshape, first, last)))
    result, _ = write_dynamic(sized, graphs)
    assert {item.op_type for item in result.graph.node} >= {"Unsqueeze", "Reshape", "Mul"}
    for n in (1, 6):
        data = np.random.default_rng(n).random((n, 4)).astype(np.float32)
        assert_same_results(file, result, {"x": data})


def test_a_weight_of_equal_elements_is_an_initializer_at_all_sizes(tmp_path: Path) -> None:
    """As new constants they would be nodes."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "bias"], ["y"])]
    weights = [
        constant("w", np.ones((4, 512)), np.float32),
        constant("bias", [2] * 512, np.float32),
    ]
    file = model(nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", 512])], weights)
    result = written(file, tmp_path)
    assert [each.op_type for each in result.graph.node] == ["MatMul", "Add"]
    assert_same_results(file, result, {"x": np.ones((3, 4), np.float32)})


def test_what_is_known_of_a_computed_shape_is_declared(tmp_path: Path) -> None:
    """ONNX infers nothing of it, and takes heads of unknown size for such of 0."""
    nodes = [
        node("Shape", ["y"], ["sizes"]),
        node("Slice", ["sizes", "zero", "two"], ["rows"]),
        node("Concat", ["rows", "eight"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["r"]),
        node("Attention", ["r", "r", "r"], ["a"], q_num_heads=2, kv_num_heads=2),
        node("MatMul", ["a", "w"], ["z"]),
    ]
    numbers = [
        constant(name, [value], np.int64) for name, value in (("zero", 0), ("two", 2), ("eight", 8))
    ]
    weights = [*numbers, constant("w", np.ones((8, 4)), np.float32)]
    inputs = [tensor("x", ["rows", 8]), tensor("y", ["batch", "seq", 1])]
    file = model(nodes, inputs, [tensor("z", ["batch", "seq", 4])], weights, opset=23)
    result = written(file, tmp_path)
    (declared,) = result.graph.value_info
    assert dims([declared]) == [[0, 0, 8]]


def test_a_fixed_model_in_a_dynamic_one_is_written_as_it_is(tmp_path: Path) -> None:
    result = written(mlp(), tmp_path)
    assert "Shape" not in [item.op_type for item in result.graph.node]
    assert dims(list(result.graph.input)) == [["batch", 4]]


def test_before_version_15_shapes_are_gathered_from(tmp_path: Path) -> None:
    file = reshaped(["seq", "batch", 8])
    file.opset_import[0].version = 13
    result = written(file, tmp_path)
    assert {"Shape", "Gather"} <= {item.op_type for item in result.graph.node}
    data = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    assert_same_results(file, result, {"x": data})


def test_outputs_that_follow_from_sizes_alone_are_computed(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "zero"], ["n"]),
        node("Range", ["zero", "n", "one"], ["y"]),
        node("Relu", ["x"], ["z"]),
    ]
    numbers = [constant("zero", 0, np.int64), constant("one", 1, np.int64)]
    outputs = [tensor("y", ["n"], INT64), tensor("z", ["n", 2])]
    file = model(nodes, [tensor("x", ["n", 2])], outputs, numbers)
    result = written(file, tmp_path)
    for n in (1, 6):
        assert_same_results(file, result, {"x": np.ones((n, 2), np.float32)})


def test_the_shape_of_what_is_computed_from_sizes_is_computed(tmp_path: Path) -> None:
    """That value has another name in the file, or is not in it."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("ConstantOfShape", ["sizes"], ["zeros"]),
        node("Shape", ["zeros"], ["sizes_again"]),
        node("ConstantOfShape", ["sizes_again"], ["zeros_again"]),
        node("ScatterElements", ["zeros_again", "places", "x"], ["spread"], axis=1),
        node("Add", ["zeros", "spread"], ["y"]),
    ]
    inputs = [tensor("x", ["n", 2]), tensor("places", ["n", 2], INT64)]
    file = model(nodes, inputs, [tensor("y", ["n", 2])], [])
    result = written(file, tmp_path)
    for n in (1, 6):
        values = {"x": np.ones((n, 2), np.float32), "places": np.full((n, 2), [1, 0])}
        assert_same_results(file, result, values)


def test_an_attribute_that_depends_on_sizes_has_no_dynamic_form(tmp_path: Path) -> None:
    sized = read_dynamic(saved(mlp(), tmp_path), {})
    assert isinstance(sized, DynamicModel)
    graphs = [there.graph for there in sized.all]
    other = read_dynamic(saved(reshaped(["seq", "batch", 8]), tmp_path), {})
    assert isinstance(other, DynamicModel)
    with pytest.raises(SizeError, match="other nodes at other sizes"):
        write_dynamic(sized, [graphs[0], *(there.graph for there in other.others)])


def test_bounds_of_slices_are_counted_from_the_end(tmp_path: Path) -> None:
    """What a window leaves of a dimension is no sum of products of sizes."""
    nodes = [
        node("MaxPool", ["x"], ["a"], kernel_shape=[3], strides=[2]),
        node("Shape", ["a"], ["sizes"]),
        node("Gather", ["sizes", "two"], ["length"]),
        node("Sub", ["length", "one"], ["end"]),
        node("Slice", ["a", "one", "end", "two"], ["b"]),
        node("Slice", ["b", "one", "length", "two"], ["y"]),
    ]
    numbers = [constant("one", [1], np.int64), constant("two", [2], np.int64)]
    file = model(nodes, [tensor("x", [2, 3, "t"])], [tensor("y", [2, 3, "u"])], numbers)
    result = written(file, tmp_path)
    assert "Gather" not in [item.op_type for item in result.graph.node]
    for length in (9, 10, 40):
        data = np.random.default_rng(0).random((2, 3, length)).astype(np.float32)
        assert_same_results(file, result, {"x": data})


def test_a_function_that_depends_on_sizes_is_refused(tmp_path: Path) -> None:
    """A file has one function of a name; that of the first size would be wrong at others."""
    sized = read_dynamic(saved(mlp(), tmp_path), {})
    assert isinstance(sized, DynamicModel)

    def called(graph: Graph, op: str, attrs: Attrs) -> Graph:
        first = graph.nodes[0]
        operands = tuple(range(len(first.inputs)))
        parts = [FusedPart(first.op, operands, first.attrs), FusedPart(op, (len(operands),), attrs)]
        values = {"mugraph": "k0", "body": body_of(parts, [len(operands) + 1])}
        nodes = (Node("fused", first.inputs, first.outputs, values), *graph.nodes[1:])
        return replace(graph, nodes=nodes)

    same = [called(there.graph, "tanh", {}) for there in sized.all]
    assert [f.name for f in write_dynamic(sized, same)[0].functions] == ["fused_k0"]
    sizes = [there.graph for there in sized.all]
    other = [called(graph, "smul", {"value": float(n)}) for n, graph in enumerate(sizes)]
    with pytest.raises(SizeError, match="a local function is another one at other sizes"):
        write_dynamic(sized, other)


def test_a_short_shape_has_one_size_at_most_that_is_left() -> None:
    assert short_shape([(2, 3, 4), (5, 3, 4)], [(2, 12), (5, 12)]) == [0, 3, 4]
    assert short_shape([(8, 9), (20, 9)], [(2, 36), (5, 36)]) == [-1, 9]
    assert short_shape([(3, 2), (5, 7)], [(2, 3), (7, 5)]) is None
