"""Reading ONNX models: from a file or message to a checked tensor graph.

Local functions are put in the place of their calls; first it is counted how many nodes that makes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types
from onnx import checker, inliner

from relational_tensat.base.errors import InputError, ModelError
from relational_tensat.base.folders import is_utf8, utf8_name
from relational_tensat.formats.arrays import compact
from relational_tensat.formats.dynamic.dimensions import fix_dims
from relational_tensat.formats.onnx_external import (
    has_external_data,
    load_external_data,
    map_file,
    mapped_array,
    missing_data,
    read_skeleton,
    with_weights_as_inputs,
)
from relational_tensat.formats.onnx_frame import default_inputs
from relational_tensat.formats.onnx_metadata import (
    checkable,
    mark_beside,
    read_imports,
    read_metadata,
    weights_without_data,
)
from relational_tensat.formats.onnx_names import all_names, all_nodes, names_values
from relational_tensat.formats.onnx_node import condense
from relational_tensat.formats.onnx_nodes import NodeReader
from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import (
    SourceNode,
    file_tensors,
    frame_of,
    make_origin,
    source_nodes,
)
from relational_tensat.formats.onnx_types import (
    TensorDataError,
    array_of,
    dense_weight,
    from_type_proto,
    is_numeric,
    type_of,
)
from relational_tensat.formats.onnx_versions import is_writable
from relational_tensat.formats.onnx_wire import WireError
from relational_tensat.tensor import Graph, TensorType, Weight, build_graph

#: A model of few bytes may have more than can be counted: each function calls the next one twice.
MOST_NODES = 1_000_000

_Key = tuple[str, str, str]


def check_calls(model: onnx.ModelProto, where: str) -> None:
    """Check that a model has an end, and so many nodes as can be read, before anything goes into its calls.

    Raises:
        ModelError: it has more, or a function calls itself.
    """
    if not model.functions:
        return
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    counts: dict[_Key, int] = {}
    for key in _callees_first(functions, where):
        counts[key] = _count(functions[key].node, counts)
    total = _count(model.graph.node, counts)
    if total > MOST_NODES:
        shown = (
            f"{total:,}"
            if total < 1e15
            else f"{float(total):.1e}"
            if total < 1e300
            else "countless"
        )
        raise ModelError(
            f"{where}: {shown} nodes with its local functions in place of their calls, "
            f"the limit is {MOST_NODES:,}"
        )


def _callees_first(functions: dict[_Key, onnx.FunctionProto], where: str) -> list[_Key]:
    """Return the functions in an order in which each comes after those that it calls."""
    done: dict[_Key, None] = {}
    for first in functions:
        path: list[tuple[_Key, list[_Key]]] = [(first, _called(functions, first))]
        while path:
            key, callees = path[-1]
            if key in done or not callees:
                done[key] = None
                path.pop()
                continue
            callee = callees.pop()
            if any(callee == before for before, _ in path):
                raise ModelError(f"{where}: the local function {callee[1]!r} calls itself")
            if callee not in done:
                path.append((callee, _called(functions, callee)))
    return list(done)


def _called(functions: dict[_Key, onnx.FunctionProto], key: _Key) -> list[_Key]:
    return list(dict.fromkeys(_calls(functions[key].node, functions)))


def _calls(
    nodes: Iterable[onnx.NodeProto], functions: dict[_Key, onnx.FunctionProto]
) -> Iterable[_Key]:
    for node in nodes:
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            yield key
        for body in _bodies(node):
            yield from _calls(body.node, functions)


def _count(nodes: Iterable[onnx.NodeProto], counts: dict[_Key, int]) -> int:
    return sum(
        counts.get((node.domain, node.op_type, node.overload), 1)
        + sum(_count(body.node, counts) for body in _bodies(node))
        for node in nodes
    )


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else a.graphs)]


#: Protobuf serializes no more than this; larger models are checked by path.
_MAX_MESSAGE_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A model that was read.

    Attributes:
        constants: all values that are known before inference, those too that were only needed to read
            the graph: shapes, axes and what they are computed from.
        choices: conditions that were known, so that one branch was read in place of the choice.
    """

    graph: Graph
    constants: Mapping[str, Weight]
    choices: Mapping[str, bool]


def read_onnx(path: Path, dims: Mapping[str, int], *, keep_overridable: bool = False) -> Graph:
    """Read a graph from an ONNX file, with its external data beside it.

    Args:
        keep_overridable: inputs with a default value stay inputs with one.

    Raises:
        UsageError: ``dims`` names a dimension that the model lacks.
        InputError: the file cannot be read, or a dynamic dimension is not fixed.
        ModelError: it is no valid ONNX model.
    """
    model, data = parse_onnx(path)
    overridable = default_inputs(model) if keep_overridable else ()
    return read_in_full(model, dims, str(path), data, overridable=overridable).graph


def parse_onnx(path: Path) -> tuple[onnx.ModelProto, dict[str, memoryview]]:
    """Return the valid model of an ONNX file, and the data of initializers that have a placeholder in it.

    Raises:
        InputError: the file cannot be read.
        ModelError: it is no valid ONNX model.
    """
    where = str(path)
    try:
        model, data = read_skeleton(map_file(path))
    except DecodeError:
        raise ModelError(f"{where}: not an ONNX model, or truncated") from None
    except WireError as error:
        raise ModelError(f"{where}: not an ONNX model, or truncated: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise ModelError(f"{where}: not an ONNX model: it has no graph or no operator set version")
    check_calls(model, where)
    try:
        name = missing_data(model, path.parent)
    except ValueError as error:
        raise ModelError(f"{where}: the place of its weights: {error}") from None
    if name:
        raise ModelError(f"{where}: its weights are in {name!r}, a file that is missing beside it")
    try:
        if has_external_data(model):
            if checkable(model) is model:
                checker.check_model(utf8_name(path))  # it knows the folder, and where files may be
                data |= load_external_data(model, path.parent)
            else:
                data |= load_external_data(model, path.parent)
                checker.check_model(checkable(with_weights_as_inputs(model, data)))
            mark_beside(model)
        else:
            checker.check_model(checkable(with_weights_as_inputs(model, data)))
    except (checker.ValidationError, OSError, ValueError) as error:
        raise ModelError(f"{where}: not a valid ONNX model: {condense(str(error))}") from None
    _check_texts(model, where)
    return model, data


def check_model(model: onnx.ModelProto, where: str) -> None:
    """Check a model in memory.

    Raises:
        ModelError: it is not valid.
    """
    check_calls(model, where)
    if model.ByteSize() > _MAX_MESSAGE_BYTES:
        raise ModelError(f"{where}: larger than 2 GB; load it from a file with external data")
    try:
        checker.check_model(checkable(model))
    except checker.ValidationError as error:
        raise ModelError(f"{where}: not a valid ONNX model: {condense(str(error))}") from None
    _check_texts(model, where)


def read_model(model: onnx.ModelProto, dims: Mapping[str, int], where: str) -> Graph:
    """Return the graph of a valid model whose external data is loaded.

    Raises:
        UsageError, InputError, ModelError: as ``read_onnx``.
    """
    return read_in_full(model, dims, where, {}).graph


def read_in_full(
    model: onnx.ModelProto,
    dims: Mapping[str, int],
    where: str,
    data: Mapping[str, memoryview],
    overridable: Collection[str] = (),
) -> Reading:
    """Return the graph, and all that became known while it was read.

    Args:
        data: of the initializers that have a placeholder in the model, by name.
        overridable: initializers that are inputs of the graph.

    Raises:
        UsageError, InputError, ModelError: as ``read_onnx``.
    """
    return OnnxSource(model, where, data, overridable).read(dims)


class OnnxSource:
    """A valid model, to be read at one size of its dynamic dimensions or several, and not changed.

    Parts that are the same at all sizes are made once.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        where: str,
        data: Mapping[str, memoryview],
        overridable: Collection[str] = (),
    ) -> None:
        """Read what is known at any sizes; see ``read_in_full``.

        Raises:
            ModelError: a constant is malformed, or the operators are newer than the known ones.
        """
        self._model, self.where, self._data = model, where, data
        self._overridable = frozenset(overridable)
        self._inlined = inliner.inline_local_functions(model) if model.functions else model
        graph = self._inlined.graph
        self._imports = read_imports(self._inlined.opset_import)
        newest = onnx.defs.onnx_opset_version()
        if self._imports.get("", 0) > newest:
            raise ModelError(
                f"{where}: operator set version {self._imports['']} is newer than the installed onnx"
                f" {onnx.__version__} knows ({newest})"
            )
        self._initialized = {tensor.name for tensor in model.graph.initializer}
        self._initialized |= {tensor.values.name for tensor in model.graph.sparse_initializer}
        self._initialized -= self._overridable
        try:
            exotic = self._read_weights(graph)
        except TensorDataError as error:
            raise ModelError(f"{where}: {error}") from None
        self._outputs = [value.name for value in graph.output]
        sources = [SourceNode(node, node) for node in exotic]
        sources += source_nodes(model.graph.node, graph.node)
        self._sources = _needed(sources, self._outputs)
        self._nodes = [source.node for source in self._sources]
        self._used = {*self._outputs, *(name for n in self._nodes for name in input_names(n))}
        self._names = all_names(graph)
        self._tensors = file_tensors(model.graph, self._weights)

    def _read_weights(self, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        """Read the initializers; return those that no weight can hold, as nodes.

        Raises:
            TensorDataError: one is no tensor.
        """
        self._weights: dict[str, Weight] = {}
        exotic: list[onnx.NodeProto] = []
        for tensor in graph.initializer:
            name = tensor.name
            if name in self._overridable:
                continue
            if name in self._data:
                array = compact(mapped_array(tensor, self._data[name]))
                self._weights[name] = Weight(type_of(tensor), array)
            elif is_numeric(type_of(tensor)):
                self._weights[name] = Weight(type_of(tensor), array_of(tensor))
            else:  # strings, complex numbers, 4 and 8 bit floats: an opaque constant carries them
                exotic.append(onnx.helper.make_node("Constant", [], [name], value=tensor))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in self._overridable:
                continue
            if (weight := dense_weight(sparse)) is not None:
                self._weights[name] = weight
            else:
                exotic.append(onnx.helper.make_node("Constant", [], [name], sparse_value=sparse))
        return exotic

    def read(self, dims: Mapping[str, int], unfolded: Collection[str] = ()) -> Reading:
        """Return the graph at some sizes, and all that became known; see ``read_in_full``.

        Raises:
            UsageError, InputError, ModelError: as ``read_onnx``.
        """
        frame = self._sized(self._model, dims)
        graph = (frame if self._inlined is self._model else self._sized(self._inlined, dims)).graph
        given = [value for value in graph.input if value.name not in self._initialized]
        without_data = weights_without_data(self._inlined)
        inputs = {value.name: _input_type(value, self.where) for value in given}
        weights = {name: Weight(kind) for name, kind in inputs.items() if name in without_data}
        inputs = {name: kind for name, kind in inputs.items() if name not in weights}
        weights |= self._weights
        declared = {value.name: value for value in (*graph.value_info, *graph.output)}

        def read(*, as_they_are: bool) -> Reading:
            reader = NodeReader(
                self._names, self._imports, inputs, weights, self.where, declared,
                as_they_are=as_they_are, unfolded=unfolded,
            )  # fmt: skip
            reader.read_all(self._nodes, self._used)
            nodes, used_weights = reader.result(self._outputs)
            metadata = read_metadata(self._inlined)
            operator_graph = build_graph(
                graph.name, inputs, used_weights, nodes, self._outputs, metadata, where=self.where
            )
            file = self._model.graph
            defaults = [
                _with_data(t, self._data) for t in file.initializer if t.name in self._overridable
            ]
            sparse = [t for t in file.sparse_initializer if t.values.name in self._overridable]
            origin = make_origin(
                frame, self._tensors, self._sources, reader.made, reader.constants, operator_graph
            )
            origin = replace(origin, defaults=(*defaults, *sparse))
            return Reading(replace(operator_graph, origin=origin), reader.constants, reader.choices)

        try:
            if any(map(names_values, self._nodes)):  # what they name must stay
                return read(as_they_are=True)
            reading = read(as_they_are=False)
            return reading if is_writable(reading.graph) else read(as_they_are=True)
        except TensorDataError as error:
            raise ModelError(f"{self.where}: {error}") from None

    def _sized(self, model: onnx.ModelProto, dims: Mapping[str, int]) -> onnx.ModelProto:
        """Return a model without its nodes and constants, with the sizes of its dynamic dimensions."""
        frame = frame_of(model)
        graph = frame.graph
        inputs = [value for value in graph.input if value.name not in self._initialized]
        fix_dims(inputs, [*graph.value_info, *graph.output], dims, self.where)
        return frame


def _with_data(tensor: onnx.TensorProto, data: Mapping[str, memoryview]) -> onnx.TensorProto:
    """Return an initializer with its data, where it has a placeholder."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    if tensor.name in data:
        copy.raw_data = bytes(data[tensor.name])
    return copy


def _input_type(value: onnx.ValueInfoProto, where: str) -> TensorType:
    kind = from_type_proto(value.type)
    if kind is None:
        raise InputError(f"{where}: input {value.name!r} has no type")
    return kind


def _needed(sources: list[SourceNode], outputs: list[str]) -> list[SourceNode]:
    values, needed_sources = set(outputs), []
    for source in reversed(sources):
        if values.intersection(source.node.output):
            values.update(input_names(source.node))
            needed_sources.append(source)
    return needed_sources[::-1]


def _check_texts(model: onnx.ModelProto, where: str) -> None:
    """Refuse names that are no UTF-8: protobuf reads them, and writes none."""
    graph = model.graph
    texts: list[str | bytes] = [graph.name, graph.doc_string, *read_metadata(model).values()]
    values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    texts += [value.name for value in values]
    for node in all_nodes(graph.node):
        texts += [node.name, node.op_type, node.domain, *node.input, *node.output]
    for text in texts:
        if isinstance(text, bytes) or not is_utf8(text):
            raise ModelError(f"{where}: the text {text[:40]!r} is not UTF-8")
