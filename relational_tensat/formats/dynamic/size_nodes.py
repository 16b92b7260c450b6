"""ONNX nodes that compute values that depend on sizes, from the shapes of the model's inputs.

Integers are expressions of sizes, found from their values at several sizes. Positions, masks and shapes
that a model computes from sizes alone are taken from its own nodes: copies of these compute them, from its
initializers and the shapes of its inputs. The shape of another value that is not there any more is computed
from those of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx

from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from relational_tensat.formats.dynamic.expressions import (
    Expression,
    Factor,
    Product,
    find_expression,
)
from relational_tensat.formats.dynamic.sized_model import DynamicModel, SizeError
from relational_tensat.formats.onnx_metadata import read_imports
from relational_tensat.formats.onnx_names import FreshNames, rename_node, subgraphs
from relational_tensat.formats.onnx_types import dtype_code
from relational_tensat.formats.onnx_versions import convert_node, stays
from relational_tensat.tensor.types import Array, TensorType

#: The first version of the default operator set whose Shape gives some of the dimensions.
_SHAPE_OF_SOME = 15


class SizeNodes:
    """Collects nodes and initializers; equal expressions are computed once.

    Args:
        opset: the version of the default operator set that is written.
        fresh: gives names that are not in use.

    Attributes:
        nodes, initializers: those needed so far, in order.
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
        return expression.symbols <= self._place.keys()

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

    def emit(self, op_type: str, inputs: Sequence[str], **attrs: Any) -> str:
        """Add a node of one output; return its name."""
        name = self._fresh.new(f"sizes/{op_type}")
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
            factors = [self._factor(item) for item in product]
            if factor != 1:
                factors.append(self.constant(np.array([factor], np.int64)))
            name = factors[0]
            for other in factors[1:]:
                name = self.emit("Mul", [name, other])
            self._known[key] = name
        return self._known[key]

    def _factor(self, factor: Factor) -> str:
        if factor not in self._known:
            if isinstance(factor, str):
                place = self._place[factor]
                self._known[factor] = self._dimension(place.input, place.axis)
            else:  # integers are divided toward zero, and numerators are not negative
                divisor = self.constant(np.array([factor.divisor], np.int64))
                self._known[factor] = self.emit(
                    "Div", [self._expression(factor.numerator), divisor]
                )
        return self._known[factor]

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


#: Vectors of more integers are no shapes: they are computed as the model computes them.
_MOST_SIZES = 16


class ComputedValues:
    """Writes values that are computed from sizes alone.

    Args:
        opset: the version of the default operator set that is written.
        present: the names of the model's values that are in the written graph.
    """

    def __init__(
        self,
        model: DynamicModel,
        opset: int,
        nodes: SizeNodes,
        fresh: FreshNames,
        present: Mapping[str, str],
    ) -> None:
        self._model = model
        self._opset = opset
        self._nodes = nodes
        self._fresh = fresh
        self._present = present
        graph = model.frame.graph
        self._producers = {name: node for node in graph.node for name in node.output if name}
        self._initializers = values_by_name(model.frame)
        self._inputs = {value.name for value in graph.input} - set(self._initializers)
        self._own_imports = {"": 1, **read_imports(model.frame.opset_import)}
        self._written: dict[str, str] = {}

    def write(self, name: str) -> str:
        """Return the name that one of the model's values has in the written graph.

        Raises:
            SizeError: it cannot be computed there.
        """
        if name not in self._written:
            self._written[name] = self._write(name)
        return self._written[name]

    def _write(self, name: str) -> str:
        if name in self._inputs:
            return name
        if name in self._initializers:
            return self._nodes.constant_of(self._initializers[name])
        node = self._producers.get(name)
        if node is None:
            raise SizeError(f"the value {name!r} is computed by no node")
        if node.op_type in ("Shape", "Size") and node.input[0] not in self._inputs:
            return self._shape(name, node)
        if any(True for _ in subgraphs(node)):
            raise SizeError(f"{name!r} is computed by {node.op_type}")
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            return self._nodes.constant_of(node.attribute[0].t)
        return self._copied(node, {value: self.write(value) for value in node.input if value})[name]

    def _copied(self, node: onnx.NodeProto, names: dict[str, str]) -> dict[str, str]:
        """Write a node of the model, given its operands' names; return these and its results'."""
        names = names | {value: self._fresh.new(value) for value in node.output if value}
        for copy in self._in_written_version(node):
            for value in copy.output:  # between the nodes of a conversion
                if value and value not in names:
                    names[value] = self._fresh.new(value)
            rename_node(copy, names, (), self._fresh)
            self._nodes.nodes.append(copy)
        self._written |= {value: names[value] for value in node.output if value}
        return names

    def _in_written_version(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return nodes that do in the written version of the operators what one does in its own.

        Raises:
            SizeError: no nodes of that version do the same.
        """
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if stays(node, self._own_imports[""], self._opset):
            return [copy]
        base = self._model.base
        types = {name: t for name, t in base.graph.types.items() if isinstance(t, TensorType)}
        types |= {name: weight.type for name, weight in base.constants.items()}
        values = [name for name in (*node.input, *node.output) if name]
        converted = None
        if all(name in types for name in values):
            kinds = {name: types[name] for name in values}
            converted = convert_node(copy, kinds, self._own_imports, self._opset)
        if converted is None:
            raise SizeError(
                f"{node.output[0]!r} ({node.op_type}) has no form in opset {self._opset}"
            )
        return converted

    def _shape(self, name: str, node: onnx.NodeProto) -> str:
        """Return the name of the shape of a value, if that is there, else computed from the inputs' shapes.

        Raises:
            SizeError: the value is not there any more, and its shape does not follow from the inputs.
        """
        if node.input[0] in self._present:
            return self._copied(node, {node.input[0]: self._present[node.input[0]]})[name]
        weights = [graph.constants.get(name) for graph in self._model.all]
        data = [None if weight is None else weight.data for weight in weights]
        known = [np.asarray(array) for array in data if array is not None]
        expressions = sizes_in(known, self._model) if len(known) == len(data) else None
        if expressions is None or not all(map(self._nodes.can_express, expressions)):
            raise SizeError(f"the shape {name!r} does not follow from those of the inputs")
        return self._nodes.tensor(expressions, known[0].ndim, str(known[0].dtype))


def sizes_in(arrays: Sequence[Array], model: DynamicModel) -> list[Expression] | None:
    """Return integers, known at each size, as expressions of these; None if they are not."""
    first = arrays[0]
    if first.ndim > 1 or first.size > _MOST_SIZES or str(first.dtype) not in ("int64", "int32"):
        return None
    if any(array.shape != first.shape or array.dtype != first.dtype for array in arrays):
        return None
    sizes = [graph.sizes for graph in model.all]
    columns = np.stack([array.reshape(-1) for array in arrays], axis=1)
    expressions = [find_expression(column.tolist(), sizes, model.quotients) for column in columns]
    known = [expression for expression in expressions if expression is not None]
    return known if len(known) == len(expressions) else None
