"""A model as it is read at given sizes, and what two such readings have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.formats.dynamic.expressions import Quotient, Sizes
from relational_tensat.formats.dynamic.sized_model import (
    SizedGraph,
    SizeError,
    text_of,
)
from relational_tensat.formats.onnx_read import Reading
from relational_tensat.formats.onnx_types import is_tensor_of_unknown_shape
from relational_tensat.tensor import (
    Array,
    TensorType,
    ValueType,
    Weight,
    build_graph,
    tensors_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class SizedReading:
    """What was read at given sizes."""

    sizes: Sizes
    reading: Reading

    def constant(self, name: str) -> Weight:
        """Return what a value is known to be."""
        return self.reading.constants[name]

    def with_inputs(
        self,
        computed: Sequence[str],
        weights: Mapping[str, Weight],
        fitting: Mapping[str, Array],
    ) -> SizedGraph:
        """Return the graph whose computed values are inputs, and whose weights are the given ones."""
        graph = self.reading.graph
        kept = {name: weights[name] for name in graph.weights if name not in computed}
        inputs = {**graph.inputs, **{name: self.constant(name).type for name in computed}}
        values: dict[str, Array] = {}
        for name in computed:
            data = self.constant(name).data
            if data is None:
                raise SizeError(f"the value {name!r} depends on sizes and is not known")
            values[name] = np.asarray(data)
        graph = build_graph(
            graph.name,
            inputs,
            kept,
            graph.nodes,
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )
        return SizedGraph(self.sizes, graph, values, self.reading.constants, fitting)


def all_types(reading: Reading) -> dict[str, ValueType]:
    """Return the types of all values, constants included."""
    known = {name: weight.type for name, weight in reading.constants.items()}
    return {**known, **reading.graph.types}


def without_elements(types: Mapping[str, ValueType]) -> set[str]:
    """Return the values that have no elements."""
    return {name for name, kind in types.items() if any(not part.size for part in tensors_of(kind))}


def has_other_operators(one: SizedReading, other: SizedReading) -> bool:
    """Whether a value is computed by different operators."""
    operators = {node.outputs: node.op for node in one.reading.graph.nodes}
    nodes = other.reading.graph.nodes
    return any(operators.get(node.outputs, node.op) != node.op for node in nodes)


def has_unknown_shapes(sized: SizedReading) -> bool:
    """Whether a value has a shape that nobody knows."""
    kinds = sized.reading.graph.types.values()
    return any(is_tensor_of_unknown_shape(part) for kind in kinds for part in tensors_of(kind))


def takes_numbers(sized: SizedReading) -> bool:
    """Whether an input has few whole numbers, which may have to fit the sizes."""
    kinds = sized.reading.graph.inputs.values()
    return any(kind.dtype in ("int32", "int64") and kind.rank <= 1 for kind in kinds)


def check_alike(one: SizedReading, other: SizedReading) -> None:
    """Check that two graphs are the same but for sizes.

    Raises:
        SizeError: they are not; names a value.
    """
    a, b = one.reading.graph, other.reading.graph
    difference = f"{text_of(one.sizes)} and {text_of(other.sizes)}"
    if set(a.weights) - set(other.reading.constants) or len(a.nodes) != len(b.nodes):
        raise SizeError(f"the model is read as other graphs at {difference}")
    for node, namesake in zip(a.nodes, b.nodes, strict=True):
        form = (namesake.op, namesake.inputs, namesake.outputs)
        if (node.op, node.inputs, node.outputs) != form:
            raise SizeError(f"{node.outputs[0]!r} is another operator at {difference}")
    for name, kind in a.types.items():
        kinds = tensors_of(b.types.get(name, kind))
        if [_form(part) for part in tensors_of(kind)] != [_form(part) for part in kinds]:
            raise SizeError(f"{name!r} has another type at {difference}")


def _form(kind: TensorType) -> tuple[str, int]:
    # what is known of an unknown shape may be sizes
    return "" if is_tensor_of_unknown_shape(kind) else kind.dtype, kind.rank


def are_equal(a: Weight, b: Weight) -> bool:
    """Whether two weights are known to have the same elements."""
    if a.type != b.type or a.data is None or b.data is None:
        return False
    return a.data is b.data or bool(np.array_equal(a.data, b.data, equal_nan=a.type.is_float))


def quotients_of(graphs: Sequence[SizedReading]) -> tuple[Quotient, ...]:
    """Return what is divided in the shapes of graphs."""
    # few models need it
    from relational_tensat.formats.dynamic.traced_shapes import find_quotients

    sizes = [graph.sizes for graph in graphs]
    return find_quotients(sizes, [graph.reading.graph for graph in graphs])


def varies(name: str, graphs: Sequence[SizedReading]) -> bool:
    """Whether a value that is known at each size is not the same at all."""
    first = graphs[0].constant(name)
    return not all(are_equal(graph.constant(name), first) for graph in graphs)


def has_ones_that_grow(types: Mapping[str, ValueType], larger: Mapping[str, ValueType]) -> bool:
    """Whether a dimension is 1 that is more at larger sizes."""
    pairs = [(kind, larger[name]) for name, kind in types.items() if name in larger]
    return any(
        size == 1 and more > 1
        for kind, other in pairs
        for part, grown in zip(tensors_of(kind), tensors_of(other), strict=False)
        for size, more in zip(part.shape, grown.shape, strict=False)
    )
