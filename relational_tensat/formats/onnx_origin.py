"""The spelling of each application in an ONNX file, beside the graph's meaning.

It is read with the graph (``Graph.origin``) and written back wherever a graph still has an application:
node names, attributes as they were given, declared types, documentation, versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import onnx

from relational_tensat.tensor import Array, Graph, Node, Weight

#: A constant as a file has it.
FileTensor: TypeAlias = onnx.TensorProto | onnx.SparseTensorProto

_Message = TypeVar("_Message", onnx.NodeProto, onnx.SparseTensorProto)

#: Smaller ones are read again with a model; larger ones are mapped.
_COMPARED_BYTES = 1 << 20
#: Tensors with more raw data are kept without it, or what stands for it: the graph's weight has it.
_LONG_BYTES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """An ONNX node, or a call of a local function, and what it became in the graph.

    Attributes:
        node: as it is in the file.
        place: where it is in the file; units are written in this order.
        inner: the values of the graph that were made of it.
    """

    node: onnx.NodeProto
    place: int
    inner: frozenset[str]


@dataclass(frozen=True, eq=False)
class Origin:
    """The spelling of a graph that was read from an ONNX model.

    Attributes:
        model: the model without its nodes and constants, dynamic dimensions fixed.
        tensors: its constants by name; long ones without data.
        known: all values that are known before inference, also those that only decide shapes.
        units: by each of the outputs; calls of local functions are in ``calls``, and the nodes that
            these stand for in ``units``.
        graph: as it was read.
        defaults: values of inputs that a caller may leave out.
    """

    model: onnx.ModelProto
    tensors: Mapping[str, FileTensor]
    known: Mapping[str, Weight]
    units: Mapping[str, Unit]
    calls: Mapping[str, Unit]
    graph: Graph
    defaults: tuple[FileTensor, ...] = ()

    @cached_property
    def producers(self) -> dict[str, Node]:
        """The graph's nodes by their outputs."""
        return {name: node for node in self.graph.nodes for name in node.outputs}

    def fits(self, graph: Graph) -> bool:
        """Whether the weights that a graph has in common with the original have the same data."""
        return all(
            is_same(weight.data, self.known[name].data)
            for name, weight in graph.weights.items()
            if name in self.known
        )

    @property
    def imports(self) -> dict[str, int]:
        """The versions of operator sets, by domain as the file spells it."""
        return {item.domain: item.version for item in self.model.opset_import}


def is_same(a: Array | None, b: Array | None) -> bool:
    """Whether two arrays are one, also where both are views of it; small ones, whether they are equal."""
    if a is b or a is None or b is None:
        return a is b
    if (a.dtype, a.shape, a.strides) != (b.dtype, b.shape, b.strides):
        return False
    is_view = a.__array_interface__["data"] == b.__array_interface__["data"]
    return is_view or (a.nbytes < _COMPARED_BYTES and bool(a.tobytes() == b.tobytes()))


def origin_of(graph: Graph) -> Origin | None:
    """Return the spelling that a graph was read with, if it is an ONNX model's and still applies."""
    origin = graph.origin
    return origin if isinstance(origin, Origin) and origin.fits(graph) else None


@dataclass(frozen=True)
class SourceNode:
    """A node that is read, and what in the file it is from.

    Attributes:
        node: the node that is read: one of the file, of a local function's body, or one made for a
            constant.
        file_node: the node of the file: the same, or the call that the body is in place of.
        place: where that is in the file; None for a constant.
        in_call: whether it is from the body of a local function.
    """

    node: onnx.NodeProto
    file_node: onnx.NodeProto
    place: int | None = None
    in_call: bool = False

    @cached_property
    def spelling(self) -> onnx.NodeProto:
        """A copy of the node as it is written where it stays; it outlives the model."""
        return _copy(self.node if self.in_call else self.file_node)


def source_nodes(
    file_nodes: Sequence[onnx.NodeProto], inlined: Sequence[onnx.NodeProto]
) -> Iterator[SourceNode]:
    """Yield the nodes of a model whose calls of local functions are inlined, each with what it is from.

    A body takes the place of its call; nodes that are no calls keep their outputs.
    """
    if [*map(_kind, file_nodes)] == [*map(_kind, inlined)]:
        yield from (
            SourceNode(node, file_node, place)
            for place, (node, file_node) in enumerate(zip(inlined, file_nodes, strict=True))
        )
        return
    remaining = iter(inlined)
    for place, file_node in enumerate(file_nodes):
        outputs = {*file_node.output} - {""}
        body: list[onnx.NodeProto] = []
        while outputs:
            body.append(next(remaining))
            outputs.difference_update(body[-1].output)
        is_call = len(body) != 1 or _kind(body[0]) != _kind(file_node)
        yield from (SourceNode(node, file_node, place, is_call) for node in body)


def _kind(node: onnx.NodeProto) -> tuple[str, str]:
    return node.domain, node.op_type


def make_origin(
    frame: onnx.ModelProto,
    tensors: Mapping[str, FileTensor],
    sources: Sequence[SourceNode],
    made: Sequence[Collection[str] | None],
    known: Mapping[str, Weight],
    graph: Graph,
) -> Origin:
    """Return the origin of a graph, which refers to nothing in the messages that it was read from.

    Args:
        frame: see ``frame_of``; with the sizes of its dynamic dimensions.
        tensors: the file's initializers.
        sources: the nodes that were read, in order.
        made: for each of them, the values that were made of it; None where the file's node cannot stay.
        known: the values that are known before inference.
    """
    units: dict[str, Unit] = {}
    calls: dict[str, Unit] = {}
    bodies: dict[int, tuple[onnx.NodeProto, set[str]]] = {}
    for source, values in zip(sources, made, strict=True):
        if source.place is None or values is None or _is_known_constant(source.node, known):
            continue
        unit = Unit(source.spelling, source.place, frozenset(values))
        units.update(dict.fromkeys(filter(None, unit.node.output), unit))
        if source.in_call:
            bodies.setdefault(source.place, (source.file_node, set()))[1].update(values)
    for place, (call, inner) in bodies.items():
        unit = Unit(_copy(call), place, frozenset(inner))
        calls.update(dict.fromkeys(filter(None, call.output), unit))
    tensors = {**tensors, **dict(_constants(sources, known))}
    return Origin(frame, tensors, known, units, calls, graph)


def _is_known_constant(node: onnx.NodeProto, known: Mapping[str, Weight]) -> bool:
    return node.op_type == "Constant" and node.output[0] in known


def _copy(message: _Message) -> _Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def frame_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model without its nodes and constants."""
    frame = onnx.ModelProto()
    parts: tuple[tuple[Any, Any], ...] = ((frame, model), (frame.graph, model.graph))
    for part, whole in parts:
        for descriptor, value in whole.ListFields():
            name = descriptor.name
            if name in ("graph", "node", "initializer", "sparse_initializer"):
                continue
            if isinstance(value, str | bytes | int | float):
                setattr(part, name, value)
            else:
                getattr(part, name).MergeFrom(value)
    return frame


def file_tensors(graph: onnx.GraphProto, known: Mapping[str, Weight]) -> dict[str, FileTensor]:
    """Return a graph's initializers by name; long ones that are known without data."""
    tensors: dict[str, FileTensor] = {
        tensor.name: _short(tensor, tensor.name, known) for tensor in graph.initializer
    }
    return tensors | {tensor.values.name: _copy(tensor) for tensor in graph.sparse_initializer}


def _constants(
    sources: Sequence[SourceNode], known: Mapping[str, Weight]
) -> Iterator[tuple[str, FileTensor]]:
    """Yield the values of ``Constant`` in the file that are known, by name."""
    for source in sources:
        if source.place is not None and _is_known_constant(source.node, known):
            name = source.node.output[0]
            for attribute in source.node.attribute:
                if attribute.name == "value":
                    yield name, _short(attribute.t, name, known)
                elif attribute.name == "sparse_value":
                    yield name, _copy(attribute.sparse_tensor)


def _short(tensor: onnx.TensorProto, name: str, known: Mapping[str, Weight]) -> onnx.TensorProto:
    """Return a copy of a tensor of another name, without its data where that is long and known."""
    short = onnx.TensorProto()
    n_bytes = len(tensor.raw_data) if name in known else 0  # mapped data has a placeholder
    is_placeholder = n_bytes > 0 and n_bytes < known[name].type.nbytes
    if n_bytes <= _LONG_BYTES and not is_placeholder:
        short.CopyFrom(tensor)
    else:
        short.data_type = tensor.data_type
        if tensor.doc_string:
            short.doc_string = tensor.doc_string
        short.dims.extend(tensor.dims)
        short.metadata_props.MergeFrom(tensor.metadata_props)
    short.name = name
    return short
