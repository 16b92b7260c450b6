"""Writing a tensor graph as an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx

from relational_tensat.base.errors import ModelError, UsageError
from relational_tensat.formats.onnx_emit import Emitter, name_slices
from relational_tensat.formats.onnx_external import (
    mapped_array,
    save_skeleton,
    why_invalid,
    with_weights_as_inputs,
)
from relational_tensat.formats.onnx_frame import FrameParts, NamePlan, frame, plan_names
from relational_tensat.formats.onnx_keep import Kept, find_kept, kept_alike
from relational_tensat.formats.onnx_lineage import hand_on
from relational_tensat.formats.onnx_metadata import (
    OLDEST_POSSIBLE_OPSET,
    OLDEST_WRITTEN_OPSET,
    mark_beside,
    take_beside,
    written_imports,
    written_outputs,
)
from relational_tensat.formats.onnx_names import rename_node
from relational_tensat.formats.onnx_opaque import restore
from relational_tensat.formats.onnx_origin import Origin, is_same, origin_of
from relational_tensat.formats.onnx_steps import CyclicError, ReadPlan, ReadStep, plan_steps, unfuse
from relational_tensat.formats.onnx_types import UNKNOWN, is_numeric, to_value_info, type_of
from relational_tensat.formats.onnx_versions import (
    check_older,
    check_opset,
    choose_imports,
    opaque_nodes,
    stays,
    tensor_types,
)
from relational_tensat.tensor import Array, Graph, Node, ValueType, Weight, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import get_operator


def write_model(graph: Graph, opset: int | None = None) -> onnx.ModelProto:
    """Return the graph as an ONNX model, unchecked.

    Parts that the graph has of its file are written as they are there; see ``Origin``.

    Weights with data become initializers (ConstantOfShape when uniform), those without become
    inputs after the graph's own, and the model's metadata names them.

    Args:
        opset: the version of the default operator set; None for the file's, or the next that can be.

    Raises:
        UsageError: that version cannot be written.
        ModelError: no version of ONNX's operators has all that the graph's opaque nodes need.
    """
    model, large_weights = write_skeleton(graph, opset)
    take_beside(model, "")
    for tensor in model.graph.initializer:
        if tensor.name in large_weights:
            tensor.raw_data = large_weights[tensor.name].tobytes()
    return model


def write_skeleton(
    graph: Graph, opset: int | None = None
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return the graph as an ONNX model, unchecked, and the data of its large initializers.

    These have a placeholder in the model (``onnx_wire``), so nothing large is copied.

    Raises:
        UsageError, ModelError: as ``write_model``.
    """
    return write_skeletons([graph], opset)[0]


def write_skeletons(
    graphs: Sequence[Graph], opset: int | None = None
) -> list[tuple[onnx.ModelProto, dict[str, Array]]]:
    """Return a graph that is known at several sizes as it is at each, as ``write_skeleton`` does.

    A node of the file is written as it is there if it is so at all sizes: at size 1, nodes may equal
    another one of the file. Only the first says what the file says of nodes that are replaced.

    Args:
        graphs: the same nodes, with other attributes and types.

    Raises:
        UsageError, ModelError: as ``write_model``.
    """
    check_opset(opset)
    wanted = opset or written_imports(graphs[0].metadata).get("", OLDEST_WRITTEN_OPSET)
    if OLDEST_POSSIBLE_OPSET <= wanted < OLDEST_WRITTEN_OPSET:
        try:
            return _written(_writers(graphs, wanted))
        except ModelError as error:
            if opset is not None:
                raise UsageError(f"opset = {opset}: {error}") from None
    return _written(_writers(graphs, opset))


def _written(writers: Sequence[_Writer]) -> list[tuple[onnx.ModelProto, dict[str, Array]]]:
    return [
        (writer.write(says_all=number == 0), writer.large_weights)
        for number, writer in enumerate(writers)
    ]


def _writers(graphs: Sequence[Graph], opset: int | None) -> list[_Writer]:
    origins = [origin_of(graph) for graph in graphs]
    graphs = [_unfused(graph, origin) for graph, origin in zip(graphs, origins, strict=True)]
    sized = list(zip(graphs, origins, strict=True))
    kept = kept_alike([find_kept(graph, origin) if origin else {} for graph, origin in sized])
    try:
        return [_Writer(*there, own, opset) for there, own in zip(sized, kept, strict=True)]
    except CyclicError:
        return [
            _Writer(graph, origin, _without_calls(own, origin), opset)
            for (graph, origin), own in zip(sized, kept, strict=True)
        ]


def _unfused(graph: Graph, origin: Origin | None) -> Graph:
    return graph if origin is None else unfuse(graph, origin)


def _without_calls(kept: Mapping[str, Kept], origin: Origin | None) -> dict[str, Kept]:
    calls = () if origin is None else origin.calls.values()
    return {name: own for name, own in kept.items() if own.unit not in calls}


class _Writer:
    def __init__(
        self, graph: Graph, origin: Origin | None, kept: Mapping[str, Kept], opset: int | None
    ) -> None:
        self._graph = graph
        self._origin = origin
        self._imports = choose_imports(graph, kept, opset)
        own = written_imports(graph.metadata).get("", 0)
        version = self._imports[""]
        kept = {name: k for name, k in kept.items() if stays(k.unit.node, own, version)}
        units = origin.units if origin else {}
        units = {name: unit for name, unit in units.items() if stays(unit.node, own, version)}
        self._plan: ReadPlan = plan_steps(graph, kept, origin, units)
        self._names: NamePlan = plan_names(graph)
        written = max(self._imports[""], OLDEST_WRITTEN_OPSET)
        functions = origin.model.functions if origin else ()
        self._emitter = Emitter(written, self._names.fresh, functions)
        self._value_infos: list[onnx.ValueInfoProto] = []
        self._quantized = _quantized_operands(graph)
        self._name_others()

    def _name_others(self) -> None:
        """Name what is written of the file beside the graph's values."""
        others = list(self._plan.constants)
        for step in self._plan.steps:
            if step.kept is not None:
                others += [*step.inputs, *step.outputs]
        names, reserved = self._names.names, self._names.reserved
        for value in others:
            if value not in names:
                names[value] = self._names.fresh.new(value) if value in reserved else value
                reserved.add(names[value])
                self._names.fresh.take(names[value])
        for step in self._plan.steps:
            if self._is_alias(step):
                names[step.outputs[0]] = names[step.inputs[0]]

    def _is_alias(self, step: ReadStep) -> bool:
        """Whether a step copies a value that can be taken itself: no output is that copy."""
        return step.is_copy and not any(
            step.outputs[0] in self._names.parts[value] for value in self._graph.outputs
        )

    @property
    def large_weights(self) -> dict[str, Array]:
        return self._emitter.large_weights

    def write(self, *, says_all: bool = True) -> onnx.ModelProto:
        """Return the model.

        Args:
            says_all: whether new nodes say what the file says of those that they replace.
        """
        graph, names = self._graph, self._names.names
        typeless = {}
        for value, weight in self._plan.constants.items():
            if weight.data is None:
                typeless[names[value]] = weight.type
            else:
                self._write_constant(value, weight)
        ends = [len(self._emitter.nodes)]
        for step in self._plan.steps:
            if step.kept is not None:
                if not self._is_alias(step):
                    self._write_kept(step.kept)
            elif step.node is not None:
                self._write_node(step.node)
            ends.append(len(self._emitter.nodes))
        written = [self._emitter.nodes[a:b] for a, b in pairwise(ends)]
        if self._origin is not None and says_all:
            slots = [part for value in graph.outputs for part in self._names.parts[value]]
            in_file = dict(zip(written_outputs(graph.metadata), slots, strict=False))
            hand_on(list(zip(self._plan.steps, written, strict=True)), self._origin, in_file)
        for step, nodes in zip(self._plan.steps, written, strict=True):
            if step.kept is None:
                name_slices(nodes)
        for name, value in self._names.copies:
            self._emitter.emit("Identity", [value], [name])
        _drop_repeated_names(self._emitter.nodes)
        inputs = {names[value]: kind for value, kind in graph.inputs.items()} | typeless
        outputs = dict(zip(self._names.outputs, graph.output_types(), strict=True))
        types = {names[value]: kind for value, kind in graph.types.items() if value in names}
        parts = FrameParts(
            inputs, outputs, typeless, self._emitter, types, self._value_infos, self._imports
        )
        model = frame(graph, self._origin, parts)
        if self._imports[""] < OLDEST_WRITTEN_OPSET:
            new = [
                node
                for step, nodes in zip(self._plan.steps, written, strict=True)
                if step.kept is None and (step.node is None or step.node.op != "opaque")
                for node in nodes
            ]
            check_older(with_weights_as_inputs(model, self.large_weights), new, self._imports[""])
        return model

    def _write_constant(self, value: str, weight: Weight) -> None:
        assert weight.data is not None
        name = self._names.names[value]
        tensor = self._origin.tensors.get(value) if self._origin else None
        known = self._origin.known.get(value) if self._origin else None
        is_as_in_file = known is not None and is_same(known.data, weight.data)
        if isinstance(tensor, onnx.SparseTensorProto) and is_as_in_file:
            self._emitter.file_tensor(name, tensor)
        elif isinstance(tensor, onnx.TensorProto) and is_as_in_file:
            self._emitter.tensor(name, tensor, weight.data, weight.type.dtype)
        else:
            may_be_node = value not in self._quantized
            self._emitter.weight(name, weight.data, weight.type.dtype, may_be_node=may_be_node)

    def _write_kept(self, kept: Kept) -> None:
        names = self._names
        node = onnx.NodeProto()
        node.CopyFrom(kept.unit.node)
        renamed = {
            name: names.names[value]
            for name, value in (*kept.inputs.items(), *kept.outputs.items())
            if names.names[value] != name
        }
        unused = [name for name in node.output if name and name not in kept.outputs]
        renamed |= {name: names.fresh.new(name) for name in unused if name in names.reserved}
        rename_node(node, renamed, names.reserved if renamed else (), names.fresh)
        self._emitter.nodes.append(node)

    def _write_node(self, node: Node) -> None:
        if node.op == "opaque":
            self._write_opaque(node)
        elif node.op == "fill":
            self._write_fill(node)
        elif node.op not in ("noop", "part"):  # those only group values; the plan knows them
            self._write_operator(node)

    def _write_fill(self, node: Node) -> None:
        """Write a constant under its own name: subgraphs need to see that sizes and axes are known."""
        kind = tensors_of(self._graph.types[node.outputs[0]])[0]
        value = np.asarray(node.attrs["value"]).astype(numpy_dtype(kind.dtype))
        name = self._names.names[node.outputs[0]]
        self._emitter.weight(name, np.broadcast_to(value, kind.shape), kind.dtype)

    def _write_operator(self, node: Node) -> None:
        operator = get_operator(node.op)
        types = self._graph.types
        outputs = [self._names.names[value] for value in node.outputs]
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
        # A custom op of its name says no types, and no bias joins a product behind it then.
        if node.op == "fused":
            self._declare(node, outputs)

    def _write_opaque(self, node: Node) -> None:
        tensor = self._origin.tensors.get(node.outputs[0]) if self._origin else None
        if node.attrs["op_type"] == "Constant" and tensor is not None:
            self._emitter.file_tensor(self._names.names[node.outputs[0]], tensor)
            return
        nodes = opaque_nodes(self._graph, node, self._imports)
        assert nodes is not None  # the versions are chosen so that there are
        outputs = [self._names.names[value] for value in node.outputs]
        if (exotic := _exotic_tensor(nodes)) is not None:
            self._emitter.file_tensor(outputs[0], exotic)
            return
        restore(nodes, self._inputs(node), outputs, self._names.reserved, self._names.fresh)
        if node.name:
            nodes[-1].name = node.name
        self._emitter.nodes += nodes
        if node.attrs["domain"]:  # ONNX cannot infer these types when the model is read again
            self._declare(node, outputs)

    def _declare(self, node: Node, outputs: Sequence[str]) -> None:
        """Write the types of a node's results in the file."""
        types = tensor_types(self._graph, node.outputs)
        self._value_infos += [
            to_value_info(name, kind)
            for name, kind in zip(outputs, types, strict=True)
            if name not in self._names.outputs and kind != UNKNOWN
        ]

    def _inputs(self, node: Node) -> list[str]:
        """Return the names of a node's operands; a tuple has as many as it has parts."""
        parts = self._names.parts
        return [self._names.names[part] for value in node.inputs for part in parts[value]]


def _drop_repeated_names(nodes: Sequence[onnx.NodeProto]) -> None:
    """Leave each name to the first node that has it: onnxruntime refuses models with two of a name.

    Two values that were found equal have the names of both nodes, and what is kept of the file has one.
    """
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            node.name = ""
        elif node.name:
            names.add(node.name)


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
    return attribute.t


def save_onnx(graph: Graph, path: Path, opset: int | None = None) -> None:
    """Write a graph as ONNX, completely or not at all.

    Weights go to ``NAME.onnx.data`` where the file that it is from had its own beside it; large ones, where
    they are too large for one file.

    Args:
        opset: the version of the default operator set, if it is not to be chosen.

    Raises:
        UsageError: that version cannot be written.
        InputError: the file cannot be written.
        ModelError: the graph has no valid ONNX form.
    """
    try:
        model, weights = write_skeleton(graph, opset)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    save_skeleton(model, weights, path)


def check_types(path: Path) -> None:
    """Check a model that was read as one that is written is checked: the types of its values, too.

    Raises:
        InputError, ModelError: it cannot be read, or is not valid.
    """
    from relational_tensat.formats.onnx_read import parse_onnx  # a writer seldom reads

    reason = why_invalid(with_weights_as_inputs(*parse_onnx(path)), path)
    if reason:
        raise ModelError(f"{path}: not a valid ONNX model: {reason}")


def copy_with_data(source: Path, target: Path, name: str) -> None:
    """Copy a valid model with its large weights in another place, and nothing else changed.

    Args:
        name: of the file beside the model that they go to; "" for the model itself.

    Raises:
        InputError, ModelError: it cannot be read, or written.
    """
    from relational_tensat.formats.onnx_read import parse_onnx  # a writer seldom reads

    model, data = parse_onnx(source)
    take_beside(model, "")
    if name:
        mark_beside(model, name)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    save_skeleton(model, {each: mapped_array(tensors[each], data[each]) for each in data}, target)
