"""ONNX nodes that compute, from the shapes of the model's inputs, what depends on sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx

from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from relational_tensat.formats.dynamic.expressions import Expression, Product
from relational_tensat.formats.onnx_names import FreshNames
from relational_tensat.formats.onnx_types import dtype_code
from relational_tensat.tensor.types import Array

#: The first version of the default operator set whose Shape gives some of the dimensions.
_SHAPE_OF_SOME = 15


class SizeNodes:
    """Collects nodes and initializers; equal expressions are computed once.

    Args:
        opset: the version of the default operator set that is written.
        fresh: gives names that are not in use.

    Attributes:
        nodes, initializers: what was needed so far, in order.
    """

    def __init__(self, dimensions: DynamicDimensions, opset: int, fresh: FreshNames) -> None:
        self._opset = opset
        self._fresh = fresh
        self._place = {item.symbol: item for item in reversed(dimensions.dimensions)}
        self._known: dict[object, str] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def can_express(self, expression: Expression) -> bool:
        """Whether the sizes in it are dimensions of inputs: those of derived names alone are not."""
        return all(symbol in self._place for _, product in expression.terms for symbol in product)

    def tensor(self, expressions: Sequence[Expression], rank: int, dtype: str) -> str:
        """Return the name of a tensor of such integers: of one dimension, or a scalar.

        Args:
            dtype: int64 or int32.
        """
        key = ("tensor", tuple(expressions), rank, dtype)
        if key not in self._known:
            self._known[key] = self._tensor(expressions, rank, dtype)
        return self._known[key]

    def constant(self, value: Array) -> str:
        """Return the name of an initializer of this value."""
        return self.constant_of(onnx.numpy_helper.from_array(np.asarray(value)))

    def constant_of(self, tensor: onnx.TensorProto) -> str:
        """Return the name of an initializer that is this tensor."""
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.ClearField("name")
        key = ("constant", copy.SerializeToString(deterministic=True))
        if key not in self._known:
            copy.name = self._known[key] = self._fresh.new(tensor.name or "sizes/constant")
            self.initializers.append(copy)
        return self._known[key]

    def emit(self, op_type: str, inputs: Sequence[str], base: str = "", **attrs: Any) -> str:
        """Add a node of one output; return its name."""
        name = self._fresh.new(base or f"sizes/{op_type}")
        self.nodes.append(onnx.helper.make_node(op_type, list(inputs), [name], **attrs))
        return name

    def _tensor(self, expressions: Sequence[Expression], rank: int, dtype: str) -> str:
        parts = []
        for is_fixed, group in groupby(expressions, key=lambda item: not item.terms):
            members = list(group)
            if is_fixed:
                parts.append(self.constant(np.array([item.number for item in members], np.int64)))
            else:
                parts += [self._expression(item) for item in members]
        name = parts[0] if len(parts) == 1 else self.emit("Concat", parts, axis=0)
        if rank == 0:
            name = self.emit("Reshape", [name, self.constant(np.zeros(0, np.int64))])
        return name if dtype == "int64" else self.emit("Cast", [name], to=dtype_code(dtype))

    def _expression(self, expression: Expression) -> str:
        """Return the name of a tensor [1] that has the value of an expression."""
        if expression not in self._known:
            terms = [self._term(factor, product) for factor, product in expression.terms]
            if expression.number:
                terms.append(self.constant(np.array([expression.number], np.int64)))
            name = terms[0]
            for term in terms[1:]:
                name = self.emit("Add", [name, term])
            self._known[expression] = name
        return self._known[expression]

    def _term(self, factor: int, product: Product) -> str:
        key = (factor, product)
        if key not in self._known:
            factors = [self._symbol(symbol) for symbol in product]
            if factor != 1:
                factors.append(self.constant(np.array([factor], np.int64)))
            name = factors[0]
            for other in factors[1:]:
                name = self.emit("Mul", [name, other])
            self._known[key] = name
        return self._known[key]

    def _symbol(self, symbol: str) -> str:
        if symbol not in self._known:
            self._known[symbol] = self._dimension(
                self._place[symbol].input, self._place[symbol].axis
            )
        return self._known[symbol]

    def _dimension(self, value: str, axis: int) -> str:
        if self._opset >= _SHAPE_OF_SOME:
            return self.emit("Shape", [value], start=axis, end=axis + 1)
        key = ("shape", value)
        if key not in self._known:
            self._known[key] = self.emit("Shape", [value])
        return self.emit("Gather", [self._known[key], self.constant(np.array([axis], np.int64))])


def names_of(model: onnx.ModelProto) -> set[str]:
    """Return the names of a model's values, those of subgraphs left out."""
    graph = model.graph
    names = {item.name for item in (*graph.input, *graph.output, *graph.initializer)}
    names |= {tensor.values.name for tensor in graph.sparse_initializer}
    return names | {name for node in graph.node for name in (*node.input, *node.output)}


def values_by_name(model: onnx.ModelProto) -> Mapping[str, onnx.TensorProto]:
    """Return the initializers by name."""
    return {tensor.name: tensor for tensor in model.graph.initializer}
