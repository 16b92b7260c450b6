"""A model at several sizes of its dynamic dimensions: the same graph, with other numbers in it.

Shapes that are computed are known once sizes are, so they are folded as in any model. Some are tensors that
nodes take: positions, masks, a shape for an operator that is not understood. These differ from size to
size. Such values are further inputs of the graph, whose values are known at each size.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from relational_tensat.base.errors import InputError
from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from relational_tensat.formats.dynamic.expressions import Quotient, Sizes
from relational_tensat.formats.onnx_read import OnnxSource, Reading
from relational_tensat.formats.onnx_types import is_tensor_of_unknown_shape
from relational_tensat.tensor import Array, Graph, TensorType, ValueType, Weight, tensors_of
from relational_tensat.tensor.uses import graph_flops

#: A model of more work at the sizes that it is optimized at is compared at smaller ones.
_FEW_FLOPS = 5e8
#: Defaults are made smaller where a model takes seconds at them, or has a value of more elements.
_MOST_FLOPS, _MOST_ELEMENTS = 2e11, 2**28


def is_much_work(graph: Graph) -> bool:
    """Whether a model is too much work, at the sizes that it is optimized at, to be compared there."""
    return graph_flops(graph) > _FEW_FLOPS


def is_too_much_work(graph: Graph) -> bool:
    """Whether a model is too much work, at sizes that nobody asked for, to be run and timed there."""
    parts = (part for kind in graph.types.values() for part in tensors_of(kind))
    return graph_flops(graph) > _MOST_FLOPS or any(part.size > _MOST_ELEMENTS for part in parts)


class SizeError(InputError):
    """A model is another graph at other sizes, or has no dynamic form.

    Attributes:
        base: the model at the sizes to optimize at, where it could be read.
    """

    base: Graph | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SizedGraph:
    """A model at given sizes.

    Attributes:
        graph: values computed from sizes alone are inputs after its own, ``computed`` by name.
        constants: the values that are known before inference, those that no node takes included.
        fitting: values of inputs that the model does not run without at these sizes.
    """

    sizes: Sizes
    graph: Graph
    computed: Mapping[str, Array]
    constants: Mapping[str, Weight]
    fitting: Mapping[str, Array]

    @property
    def known_inputs(self) -> Mapping[str, Array]:
        """Inputs that are not drawn."""
        return {**self.computed, **self.fitting}


@dataclass(frozen=True, slots=True, eq=False)
class DynamicModel:
    """A model with dynamic dimensions, read at several sizes.

    Attributes:
        path: its file.
        frame: its ONNX graph, its local functions in place; large initializers have placeholders.
        data: the data they stand for, by name.
        base: at the sizes that it is optimized at.
        others: the same graph at other sizes, 1 among them where the model allows it.
        chosen: the symbols whose sizes were given.
        notes: sizes at which it is another graph, or none, and which dimensions are taken to be equal.
        quotients: of sizes, those that occur in shapes of the graph.
        overridable: inputs with a default value that stay inputs.
    """

    path: Path
    frame: onnx.ModelProto
    data: Mapping[str, memoryview]
    dimensions: DynamicDimensions
    base: SizedGraph
    others: tuple[SizedGraph, ...]
    chosen: frozenset[str]
    notes: tuple[str, ...]
    quotients: tuple[Quotient, ...]
    overridable: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[SizedGraph, ...]:
        """The model at the base sizes, then at the others."""
        return (self.base, *self.others)

    def at(self, sizes: Sizes) -> Graph:
        """Return the model at any sizes, as a graph of its own.

        Raises:
            InputError: it is not valid at these.
        """
        source = OnnxSource(self.frame, str(self.path), self.data, self.overridable)
        return source.read(self.dimensions.at(sizes)).graph


def text_of(sizes: Sizes) -> str:
    """Return sizes as they are written after ``--dim``."""
    return ",".join(f"{symbol}={size}" for symbol, size in sizes.items())


@dataclass(frozen=True, slots=True, eq=False)
class SizedReading:
    """The reading of a model at given sizes."""

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
        # It was checked when it was read: all values have the types that they had.
        types: dict[str, ValueType] = {**inputs, **{name: w.type for name, w in kept.items()}}
        types |= {name: graph.types[name] for node in graph.nodes for name in node.outputs}
        graph = replace(graph, inputs=inputs, weights=kept, types=types)
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
    # an unknown shape's known elements may be sizes
    return "" if is_tensor_of_unknown_shape(kind) else kind.dtype, kind.rank


def _are_equal(a: Weight, b: Weight) -> bool:
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
    return not all(_are_equal(graph.constant(name), first) for graph in graphs)


def has_ones_that_grow(types: Mapping[str, ValueType], larger: Mapping[str, ValueType]) -> bool:
    """Whether a dimension is 1 that is more at larger sizes."""
    pairs = [(kind, larger[name]) for name, kind in types.items() if name in larger]
    return any(
        size == 1 and more > 1
        for kind, other in pairs
        for part, grown in zip(tensors_of(kind), tensors_of(other), strict=False)
        for size, more in zip(part.shape, grown.shape, strict=False)
    )


#: A value that is folded at one size and not at another is folded at none; finding these takes few rounds.
_MOST_ROUNDS = 10


class AlikeReader:
    """Reads a model again at several sizes, until it is one graph with other numbers in it.

    Args:
        initialized: the values that are constants of the file.
    """

    def __init__(
        self,
        source: OnnxSource,
        frame: onnx.ModelProto,
        dimensions: DynamicDimensions,
        initialized: Collection[str],
    ) -> None:
        self._source = source
        self._frame = frame
        self._dimensions = dimensions
        self._initialized = initialized

    def expressed(self, graphs: list[SizedReading]) -> list[SizedReading]:
        """Read so that each size is an expression of the inputs' sizes, or is not known.

        A value without an expression stays computed, and so do the values that it is computed from: that
        part is left as it was.

        Raises:
            SizeError: the model is other graphs at other sizes.
        """
        # few models need it
        from relational_tensat.formats.dynamic.traced_shapes import first_unexpressed

        unfolded: set[str] = set()
        graphs = self._alike(graphs, unfolded)
        for _ in range(_MOST_ROUNDS):
            try:
                for other in graphs[1:]:
                    check_alike(graphs[0], other)
            except SizeError:  # said later, where sizes are left out
                break
            sizes = [graph.sizes for graph in graphs]
            node = first_unexpressed(sizes, [graph.reading.graph for graph in graphs])
            varying = set() if node is None else self._varying_operands(node.outputs[0], graphs)
            if not varying - unfolded:
                break
            unfolded |= varying
            graphs = self._alike(self._without_folding(graphs, unfolded), unfolded)
        return graphs

    def _varying_operands(self, value: str, graphs: Sequence[SizedReading]) -> set[str]:
        """Return the operands of the node of a value that are known at each size, and vary."""
        nodes = (node for node in self._frame.graph.node if value in node.output)
        names = {name for node in nodes for name in node.input if name not in self._initialized}
        return {
            name
            for name in names
            if all(name in graph.reading.constants for graph in graphs) and varies(name, graphs)
        }

    def _without_folding(
        self, graphs: Sequence[SizedReading], unfolded: Collection[str]
    ) -> list[SizedReading]:
        return [
            SizedReading(g.sizes, self._source.read(self._dimensions.at(g.sizes), unfolded))
            for g in graphs
        ]

    def _alike(self, graphs: list[SizedReading], unfolded: set[str]) -> list[SizedReading]:
        """Read again so that what is folded or chosen at one size is so at all.

        Args:
            unfolded: values that stay computed; more go into it.

        Raises:
            SizeError: that is not found.
        """
        for _ in range(_MOST_ROUNDS):
            names = [graph.reading.constants.keys() for graph in graphs]
            uneven = set().union(*names) - set(names[0]).intersection(*names)
            choices = [set(graph.reading.choices.items()) for graph in graphs]
            uneven |= {
                name for name, _ in set().union(*choices) - choices[0].intersection(*choices)
            }
            if not uneven:
                return graphs
            unfolded |= uneven
            graphs = self._without_folding(graphs, unfolded)
        raise SizeError(f"{self._source.where}: other constants are known at other sizes")

    def computed(self, graphs: Sequence[SizedReading]) -> list[str]:
        """Return the values that are constants at each size, and not the same at all."""
        first = graphs[0].reading.graph
        return [
            name for name in first.weights if name not in self._initialized and varies(name, graphs)
        ]
