"""All of an ONNX model but its nodes and constants: what the file had, and what is new."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from relational_tensat.formats.onnx_emit import Emitter
from relational_tensat.formats.onnx_metadata import write_metadata
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.formats.onnx_opset import read_imports
from relational_tensat.formats.onnx_origin import Origin
from relational_tensat.formats.onnx_types import from_type_proto, is_carried, to_value_info
from relational_tensat.tensor import Graph, TensorType, ValueType

#: The oldest version of the file format that is written of itself; onnxruntime reads it since 1.10.
_OLDEST_IR_VERSION = 8
#: The first in which constants need not be inputs, too.
CONSTANTS_APART_IR_VERSION = 4
#: The first that has local functions with metadata.
_FUNCTIONS_IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class FrameParts:
    """What is written of a graph.

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
    """Return the model: what it is read from with these parts, or a new one."""
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
    _describe(proto, parts)
    model.functions.extend(_new_functions(model, emitter))
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


def _new_functions(model: onnx.ModelProto, emitter: Emitter) -> list[onnx.FunctionProto]:
    """Return the local functions that the file does not have yet; they need a version of the format."""
    there = {(function.domain, function.name) for function in model.functions}
    if emitter.functions:
        model.ir_version = max(model.ir_version, _FUNCTIONS_IR_VERSION)
    return [function for key, function in emitter.functions.items() if key not in there]


def _keep_called(model: onnx.ModelProto) -> None:
    """Drop the local functions that nothing calls."""
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
