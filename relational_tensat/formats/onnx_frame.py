"""All of an ONNX model but its nodes and constants: the file's parts, and the new ones.

Values have the names that they have in the file, where that can be. How large a model is, and in which
versions it is written, is said of the model as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import onnx

from relational_tensat.formats.onnx_emit import Emitter
from relational_tensat.formats.onnx_external import external_locations, map_file, read_skeleton
from relational_tensat.formats.onnx_metadata import read_imports, write_metadata, written_outputs
from relational_tensat.formats.onnx_names import FreshNames, all_names, all_nodes, subgraphs
from relational_tensat.formats.onnx_opaque import decode
from relational_tensat.formats.onnx_origin import Origin
from relational_tensat.formats.onnx_types import (
    from_type_proto,
    is_carried,
    is_fixed,
    to_value_info,
)
from relational_tensat.tensor import Graph, TensorType, ValueType
from relational_tensat.tensor.types import Array


@dataclass(frozen=True, slots=True)
class NamePlan:
    """Names for ONNX.

    Attributes:
        parts: the tensors that each value consists of: itself, or the parts of a tuple.
        names: the ONNX name of each tensor.
        outputs: the ONNX names of the model's outputs, in order.
        copies: (new name, name) where an output needs a further name.
        used_weights: the weights that nodes or outputs use, in order.
        reserved: all names of the ONNX graph; values inside subgraphs must have others.
        fresh: gives further names.
    """

    parts: dict[str, tuple[str, ...]]
    names: dict[str, str]
    outputs: list[str]
    copies: list[tuple[str, str]]
    used_weights: list[str]
    reserved: set[str]
    fresh: FreshNames


def plan_names(graph: Graph) -> NamePlan:
    """Decide all names of a graph's ONNX form.

    Inputs keep their names. Outputs have those that the model was read with, or else those of their
    tensors. All others keep theirs unless an output takes it.
    """
    parts = _parts(graph)
    slots = [part for value in graph.outputs for part in parts[value]]
    used_tensors = {part for node in graph.nodes for value in node.inputs for part in parts[value]}
    used_tensors.update(slots)
    weights = [value for value in graph.weights if value in used_tensors]
    output_names = written_outputs(graph.metadata)
    if len(output_names) != len(slots) or len(set(output_names)) != len(output_names):
        output_names = slots
    fresh = FreshNames({*graph.types, *output_names, *_inner_names(graph)})
    fixed = [*graph.inputs, *(value for value in weights if graph.weights[value].data is None)]
    names = {value: value for value in fixed}
    reserved = set(fixed)
    outputs, copies = _name_outputs(slots, output_names, names, reserved, fresh)
    tensors = [*weights, *(part for node in graph.nodes for part in node.outputs)]
    for value in tensors:
        if value not in names:
            names[value] = fresh.new(value) if value in reserved else value
            reserved.add(names[value])
    resolved = [(name, names[value]) for name, value in copies]
    return NamePlan(parts, names, outputs, resolved, weights, reserved, fresh)


def _name_outputs(
    slots: list[str],
    output_names: list[str],
    names: dict[str, str],
    reserved: set[str],
    fresh: FreshNames,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Name the outputs; return their names, and (name, tensor) for those that must be copies."""
    outputs: list[str] = []
    copies: list[tuple[str, str]] = []
    for value, name in zip(slots, output_names, strict=True):
        if value not in names and name not in reserved:
            names[value] = name
        elif names.get(value) != name or name in outputs:
            name = fresh.new(name) if name in reserved else name
            copies.append((name, value))
        outputs.append(name)
        reserved.add(name)
    return outputs, copies


def _parts(graph: Graph) -> dict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {
        value: (value,) for value in (*graph.inputs, *graph.weights)
    }
    for node in graph.nodes:
        if node.op == "noop":
            own = tuple(part for value in node.inputs for part in parts[value])
            parts[node.outputs[0]] = own
        elif node.op == "part":
            parts[node.outputs[0]] = (parts[node.inputs[0]][cast(int, node.attrs["index"])],)
        else:
            parts.update({value: (value,) for value in node.outputs})
    return parts


def _inner_names(graph: Graph) -> set[str]:
    """Return the names that the subgraphs of opaque nodes define."""
    names: set[str] = set()
    for node in graph.nodes:
        if node.op == "opaque":
            for inner in subgraphs(decode(cast(str, node.attrs["payload"]))):
                names |= all_names(inner)
    return names


#: The oldest version of the file format that is written of itself; onnxruntime reads it since 1.10.
_OLDEST_IR_VERSION = 8
#: The first in which constants need not be inputs, too.
CONSTANTS_APART_IR_VERSION = 4
#: The first that has local functions with metadata.
_FUNCTIONS_IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class FrameParts:
    """The parts of a graph that are written.

    Attributes:
        inputs, outputs: the types of the model's, by name, in order.
        typeless: those of the inputs that are weights without data.
        emitter: has the nodes and constants.
        types: of all values, by name.
        value_infos: types that ONNX cannot infer.
        imports: versions of operator sets, by domain.
    """

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    typeless: Collection[str]
    emitter: Emitter
    types: Mapping[str, ValueType]
    value_infos: Sequence[onnx.ValueInfoProto]
    imports: Mapping[str, int]


def frame(graph: Graph, origin: Origin | None, parts: FrameParts) -> onnx.ModelProto:
    """Return the model: the file's model with these parts, or a new one."""
    model = onnx.ModelProto(ir_version=_OLDEST_IR_VERSION)
    if origin is None:
        model.graph.name = graph.name or "graph"
    else:
        model.CopyFrom(origin.model)
    proto, emitter = model.graph, parts.emitter
    inputs = _declared(proto.input, parts.inputs)
    outputs = _declared(proto.output, parts.outputs)
    proto.ClearField("input")
    proto.input.extend(inputs)
    proto.ClearField("output")
    proto.output.extend(outputs)
    proto.node.extend(emitter.nodes)
    proto.initializer.extend(emitter.initializers)
    proto.sparse_initializer.extend(emitter.sparse_initializers)
    for default in () if origin is None else origin.defaults:
        if isinstance(default, onnx.SparseTensorProto):
            proto.sparse_initializer.append(default)
        else:
            proto.initializer.append(default)
    _describe(proto, parts)
    there = {(function.domain, function.name) for function in model.functions}
    if emitter.functions:  # they need a version of the format
        model.ir_version = max(model.ir_version, _FUNCTIONS_IR_VERSION)
    model.functions.extend(
        [function for key, function in emitter.functions.items() if key not in there]
    )
    own_domains = dict.fromkeys([*emitter.domains, *(domain for domain, _ in emitter.functions)], 1)
    _import(model, {**own_domains, **parts.imports})
    _keep_called(model)
    write_metadata(model, graph.metadata, parts.typeless)
    return model


def _declared(
    file_values: Iterable[onnx.ValueInfoProto], types: Mapping[str, TensorType]
) -> list[onnx.ValueInfoProto]:
    """Return the declarations of values: the file's where it has one."""
    declared = {value.name: value for value in file_values}
    return [
        declared[name] if name in declared else to_value_info(name, kind)
        for name, kind in types.items()
    ]


def _describe(proto: onnx.GraphProto, parts: FrameParts) -> None:
    """Keep the types and annotations of values that are still there, and add new ones."""
    nodes, declared = parts.emitter.nodes, {*parts.inputs, *parts.outputs}
    computed = {name for node in nodes for name in node.output} - declared
    constants = {tensor.name for tensor in parts.emitter.initializers}
    kept = [
        value
        for value in proto.value_info
        if value.name in computed and _is_of_type(value, parts.types.get(value.name))
    ]
    names = {value.name for value in kept}
    kept += [value for value in parts.value_infos if value.name not in names]
    proto.ClearField("value_info")
    proto.value_info.extend(kept)
    there = computed | constants | declared
    annotations = [item for item in proto.quantization_annotation if item.tensor_name in there]
    proto.ClearField("quantization_annotation")
    proto.quantization_annotation.extend(annotations)


def _is_of_type(value: onnx.ValueInfoProto, kind: ValueType | None) -> bool:
    declared = from_type_proto(value.type)
    return kind is None or declared is None or is_carried(declared) or declared == kind


def _import(model: onnx.ModelProto, imports: Mapping[str, int]) -> None:
    """Name the versions of operator sets, and that of the file format which they need."""
    own = read_imports(model.opset_import)
    for item in model.opset_import:
        if item.domain in ("", "ai.onnx"):
            item.version = imports[""]
    for domain in sorted(imports.keys() - own.keys()):
        model.opset_import.append(onnx.helper.make_opsetid(domain, imports[domain]))
    if own.get("") != imports[""]:
        oldest = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", imports[""])])
        model.ir_version = max(model.ir_version, oldest)
    model.ir_version = max(model.ir_version, CONSTANTS_APART_IR_VERSION)


def _keep_called(model: onnx.ModelProto) -> None:
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    called: dict[tuple[str, str, str], None] = {}
    stack = list(model.graph.node)
    while stack:
        for node in all_nodes([stack.pop()]):
            key = (node.domain, node.op_type, node.overload)
            if key in functions and key not in called:
                called[key] = None
                stack += functions[key].node
    kept = [function for key, function in functions.items() if key in called]
    model.ClearField("functions")
    model.functions.extend(kept)


@dataclass(frozen=True, slots=True)
class FileFigures:
    """Figures of an ONNX model.

    Attributes:
        operators: how many nodes each operator type has, subgraphs included.
        bytes: of the file, and of the files that its tensors are in.
        opset: the version of the default operator set; 0 if it has none.
        ir_version: that of the file format.
        default_inputs: those with a value that a caller may replace: initializers, too.
    """

    operators: Mapping[str, int]
    bytes: int
    opset: int
    ir_version: int
    default_inputs: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes the model has, subgraphs included."""
        return sum(self.operators.values())


def figures_of_file(path: Path) -> FileFigures:
    """Return the figures of a valid model's file.

    Raises:
        InputError: it cannot be read.
    """
    model, _ = read_skeleton(map_file(path))
    files = [path, *(path.parent / name for name in external_locations(path))]
    return _figures(model, sum(file.stat().st_size for file in files))


def figures_of_skeleton(model: onnx.ModelProto, large_weights: Iterable[Array]) -> FileFigures:
    """Return the figures of a model that was not saved yet."""
    return _figures(model, model.ByteSize() + sum(weight.nbytes for weight in large_weights))


def _figures(model: onnx.ModelProto, n_bytes: int) -> FileFigures:
    operators = dict(Counter(node.op_type for node in all_nodes(model.graph.node)))
    opset = read_imports(model.opset_import).get("", 0)
    return FileFigures(operators, n_bytes, opset, model.ir_version, default_inputs(model))


def is_dynamic(model: onnx.ModelProto) -> bool:
    """Whether an input without a value has a dimension of no fixed size."""
    given = {tensor.name for tensor in model.graph.initializer}
    given |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return any(
        not is_fixed(dim)
        for value in model.graph.input
        if value.name not in given
        for dim in value.type.tensor_type.shape.dim
    )


def default_inputs(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the inputs that have a value; in the first versions all constants were inputs, too."""
    if model.ir_version < CONSTANTS_APART_IR_VERSION:
        return ()
    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return tuple(value.name for value in model.graph.input if value.name in constants)
