"""Reading ONNX: dynamic dimensions, constants, names, functions, initializers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relational_tensat.base.errors import InputError, ModelError, UsageError
from relational_tensat.formats import from_onnx_model, load_model, to_onnx_model
from relational_tensat.formats.onnx_read import OnnxSource
from relational_tensat.tensor import TensorType
from tests.formats.onnx_tools import (
    FLOAT,
    INT64,
    assert_same_results,
    constant,
    model,
    round_trip,
    tensor,
)


def _dynamic() -> onnx.ModelProto:
    """Flattens all but the batch through arithmetic on shapes, as PyTorch exports it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Constant", [], ["zero"], value=constant("", 0, np.int64)),
        helper.make_node("Gather", ["s", "zero"], ["b"], axis=0),
        helper.make_node("Constant", [], ["axes"], value_ints=[0]),
        helper.make_node("Unsqueeze", ["b", "axes"], ["b1"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Concat", ["b1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["r", "target"], ["y"]),
    ]
    return model(nodes, [tensor("x", ["batch", 3, None])], [tensor("y", ["batch", None])])


def test_dynamic_dimensions_are_fixed_and_shapes_folded(tmp_path: Path) -> None:
    graph, written = round_trip(_dynamic(), tmp_path, {"batch": 2, "x:2": 5})
    assert graph.inputs == {"x": TensorType("float32", (2, 3, 5))}
    assert [node.op for node in graph.nodes] == ["relu", "reshape"]
    assert graph.nodes[1].attrs["shape"] == (2, 15)
    inputs = {"x": np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)}
    assert_same_results(_dynamic(), written, inputs)


@pytest.mark.parametrize(
    ("dims", "error", "message"),
    [
        ({}, InputError, "m: dimension 'batch' of input 'x' is dynamic; fix it: --dim batch=1"),
        ({"batch": 1}, InputError, "m: dimension 'x:2' of input 'x' is dynamic; .*--dim x:2=1"),
        ({"bach": 1}, UsageError, "no dynamic dimension 'bach'; did you mean 'batch'?"),
        ({"qqqq": 1}, UsageError, "no dynamic dimension 'qqqq'; it has batch, x:2"),
        ({"batch": -1}, UsageError, "dimension 'batch' = -1, expected a size"),
        ({"x:1": 4}, UsageError, "dimension 'x:1' is fixed to 3"),
    ],
)
def test_dimensions_that_do_not_fit(
    dims: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_onnx_model(_dynamic(), dims, "m")


def test_names_of_dimensions_that_are_fixed() -> None:
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(UsageError, match="all its dimensions are fixed"):
        from_onnx_model(model(relu, [tensor("x", [2])], [tensor("y", [2])]), {"batch": 1})
    with pytest.raises(ModelError, match="Field 'shape' of 'type' is required"):
        from_onnx_model(model(relu, [tensor("x", None)], [tensor("y", None)]))


def test_the_callers_model_is_not_changed() -> None:
    original = _dynamic()
    before = original.SerializeToString(deterministic=True)
    from_onnx_model(original, {"batch": 2, "x:2": 5})
    assert original.SerializeToString(deterministic=True) == before


def test_constants_in_all_spellings(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["a"], value_float=2.5),
        helper.make_node("Constant", [], ["b"], value_floats=[1.0, 2.0]),
        helper.make_node("Constant", [], ["i"], value_int=3),
        helper.make_node("Cast", ["i"], ["c"], to=FLOAT),
        helper.make_node("Sum", ["x", "a", "b", "c", "w"], ["y"]),
    ]
    original = model(
        nodes, [tensor("x", [2])], [tensor("y", [2])], [constant("w", [7, 8], np.float32)]
    )
    graph, written = round_trip(original, tmp_path)
    assert "opaque" not in graph.count_ops()
    assert_same_results(original, written)


def test_initializers_may_be_listed_as_inputs() -> None:
    weight = constant("w", np.ones((2, 2)), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = from_onnx_model(
        model(nodes, [tensor("x", [3, 2]), tensor("w", [2, 2])], [tensor("y", [3, 2])], [weight])
    )
    assert list(graph.inputs) == ["x"]
    assert list(graph.weights) == ["w"]


def test_shared_and_unused_initializers() -> None:
    shared, unused = constant("w", np.ones((2, 2)), np.float32), constant("u", [1.0], np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"]),
        helper.make_node("Relu", ["a"], ["dead"]),
    ]
    graph = from_onnx_model(
        model(nodes, [tensor("x", [3, 2])], [tensor("y", [3, 2])], [shared, unused])
    )
    assert list(graph.weights) == ["w"]
    assert [node.inputs for node in graph.nodes] == [("x", "w"), ("a", "w")]


def test_uniform_tensors_stay_one_number() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=constant("", [0.5], np.float32)),
        helper.make_node("Expand", ["one", "s"], ["e"]),
        helper.make_node("Add", ["c", "e"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    size = 5000
    constants = [constant("s", [size, size], np.int64), constant("one", [[2]], np.float32)]
    graph = from_onnx_model(
        model(nodes, [tensor("x", [1, size])], [tensor("y", [1, size])], constants)
    )
    assert set(graph.weights) == {"c", "e"}  # the sum is large: left to the optimizer
    for weight in graph.weights.values():
        assert weight.data is not None
        assert weight.data.strides == (0, 0)


def test_functions_are_inlined(tmp_path: Path) -> None:
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    function = helper.make_function(
        "local", "NegRelu", ["a"], ["c"], body, [helper.make_opsetid("", 17)]
    )
    nodes = [helper.make_node("NegRelu", ["x"], ["y"], domain="local")]
    original = model(
        nodes, [tensor("x", [2])], [tensor("y", [2])], domains={"local": 1}, functions=[function]
    )
    graph, written = round_trip(original, tmp_path)
    assert graph.count_ops() == {"neg": 1, "relu": 1}
    assert_same_results(original, written)


def test_outputs_that_are_inputs_weights_or_twice_used(tmp_path: Path) -> None:
    original = model(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["y"], ["z"])],
        [tensor("x", [2])],
        [tensor("y", [2]), tensor("x", [2]), tensor("w", [2]), tensor("z", [2])],
        [constant("w", [1, 2], np.float32)],
    )
    _, written = round_trip(original, tmp_path)
    assert_same_results(original, written)


def test_metadata_survives(tmp_path: Path) -> None:
    original = model(
        [helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])], opset=15
    )
    original.producer_name, original.doc_string, original.model_version = "someone", "what", 7
    helper.set_model_props(original, {"task": "test"})
    _, written = round_trip(original, tmp_path)
    assert (written.producer_name, written.doc_string) == ("someone", "what")
    assert written.model_version == 7
    assert {item.key: item.value for item in written.metadata_props} == {"task": "test"}
    assert written.opset_import[0].version == 15


def test_operands_that_do_not_fit_name_the_node() -> None:
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"], name="product")]
    with pytest.raises(ModelError, match=r"m: node 'product' \(MatMul\): .*") as caught:
        from_onnx_model(model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 3])]), where="m")
    assert "\n" not in str(caught.value)


def test_integer_and_bool_tensors(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["i", "one"], ["j"]),
        helper.make_node("Gather", ["table", "j"], ["g"], axis=0),
        helper.make_node("Cast", ["b"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["g", "f"], ["y"]),
    ]
    original = model(
        nodes,
        [tensor("i", [3], INT64), tensor("b", [3, 2], onnx.TensorProto.BOOL)],
        [tensor("y", [3, 2])],
        [
            constant("one", [1], np.int64),
            constant("table", np.arange(10).reshape(5, 2), np.float32),
        ],
    )
    graph, written = round_trip(original, tmp_path)
    assert "opaque" not in graph.count_ops()
    assert_same_results(original, written)


def test_weights_in_a_file_that_is_missing_are_named(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", inputs[:1], inputs[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(
        ModelError, match=r"m.onnx: its weights are in 'w.bin', a file that is missing"
    ):
        load_model(path)


def test_a_tensor_that_fits_no_memory_is_no_weight() -> None:
    """To go through its elements takes hours, though they are one in memory."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["t"], keepdims=0),
        helper.make_node("Add", ["x", "t"], ["y"]),
    ]
    sizes = [constant("s", [10**6, 10**6], np.int64)]
    graph = from_onnx_model(model(nodes, [tensor("x", [3])], [tensor("y", [3])], sizes))
    assert "c" not in graph.weights


def test_a_range_takes_tensors_of_one_element_behind_a_choice(tmp_path: Path) -> None:
    """onnxruntime runs it, as it knows no shape behind an If; ONNX takes scalars only."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {
      c = Constant<value = bool {1}>()
      n = If (c) <then_branch = t () => (int64[1] p) { p = Constant<value_ints = [2]>() },
                  else_branch = e () => (int64 q) { q = Constant<value_int = 3>() }>
      z = Constant<value_int = 0>() o = Constant<value_int = 1>()
      r = Range(z, n, o) f = Cast<to = 1>(r) y = Add(x, f) }"""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    graph = load_model(path)
    assert [node.op for node in graph.nodes] == ["add"]


def test_a_sum_with_zeros_of_a_computed_shape_is_its_operand(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[3,8] x) => (float[3,8] y) {
      s = Shape(x) c = ConstantOfShape(s) f = Cast<to = 6>(c) z = Cast<to = 1>(f)
      b = Add(x, z) y = Exp(b) }"""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert [node.op for node in load_model(path).nodes] == ["identity", "exp"]


def test_functions_of_one_node_each_are_inlined() -> None:
    """The file has as many nodes as it has without its calls."""
    function = helper.make_function(
        "local",
        "Same",
        ["a"],
        ["b"],
        [helper.make_node("Exp", ["a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [helper.make_node("Same", ["x"], ["y"], domain="local")]
    proto = model(
        nodes, [tensor("x", [2])], [tensor("y", [2])], domains={"local": 1}, functions=[function]
    )
    graph = from_onnx_model(proto)
    assert [node.op for node in graph.nodes] == ["exp"]
    assert list(to_onnx_model(graph).functions) == [function]


def test_a_source_is_read_at_several_sizes_and_stays_as_it_was() -> None:
    message = _dynamic()
    before, source = message.SerializeToString(), OnnxSource(message, "model", {})
    for batch in (2, 5):
        dims = {"batch": batch, "x:2": 7}
        read, alone = source.read(dims).graph, from_onnx_model(message, dims)
        assert (read.nodes, read.types) == (alone.nodes, alone.types)
        assert to_onnx_model(read) == to_onnx_model(alone)
    assert message.SerializeToString() == before
