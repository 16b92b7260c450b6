"""A model as it is drawn: nodes, constants and the values that further nodes may take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


class Value(NamedTuple):
    """A tensor of the model; ``shape`` is what the next node needs to know of it."""

    name: str
    shape: tuple[int, ...]
    dtype: Any = np.float32


class Sketch:
    """Collects what is drawn. Names begin with a prefix, so that several sketches are one model.

    Attributes:
        draw: what all choices are drawn from.
        pool: floats that later motifs may start from, the oldest first.
    """

    def __init__(self, draw: np.random.Generator, prefix: str = "") -> None:
        self.draw = draw
        self.pool: list[Value] = []
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        #: Largest plus one of integer inputs, by name.
        self.ends: dict[str, int] = {}
        self._prefix = prefix
        self._count = 0

    def name(self, stem: str) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{self._prefix}{stem}{self._count}"

    def input(self, shape: Sequence[int], dtype: Any = np.float32, end: int = 2) -> Value:
        """Add an input; integers are drawn from 0 up to ``end``."""
        value = Value(self.name("in"), tuple(shape), dtype)
        self.inputs.append(value)
        if np.dtype(dtype).kind in "iu":
            self.ends[value.name] = end
        return value

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        """Add an initializer."""
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        """Add a vector of int64."""
        return self.constant(list(values), np.int64)

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Add normal numbers, by default of a size that keeps that of what is multiplied by them."""
        spread = 1 / math.sqrt(max(1, math.prod(shape[:-1]))) if scale is None else scale
        return self.constant(self.draw.normal(0.0, spread, shape))

    def op(
        self,
        op: str,
        inputs: Sequence[Value | str],
        shape: Sequence[int],
        dtype: Any = None,
        **attributes: Any,
    ) -> Value:
        """Add a node of one result."""
        return self.ops(op, inputs, [shape], dtype, **attributes)[0]

    def ops(
        self,
        op: str,
        inputs: Sequence[Value | str],
        shapes: Sequence[Sequence[int]],
        dtype: Any = None,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node of several results, of the type of the first operand that is no constant."""
        if dtype is None:
            dtype = next((each.dtype for each in inputs if isinstance(each, Value)), np.float32)
        results = [Value(self.name(op.lower()), tuple(shape), dtype) for shape in shapes]
        names = [each.name if isinstance(each, Value) else each for each in inputs]
        self.nodes.append(
            helper.make_node(op, names, [each.name for each in results], **attributes)
        )
        return results

    def some(self, *choices: Any) -> Any:
        """Return one of these."""
        return choices[int(self.draw.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        """Return true so often."""
        return bool(self.draw.random() < probability)

    def start(self, *shapes: tuple[int, ...]) -> Value:
        """Return a float of one of these shapes: one of the pool, if it fits, or an input."""
        fits = [each for each in self.pool if each.shape in shapes]
        if fits and self.chance(0.7):
            return fits[int(self.draw.integers(len(fits)))]
        sizes = [
            each for each in self.pool if math.prod(each.shape) in [math.prod(s) for s in shapes]
        ]
        if sizes and self.chance(0.5):
            value = sizes[int(self.draw.integers(len(sizes)))]
            shape = next(s for s in shapes if math.prod(s) == math.prod(value.shape))
            return self.op("Reshape", [value, self.ints(*shape)], shape)
        return self.input(self.some(*shapes))


def as_model(sketches: Sequence[Sketch]) -> bytes:
    """Return one model of sketches side by side; values that no node takes are outputs, too."""
    nodes = [node for each in sketches for node in each.nodes]
    taken = {name for node in nodes for name in node.input}
    outputs = [
        value
        for each in sketches
        for value in dict.fromkeys((*each.outputs, *(v for v in each.pool if v.name not in taken)))
        if value not in each.inputs
    ]
    graph = helper.make_graph(
        nodes,
        "motifs",
        [_info(value) for each in sketches for value in each.inputs],
        [_info(value) for value in outputs],
        [tensor for each in sketches for tensor in each.constants],
    )
    imports = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return bytes(model.SerializeToString())


def feeds(sketches: Sequence[Sketch], draw: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Draw a value for each input."""
    return {
        value.name: _drawn(value, each.ends.get(value.name, 2), draw)
        for each in sketches
        for value in each.inputs
    }


def _drawn(value: Value, end: int, draw: np.random.Generator) -> NDArray[Any]:
    """Draw elements; every third tensor of floats has whole numbers, which ties are made of."""
    if value.dtype is np.bool_:
        return np.asarray(draw.random(value.shape) < 0.7)
    if np.dtype(value.dtype).kind in "iu":
        return np.asarray(draw.integers(0, end, value.shape)).astype(value.dtype)
    floats = np.asarray(draw.normal(0.0, 1.0, value.shape))
    return (np.round(3.0 * floats) if draw.random() < 1 / 3 else floats).astype(value.dtype)


def _info(value: Value) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return helper.make_tensor_value_info(value.name, kind or TensorProto.FLOAT, value.shape)
