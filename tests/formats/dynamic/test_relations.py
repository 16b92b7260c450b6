"""Relations between sizes: from operands that have to fit, known indices, and whether a model runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.base.errors import InputError
from relational_tensat.formats.dynamic.expressions import Expression
from relational_tensat.formats.dynamic.size_reader import read_dynamic
from relational_tensat.formats.dynamic.sized_model import DynamicModel
from tests.formats.dynamic.models import saved
from tests.formats.onnx_tools import INT64, constant, model, tensor

node = helper.make_node


def read(file: onnx.ModelProto, folder: Path, **dims: int) -> DynamicModel:
    result = read_dynamic(saved(file, folder), dims)
    assert isinstance(result, DynamicModel)
    return result


def cached(*, mask: list[str | int]) -> onnx.ModelProto:
    """Keys of a cache and new ones, whose scores a mask is added to."""
    nodes = [
        node("Concat", ["past", "x"], ["keys"], axis=1),
        node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["x", "turned"], ["scores"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Relu", ["masked"], ["y"]),
    ]
    inputs = [tensor("x", ["b", "s", 4]), tensor("past", ["b2", "p", 4]), tensor("mask", mask)]
    return model(nodes, inputs, [tensor("y", [None] * 3)])


def test_a_mask_that_is_added_is_as_long_as_past_and_sequence(tmp_path: Path) -> None:
    sized = read(cached(mask=["b", 1, "t"]), tmp_path)
    sums = Expression.of("p") + Expression.of("s")
    assert sized.dimensions.derived == {"b2": Expression.of("b"), "t": sums}
    for there in sized.all:
        past, sequence = there.sizes["p"], there.sizes["s"]
        assert there.graph.inputs["mask"].shape[2] == past + sequence
    assert "t is taken to be p + s: operands of Add fit then only" in sized.notes


def test_given_sizes_say_what_others_are(tmp_path: Path) -> None:
    sized = read(cached(mask=["b", 1, "t"]), tmp_path, t=9, s=2)
    assert (sized.base.sizes["s"], sized.base.sizes["p"]) == (2, 7)
    with pytest.raises(InputError, match=r"dimension 't' = 9, expected p \+ s = 5"):
        read_dynamic(tmp_path / "m.onnx", {"t": 9, "s": 2, "p": 3})


def by_index() -> onnx.ModelProto:
    """What stands in a mask at the positions of past and sequence."""
    nodes = [
        node("Shape", ["past"], ["p"], start=1, end=2),
        node("Shape", ["x"], ["s"], start=1, end=2),
        node("Add", ["p", "s"], ["sum"]),
        node("Squeeze", ["sum"], ["total"]),
        node("Range", ["zero", "total", "one"], ["positions"]),
        node("Gather", ["mask", "positions"], ["seen"], axis=1),
        node("Relu", ["x"], ["r"]),
        node("Relu", ["r"], ["y"]),
    ]
    inputs = [tensor("x", ["b", "s"]), tensor("past", ["b", "p"]), tensor("mask", ["b", "t"])]
    constants = [constant("zero", 0, np.int64), constant("one", 1, np.int64)]
    outputs = [tensor("seen", [None, None]), tensor("y", ["b", "s"])]
    return model(nodes, inputs, outputs, constants)


def test_what_is_indexed_is_long_enough(tmp_path: Path) -> None:
    sized = read(by_index(), tmp_path)
    assert sized.dimensions.least == {"t": Expression.of("p") + Expression.of("s")}
    slack = {there.sizes["t"] - there.sizes["p"] - there.sizes["s"] for there in sized.all}
    assert min(slack) == 0 and len(slack) > 2  # it may be longer
    with pytest.raises(InputError, match=r"dimension 't' = 4, expected at least p \+ s = 8"):
        read_dynamic(tmp_path / "m.onnx", {"t": 4, "s": 3, "p": 5})


def test_two_relations_of_one_node(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["z"], ["shape"]),
        node("Reshape", ["x", "shape"], ["r"]),
        node("Relu", ["r"], ["y"]),
    ]
    inputs = [tensor("x", ["b", "s", 6]), tensor("z", ["c", "t", 2, 3])]
    sized = read(model(nodes, inputs, [tensor("y", [None] * 4)]), tmp_path)
    assert sized.dimensions.symbols == ("b", "s")


def test_sizes_that_are_multiples(tmp_path: Path) -> None:
    nodes = [node("Reshape", ["x", "blocks"], ["r"]), node("Relu", ["r"], ["y"])]
    blocks = constant("blocks", [2, -1, 8, 3], np.int64)
    file = model(nodes, [tensor("x", [2, "n", 3])], [tensor("y", [None] * 4)], [blocks])
    sized = read(file, tmp_path)
    assert sized.dimensions.multiples == {"n": 8}
    assert all(there.sizes["n"] % 8 == 0 for there in sized.all)


def test_sizes_that_are_halved_and_doubled_again_are_multiples(tmp_path: Path) -> None:
    """Two strides, doubled twice, meet a skip; the width is only halved."""
    nodes = [
        node("MaxPool", ["x"], ["half"], kernel_shape=[1, 2], strides=[2, 2]),
        node("MaxPool", ["half"], ["quarter"], kernel_shape=[1, 1], strides=[2, 1]),
        node("ConvTranspose", ["quarter", "w"], ["back"], strides=[4, 1]),
        node("MaxPool", ["x"], ["skip"], kernel_shape=[1, 2], strides=[1, 2]),
        node("Concat", ["back", "skip"], ["y"], axis=1),
    ]
    file = model(
        nodes,
        [tensor("x", ["batch", 1, "height", "width"])],
        [tensor("y", [None] * 4)],
        [constant("w", np.ones((1, 1, 4, 1)), np.float32)],
    )
    sized = read(file, tmp_path, height=8, width=9)
    assert dict(sized.dimensions.multiples) == {"height": 4}
    assert "height is a multiple of 4: the model does not run with other sizes" in sized.notes
    assert 1 in {there.sizes["width"] % 2 for there in sized.all}


def test_what_no_type_tells_is_found_by_running(tmp_path: Path) -> None:
    """Indices that are an input's numbers: ones are too large where there is one row."""
    nodes = [node("GatherElements", ["x", "i"], ["g"], axis=1), node("Relu", ["g"], ["y"])]
    inputs = [tensor("x", ["a", 8]), tensor("i", ["c", 5], INT64)]
    sized = read(model(nodes, inputs, [tensor("y", [None, 5])]), tmp_path)
    assert all(
        sized.dimensions.at(there.sizes)["c"] <= sized.dimensions.at(there.sizes)["a"]
        for there in sized.all
    )
