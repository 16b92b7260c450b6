"""Reading a model at several sizes of its dynamic dimensions: the same graph, with other numbers in it.

Shapes that are computed are known once sizes are, so they are folded as in any model. What of them is a
tensor that nodes take (positions, masks, a shape for an operator that is not understood) differs from size
to size: such values are further inputs of the graph, whose values are known at each size.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import inliner

from relational_tensat.base.errors import InputError, ShapeError
from relational_tensat.formats.dynamic.dimensions import DynamicDimensions, Sizes
from relational_tensat.formats.onnx_dims import check_names
from relational_tensat.formats.onnx_metadata import weights_without_data
from relational_tensat.formats.onnx_read import Reading, parse_onnx, read_in_full, read_model
from relational_tensat.tensor import Array, Graph, TensorType, Weight, build_graph, tensors_of

#: What is folded at one size and not at another is folded at none; finding it takes few rounds.
_MOST_ROUNDS = 10
#: So many sizes are tried for each that is needed: a model need not be valid at all of them.
_TRIALS = 4


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
    """

    sizes: Sizes
    graph: Graph
    computed: Mapping[str, Array]
    constants: Mapping[str, Weight]


@dataclass(frozen=True, slots=True, eq=False)
class DynamicModel:
    """A model with dynamic dimensions, read at several sizes.

    Attributes:
        path: its file.
        frame: its ONNX graph, its local functions in place; large initializers have placeholders.
        data: what these stand for, by name.
        base: at the sizes that it is optimized at.
        others: the same graph at other sizes, 1 among them where the model allows it.
        chosen: the symbols whose sizes were given.
        notes: sizes at which it is another graph, or none.
    """

    path: Path
    frame: onnx.ModelProto
    data: Mapping[str, memoryview]
    dimensions: DynamicDimensions
    base: SizedGraph
    others: tuple[SizedGraph, ...]
    chosen: frozenset[str]
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[SizedGraph, ...]:
        """The model at the base sizes, then at the others."""
        return (self.base, *self.others)


def read_dynamic(path: Path, dims: Mapping[str, int]) -> DynamicModel | Graph:
    """Read an ONNX file; as a graph if all its dimensions are fixed.

    Args:
        dims: sizes to optimize at, by symbol or ``INPUT:AXIS``; others get defaults.

    Raises:
        UsageError: ``dims`` names a dimension that the model lacks.
        SizeError: it is another graph at other sizes.
        InputError: it cannot be read.
    """
    model, data = parse_onnx(path)
    if not DynamicDimensions.of(_own_inputs(model)):
        return read_model(model, dims, str(path), data)
    if model.functions:
        model = inliner.inline_local_functions(model)
    return _Reader(model, data, path).read(dims)


def at_sizes(model: DynamicModel, sizes: Sizes) -> Graph:
    """Return the model at any sizes, as a graph of its own: what types its inputs and outputs have.

    Raises:
        InputError: it is not valid at these.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model.frame)
    return read_in_full(copy, model.dimensions.at(sizes), str(model.path), model.data).graph


class _Reader:
    def __init__(self, frame: onnx.ModelProto, data: Mapping[str, memoryview], path: Path) -> None:
        self._frame = frame
        self._data = data
        self._path = path
        self._dimensions = DynamicDimensions.of(_own_inputs(frame))
        self._initialized = {tensor.name for tensor in frame.graph.initializer}
        self._initialized |= weights_without_data(frame)

    def read(self, dims: Mapping[str, int]) -> DynamicModel:
        check_names(_own_inputs(self._frame), dims, str(self._path))
        base = self._dimensions.base(dims, self._fixed_sizes())
        try:
            return self._read_at(base, frozenset(self._dimensions.chosen(dims)))
        except SizeError as error:
            error.base = self._read(base, ()).graph
            raise

    def _read_at(self, base: Sizes, chosen: frozenset[str]) -> DynamicModel:
        sizes = [base, *self._valid_sizes(base)]
        readings, unfolded = self._read_alike(sizes)
        graphs = [_Sized(at, reading) for at, reading in zip(sizes, readings, strict=True)]
        notes = []
        for at in self._dimensions.ones(sizes[1]):
            try:
                one = _Sized(at, self._read(at, unfolded))
                _check_alike(graphs[0], one)
                graphs.append(one)
            except (InputError, ShapeError) as error:
                notes.append(f"at {text_of(at)} no step was checked: {error}")
        for other in graphs[1:]:
            _check_alike(graphs[0], other)
        computed = self._computed(graphs)
        weights = graphs[0].reading.graph.weights
        alike = [graph.with_inputs(computed, weights) for graph in graphs]
        return DynamicModel(
            self._path,
            self._frame,
            self._data,
            self._dimensions,
            alike[0],
            tuple(alike[1:]),
            chosen,
            tuple(notes),
        )

    def _fixed_sizes(self) -> set[int]:
        """Return the sizes of dimensions that are not dynamic."""
        sizes = {size for tensor in self._frame.graph.initializer for size in tensor.dims}
        for value in _own_inputs(self._frame):
            sizes.update(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        return sizes

    def _valid_sizes(self, base: Sizes) -> list[dict[str, int]]:
        """Return other sizes at which the model is valid, enough to tell expressions apart."""
        count = max(3, len(self._dimensions.symbols) + 2)
        sizes: list[dict[str, int]] = []
        refusal = ""
        for at in self._dimensions.others(base, count * _TRIALS):
            if len(sizes) == count:
                break
            try:
                self._read(at, ())
            except (InputError, ShapeError) as error:
                refusal = f": at {text_of(at)}, {error}"
                continue
            sizes.append(at)
        if len(sizes) < count:
            raise SizeError(f"{self._path}: is not valid at other sizes{refusal}")
        return sizes

    def _read(self, sizes: Sizes, unfolded: Collection[str]) -> Reading:
        copy = onnx.ModelProto()
        copy.CopyFrom(self._frame)
        dims = self._dimensions.at(sizes)
        return read_in_full(copy, dims, str(self._path), self._data, unfolded)

    def _read_alike(self, sizes: Sequence[Sizes]) -> tuple[list[Reading], set[str]]:
        """Read at several sizes, so that what is folded at one of them is folded at all."""
        unfolded: set[str] = set()
        for _ in range(_MOST_ROUNDS):
            readings = [self._read(at, unfolded) for at in sizes]
            names = {name for reading in readings for name in reading.graph.weights}
            uneven = {
                name for name in names if not all(name in reading.constants for reading in readings)
            }
            if not uneven:
                return readings, unfolded
            unfolded |= uneven
        raise SizeError(f"{self._path}: other constants are known at other sizes")

    def _computed(self, graphs: Sequence[_Sized]) -> list[str]:
        """Return the values that are constants at each size, and not the same at all."""
        first = graphs[0].reading.graph
        return [
            name
            for name in first.weights
            if name not in self._initialized
            and not all(_equal(graph.constant(name), graphs[0].constant(name)) for graph in graphs)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Sized:
    """What was read at given sizes."""

    sizes: Sizes
    reading: Reading

    def constant(self, name: str) -> Weight:
        return self.reading.constants[name]

    def with_inputs(self, computed: Sequence[str], weights: Mapping[str, Weight]) -> SizedGraph:
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
        return SizedGraph(self.sizes, graph, values, self.reading.constants)


def _check_alike(one: _Sized, other: _Sized) -> None:
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
    return kind.dtype, kind.rank


def _equal(a: Weight, b: Weight) -> bool:
    if a.type != b.type or a.data is None or b.data is None:
        return False
    return a.data is b.data or bool(np.array_equal(a.data, b.data, equal_nan=a.type.is_float))


def text_of(sizes: Sizes) -> str:
    """Return sizes as they are written after ``--dim``."""
    return ",".join(f"{symbol}={size}" for symbol, size in sizes.items())


def _own_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the graph inputs that are no initializers."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    initialized |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return [value for value in model.graph.input if value.name not in initialized]
