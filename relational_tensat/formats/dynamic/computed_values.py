"""What a model computes from sizes alone, taken from its own nodes: positions, masks, shapes.

They are computed by copies of the model's nodes, from its initializers and the shapes of its inputs; the
shape of another value, which may not be there any more, is computed from those of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from relational_tensat.formats.dynamic.expressions import Expression, find_expression
from relational_tensat.formats.dynamic.size_nodes import SizeNodes, values_by_name
from relational_tensat.formats.dynamic.sized_model import DynamicModel, SizeError
from relational_tensat.formats.onnx_conversion import convert_node
from relational_tensat.formats.onnx_names import FreshNames, rename_node, subgraphs
from relational_tensat.formats.onnx_opset import is_unchanged, read_imports
from relational_tensat.tensor.types import Array

#: Vectors of more integers are no shapes: they are computed as the model computes them.
_MOST_SIZES = 16


class ComputedValues:
    """Writes values that are computed from sizes alone.

    Args:
        opset: the version of the default operator set that is written.
    """

    def __init__(
        self, model: DynamicModel, opset: int, nodes: SizeNodes, fresh: FreshNames
    ) -> None:
        self._model = model
        self._opset = opset
        self._nodes = nodes
        self._fresh = fresh
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
            return self._shape(name)
        if any(True for _ in subgraphs(node)):
            raise SizeError(f"{name!r} is computed by {node.op_type}")
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            return self._nodes.constant_of(node.attribute[0].t)
        names = {value: self.write(value) for value in node.input if value}
        names |= {value: self._fresh.new(value) for value in node.output if value}
        for copy in self._in_written_version(node):
            for value in copy.output:  # between the nodes of a conversion
                if value and value not in names:
                    names[value] = self._fresh.new(value)
            rename_node(copy, names, (), self._fresh)
            self._nodes.nodes.append(copy)
        self._written |= {value: names[value] for value in node.output if value}
        return names[name]

    def _in_written_version(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return nodes that do in the written version of the operators what one does in its own.

        Raises:
            SizeError: there are none.
        """
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if is_unchanged(node, self._own_imports[""], self._opset):
            return [copy]
        base = self._model.base
        types = {**base.graph.inputs, **{n: w.type for n, w in base.constants.items()}}
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

    def _shape(self, name: str) -> str:
        """Return the name of a shape that is computed from those of the inputs.

        Raises:
            SizeError: it does not follow from them.
        """
        weights = [graph.constants.get(name) for graph in self._model.all]
        data = [None if weight is None else weight.data for weight in weights]
        known = [np.asarray(array) for array in data if array is not None]
        expressions = sizes_in(known, self._model) if len(known) == len(data) else None
        if expressions is None or not all(map(self._nodes.can_express, expressions)):
            raise SizeError(f"the shape {name!r} does not follow from those of the inputs")
        return self._nodes.tensor(expressions, known[0].ndim, str(known[0].dtype))


def sizes_in(arrays: Sequence[Array], model: DynamicModel) -> list[Expression] | None:
    """Return what integers, known at each size, are as expressions of these; None if they are none."""
    first = arrays[0]
    if first.ndim > 1 or first.size > _MOST_SIZES or str(first.dtype) not in ("int64", "int32"):
        return None
    if any(array.shape != first.shape or array.dtype != first.dtype for array in arrays):
        return None
    sizes = [graph.sizes for graph in model.all]
    columns = np.stack([array.reshape(-1) for array in arrays], axis=1)
    expressions = [find_expression(column.tolist(), sizes) for column in columns]
    known = [expression for expression in expressions if expression is not None]
    return known if len(known) == len(expressions) else None
