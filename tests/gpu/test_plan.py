"""What an executor refuses, and that it gives everything back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.gpu.calls import BoundCall, Call, Launch, Resolve
from relational_tensat.gpu.plan import Executor, plan_graph
from relational_tensat.tensor import Node, TensorType, Weight, build_graph
from tests.gpu.cases import of_columns
from tests.gpu.numpy_library import NumpyLibrary
from tests.gpu.runs import check, one_node
from tests.graphs import f32, shared_matmuls


def test_what_does_not_fit_is_refused() -> None:
    plan = plan_graph(shared_matmuls(with_data=True))
    library = NumpyLibrary()
    with Executor(plan, library) as executor:
        with pytest.raises(InputError, match="the input 'x' is not given"):
            executor.run({"x1": np.zeros((64, 64))})
        with pytest.raises(InputError, match=r"'x' has shape \[64\], expected float32\[64,64\]"):
            executor.run({"x": np.zeros(64)})
        assert executor.implementations() == {"kernels": 5}
    assert library.memory.live == 0


def test_weights_without_data_are_refused_and_memory_is_given_back() -> None:
    library = NumpyLibrary()
    with pytest.raises(InputError, match="the weight 'w1' has no data"):
        Executor(plan_graph(shared_matmuls()), library)
    assert library.memory.live == 0


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown math mode 'tf23', expected fp32, tf32; did you"):
        plan_graph(shared_matmuls(), "tf23")
    strings = TensorType("string", (2,))
    graph = build_graph("s", {"x": strings}, {}, [Node("identity", ("x",), ("y",))], ["y"])
    with pytest.raises(InputError, match=r"'x' is string\[2\], which no GPU kernel takes"):
        plan_graph(graph)
    large = f32(2**16, 2**15)
    graph = build_graph("l", {"x": large}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    with pytest.raises(InputError, match="GPU kernels take tensors of under 2\\^31 elements"):
        plan_graph(graph)


def test_constants_and_weights_that_nothing_reads() -> None:
    unused: Any = Weight(f32(3))
    nodes = [
        Node("fill", (), ("c",), {"value": 2.5, "dtype": "float32", "shape": (3,)}),
        Node("mul", ("x", "c"), ("y",)),
    ]
    graph = build_graph("fills", {"x": f32(3)}, {"unused": unused}, nodes, ["y"])
    assert set(plan_graph(graph).weights) == {"c"}
    with Executor(plan_graph(graph), NumpyLibrary()) as executor:
        (outputs,) = executor.run({"x": np.arange(3)})
    np.testing.assert_array_equal(outputs, [0.0, 2.5, 5.0])


def test_inputs_and_weights_may_be_outputs() -> None:
    weight = Weight(f32(2), np.array([1.0, 2.0], np.float32))
    nodes = [Node("relu", ("x",), ("y",))]
    check(build_graph("through", {"x": f32(2)}, {"w": weight}, nodes, ["x", "w", "y"]), runs=2)


class _Trying(NumpyLibrary):
    """Tries calls when they are bound, as a GPU's library does, in memory as somebody left it."""

    def allocate(self, nbytes: int) -> int:
        address = super().allocate(nbytes)
        self.memory.bytes_at(address, nbytes)[:] = 0x3F
        return address

    def clear(self, address: int, nbytes: int) -> None:
        self.memory.bytes_at(address, nbytes)[:] = 0

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        bound = super().bind(call, resolve)
        bound.start(0)
        return bound


def test_what_others_left_in_memory_is_not_taken_for_indices_when_calls_are_tried() -> None:
    graph = one_node("gather", f32(2, 3, 8), TensorType("int64", (4, 2)), axis=1)
    plan = plan_graph(graph)
    inputs = {"x0": np.ones((2, 3, 8)), "x1": np.full((4, 2), 2)}
    with Executor(plan, _Trying()) as executor:
        (outputs,) = executor.run(inputs)
    np.testing.assert_array_equal(outputs, np.ones((2, 4, 2, 8)))


@pytest.mark.parametrize("op", ["relu", "sub", "matmul"])
def test_columns_are_read_where_they_are(op: str) -> None:
    graph = of_columns(op, "float32")
    check(graph)
    moved = [step.node for step in plan_graph(graph).steps if isinstance(step.call, Launch)]
    assert moved == ["left" if op == "matmul" else "y", "negative"]


def test_what_takes_one_piece_is_given_a_copy() -> None:
    split = Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (4, 4)})
    nodes = [split, Node("softmax", ("b",), ("y",), {"axis": 1})]
    graph = build_graph("copied", {"x": f32(3, 8)}, {}, nodes, ["a", "y"])
    check(graph)
    kernels = [
        step.call.kernel for step in plan_graph(graph).steps if isinstance(step.call, Launch)
    ]
    assert kernels == ["strided_copy<u128>", "softmax<float>"]
