"""Writing a tensor graph as an ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx

from relational_tensat.base.errors import ModelError
from relational_tensat.formats.onnx_emit import Emitter
from relational_tensat.formats.onnx_metadata import write_metadata, written_imports
from relational_tensat.formats.onnx_opaque import decode, restore
from relational_tensat.formats.onnx_opset import (
    DEFAULT_OPSET,
    OLDEST_WRITTEN_OPSET,
    candidates,
    convert_node,
    is_unchanged,
    opset_imports,
)
from relational_tensat.formats.onnx_plan import NamePlan, plan_names
from relational_tensat.formats.onnx_types import UNKNOWN, is_numeric, to_value_info, type_of
from relational_tensat.tensor import (
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    numpy_dtype,
    tensors_of,
)
from relational_tensat.tensor.graph import describe
from relational_tensat.tensor.operators import get_operator

#: The oldest version of the file format that is written; onnxruntime reads it since 1.10.
_OLDEST_IR_VERSION = 8


def write_model(graph: Graph) -> onnx.ModelProto:
    """Return the graph as an ONNX model, unchecked.

    Weights with data become initializers (ConstantOfShape when uniform), those without become
    inputs after the graph's own, and the model's metadata names them.

    Raises:
        ModelError: no version of ONNX's operators has all that the graph's opaque nodes need.
    """
    model, large_weights = write_skeleton(graph)
    for tensor in model.graph.initializer:
        if tensor.name in large_weights:
            tensor.raw_data = large_weights[tensor.name].tobytes()
    return model


def write_skeleton(graph: Graph) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return the graph as an ONNX model, unchecked, and the data of its large initializers.

    These have a placeholder in the model (``onnx_wire``), so nothing large is copied.

    Raises:
        ModelError: as ``write_model``.
    """
    writer = _Writer(graph)
    return writer.write(), writer.large_weights


def is_writable(graph: Graph) -> bool:
    """Whether some version of ONNX's operators has all that the graph's opaque nodes need."""
    own = written_imports(graph.metadata).get("", DEFAULT_OPSET)
    if own >= OLDEST_WRITTEN_OPSET:  # and what was read can be written as it was
        return True
    try:
        _choose_imports(graph)
    except ModelError:
        return False
    return True


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._plan: NamePlan = plan_names(graph)
        self._imports = _choose_imports(graph)
        self._emitter = Emitter(self._imports[""], self._plan.fresh)
        self._value_infos: list[onnx.ValueInfoProto] = []

    @property
    def large_weights(self) -> dict[str, Array]:
        return self._emitter.large_weights

    def write(self) -> onnx.ModelProto:
        graph, names = self._graph, self._plan.names
        typeless = {}
        stored = _quantized_operands(graph)
        for value in self._plan.used_weights:
            weight = graph.weights[value]
            if weight.data is None:
                typeless[names[value]] = weight.type
            else:
                self._emitter.weight(
                    names[value], weight.data, weight.type.dtype, may_be_node=value not in stored
                )
        for node in graph.nodes:
            if node.op == "opaque":
                self._write_opaque(node)
            elif node.op == "fill":
                self._write_fill(node)
            elif node.op not in ("noop", "part"):  # those only group values; the plan knows them
                self._write_operator(node)
        for name, value in self._plan.copies:
            self._emitter.emit("Identity", [value], [name])
        inputs = {names[value]: kind for value, kind in graph.inputs.items()} | typeless
        outputs = zip(self._plan.outputs, graph.output_types(), strict=True)
        proto = onnx.helper.make_graph(
            self._emitter.nodes,
            graph.name or "graph",
            [to_value_info(name, kind) for name, kind in inputs.items()],
            [to_value_info(name, kind) for name, kind in outputs],
            self._emitter.initializers,
            value_info=self._value_infos,
        )
        model = onnx.helper.make_model(proto, opset_imports=opset_imports(self._imports))
        own_domain = onnx.helper.make_opsetid("", self._imports[""])
        oldest = onnx.helper.find_min_ir_version_for([own_domain])
        model.ir_version = max(_OLDEST_IR_VERSION, oldest)
        write_metadata(model, graph.metadata, typeless)
        return model

    def _write_fill(self, node: Node) -> None:
        """Write a constant under its own name: subgraphs need to see that sizes and axes are known."""
        kind = tensors_of(self._graph.types[node.outputs[0]])[0]
        value = np.asarray(node.attrs["value"]).astype(numpy_dtype(kind.dtype))
        name = self._plan.names[node.outputs[0]]
        self._emitter.weight(name, np.broadcast_to(value, kind.shape), kind.dtype)

    def _write_operator(self, node: Node) -> None:
        operator = get_operator(node.op)
        types = self._graph.types
        outputs = [self._plan.names[value] for value in node.outputs]
        result: ValueType = types[node.outputs[0]]
        if operator.multi_output:
            result = tuple(part for value in node.outputs for part in tensors_of(types[value]))
        self._emitter.begin(outputs[0])
        results = operator.to_onnx(
            self._inputs(node),
            tuple(types[value] for value in node.inputs),
            result,
            operator.normalize(node.attrs),
            self._emitter,
        )
        self._emitter.finish(results, outputs, node.name)

    def _write_opaque(self, node: Node) -> None:
        nodes = opaque_nodes(self._graph, node, self._imports)
        if nodes is None:
            raise _unwritable(node, self._imports[""])
        outputs = [self._plan.names[value] for value in node.outputs]
        if (tensor := _exotic_tensor(nodes)) is not None:
            tensor.name = outputs[0]
            self._emitter.initializers.append(tensor)
            return
        restore(nodes, self._inputs(node), outputs, self._plan.reserved, self._plan.fresh)
        if node.name:
            nodes[-1].name = node.name
        self._emitter.nodes += nodes
        if node.attrs["domain"]:  # ONNX cannot infer these types when the model is read again
            types = _tensor_types(self._graph, node.outputs)
            self._value_infos += [
                to_value_info(name, kind)
                for name, kind in zip(outputs, types, strict=True)
                if name not in self._plan.outputs and kind != UNKNOWN
            ]

    def _inputs(self, node: Node) -> list[str]:
        """Return the names of a node's operands; a tuple has as many as it has parts."""
        parts = self._plan.parts
        return [self._plan.names[part] for value in node.inputs for part in parts[value]]


def _quantized_operands(graph: Graph) -> set[str]:
    """Return what is quantized or dequantized, and by what: runtimes look for initializers there."""
    quantizing = (
        node
        for node in graph.nodes
        if node.op == "quantize" or get_operator(node.op).unpacks(node.attrs)
    )
    return {name for node in quantizing for name in node.inputs}


def _exotic_tensor(nodes: Sequence[onnx.NodeProto]) -> onnx.TensorProto | None:
    """Return the tensor of a constant that no weight can hold (4-bit integers, strings), if it is one."""
    node = nodes[0]
    if node.op_type != "Constant" or node.domain or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.type != onnx.AttributeProto.TENSOR or is_numeric(type_of(attribute.t)):
        return None
    tensor = onnx.TensorProto()
    tensor.CopyFrom(attribute.t)
    return tensor


def opaque_nodes(graph: Graph, node: Node, imports: dict[str, int]) -> list[onnx.NodeProto] | None:
    """Return the ONNX nodes, with indexed names, of an opaque node; None if there are none.

    It is the payload's node where it means the same in the version of the default operator set
    that is written, else what ONNX's version converter makes of it.
    """
    proto = decode(cast(str, node.attrs["payload"]))
    own_imports = {**imports, cast(str, node.attrs["domain"]): cast(int, node.attrs["opset"])}
    version = imports[""]
    if node.attrs["domain"] or is_unchanged(proto, own_imports[""], version):
        return [proto]
    kinds = enumerate(_tensor_types(graph, node.inputs))
    results = enumerate(_tensor_types(graph, node.outputs))
    types = {f"i{index}": kind for index, kind in kinds}
    types |= {f"o{index}": kind for index, kind in results}
    return convert_node(proto, types, own_imports, version)


def _tensor_types(graph: Graph, values: Sequence[str]) -> list[TensorType]:
    return [part for value in values for part in tensors_of(graph.types[value])]


def _choose_imports(graph: Graph) -> dict[str, int]:
    """Return the operator set versions in which all of the graph can be written.

    The default set's is the model's own, or the first in which every operator is one node, if that
    is later: norms that took many nodes to spell and were recognised shall not be spelled again.
    """
    opaque = [node for node in graph.nodes if node.op == "opaque"]
    imports = written_imports(graph.metadata)
    versions: list[int] = []
    for node in opaque:
        domain, version = cast(str, node.attrs["domain"]), cast(int, node.attrs["opset"])
        if domain:
            imports[domain] = max(version, imports.get(domain, 0))
        else:
            versions.append(version)
    own = imports.get("", max(versions, default=DEFAULT_OPSET))
    preferred = max([own, *(get_operator(node.op).onnx_since for node in graph.nodes)])
    refused: list[ModelError] = []
    versions = [*candidates(preferred)]
    if all(node.op in ("opaque", "noop", "part") for node in graph.nodes):
        versions.append(own)  # what no later version has stays as it was
    for version in versions:
        imports[""] = version
        failed = next((item for item in opaque if opaque_nodes(graph, item, imports) is None), None)
        if failed is None:
            return imports
        refused.append(_unwritable(failed, version))
    raise refused[0]


def _unwritable(node: Node, version: int) -> ModelError:
    return ModelError(
        f"{describe(node)}: the ONNX operator {node.attrs['op_type']} of version"
        f" {node.attrs['opset']} has no form in version {version} of the operator set"
    )
