"""Reading the nodes of an ONNX graph, one after the other: folded, understood, or opaque.

Constants that are known before inference become weights. Folded are constants in all spellings, shapes
(``Shape`` and ``Size`` of any tensor), uniform tensors (``ConstantOfShape``, ``Expand`` of one number; kept
as broadcast views), and nodes of the default operator set whose operands are all known, as long as they are
cheap: the arithmetic around shapes and small tables. Large computations on weights stay nodes, for the
optimizer to see, and quantized weights stay quantized, however small: runtimes look for DequantizeLinear
beside their kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import AttributeProto

from relational_tensat.base.errors import ModelError, ShapeError
from relational_tensat.formats.arrays import UNIFORM_MIN_ELEMENTS
from relational_tensat.formats.onnx_names import (
    FreshNames,
    all_names,
    defined_names,
    rename_node,
    subgraphs,
)
from relational_tensat.formats.onnx_node import NodeOracle, attribute_value, label, read_node
from relational_tensat.formats.onnx_opaque import encode, input_names, is_deterministic
from relational_tensat.formats.onnx_types import (
    UNKNOWN,
    dense_weight,
    from_type_proto,
    is_carried,
    is_numeric,
    is_tensor_of_unknown_shape,
    type_of,
)
from relational_tensat.tensor import Node, TensorType, Weight, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import Operator, get_operator, map_onnx, operators
from relational_tensat.tensor.operators.onnx_form import Mapped
from relational_tensat.tensor.types import Array

#: The domain of onnxruntime's own operators.
_CONTRIB = "com.microsoft"
#: Largest operands and results that are folded: integers describe shapes, floats are computed.
_FOLDED_INTEGERS = 65536
_FOLDED_FLOATS = 1024


def fold(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    oracle: NodeOracle,
) -> dict[str, Weight] | None:
    """Return the node's outputs as weights, or None when it is no constant or costs too much.

    Args:
        types: of the values known so far.
        weights: the values known before inference, some without data.
    """
    if node.domain or not all(node.output):
        return None
    match node.op_type:
        case "Constant":
            return _constant(node)
        case "Shape" | "Size":
            return _shape(node, types)
        case "QuantizeLinear":  # four times as small as what it is made of
            return _computed(node, types, weights, oracle, of_any_size=True)
        case "ConstantOfShape" | "Expand":
            uniform = _uniform(node, weights)
            if uniform is not None:
                return uniform
    return _computed(node, types, weights, oracle)


def _constant(node: onnx.NodeProto) -> dict[str, Weight] | None:
    attribute = node.attribute[0]
    value = attribute_value(attribute)
    match attribute.type:
        case AttributeProto.TENSOR:
            kind = type_of(attribute.t)
            if not is_numeric(kind):
                return None
        case AttributeProto.INT | AttributeProto.INTS:
            value = np.array(value, np.int64)
            kind = TensorType("int64", value.shape)
        case AttributeProto.FLOAT | AttributeProto.FLOATS:
            value = np.array(value, np.float32)
            kind = TensorType("float32", value.shape)
        case AttributeProto.SPARSE_TENSOR:
            weight = dense_weight(attribute.sparse_tensor)
            return None if weight is None else {node.output[0]: weight}
        case _:  # strings: an opaque node
            return None
    return {node.output[0]: Weight(kind, value)}


def _shape(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> dict[str, Weight] | None:
    kind = types[node.input[0]]
    if is_carried(kind):
        return None
    shape = kind.shape
    if node.op_type == "Size":
        return _integers(node, np.array(kind.size, np.int64))
    bounds = {item.name: item.i for item in node.attribute}
    return _integers(node, np.array(shape[bounds.get("start", 0) : bounds.get("end")], np.int64))


def _integers(node: onnx.NodeProto, value: Array) -> dict[str, Weight]:
    return {node.output[0]: Weight(TensorType("int64", value.shape), value)}


def _uniform(node: onnx.NodeProto, weights: Mapping[str, Weight]) -> dict[str, Weight] | None:
    """Return ConstantOfShape, and Expand of one number, without making the tensor."""
    expands = node.op_type == "Expand"
    shape = _data(weights, node.input[1 if expands else 0])
    if shape is None:
        return None
    sizes, dtype = tuple(int(size) for size in shape), "float32"
    element: Array = np.zeros((), np.float32)
    if expands:
        value = _data(weights, node.input[0])
        if value is None or value.size != 1:
            return None
        element, dtype = value, weights[node.input[0]].type.dtype
        sizes = (1,) * (element.ndim - len(sizes)) + sizes
    for attribute in node.attribute:  # ConstantOfShape's value
        element, dtype = np.asarray(attribute_value(attribute)), type_of(attribute.t).dtype
    kind = TensorType(dtype, sizes)
    if not is_numeric(kind) or kind.size < UNIFORM_MIN_ELEMENTS:
        return None
    return {node.output[0]: Weight(kind, np.broadcast_to(element.reshape(()), kind.shape))}


def _computed(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    oracle: NodeOracle,
    *,
    of_any_size: bool = False,
) -> dict[str, Weight] | None:
    """Return what a cheap node of known operands computes."""
    is_cheap = is_numeric if of_any_size else _is_cheap
    operands = [name for name in node.input if name]
    if any(_data(weights, name) is None or not is_cheap(types[name]) for name in operands):
        return None
    if node.op_type == "DequantizeLinear":
        return None
    if not is_deterministic(node) or any(True for _ in subgraphs(node)):
        return None
    outputs = oracle.output_types(node, types, weights)
    types_of = {name: kind for name, kind in outputs.items() if kind is not None}
    if len(types_of) < len(outputs):
        return None
    if not all(is_cheap(kind) or is_tensor_of_unknown_shape(kind) for kind in types_of.values()):
        return None
    if all(is_numeric(kind) and kind.size == 0 for kind in types_of.values()):
        # Nothing to compute; kernels of onnxruntime may crash on tensors without elements.
        return {
            name: Weight(kind, np.empty(kind.shape, numpy_dtype(kind.dtype)))
            for name, kind in types_of.items()
        }
    values = oracle.evaluate(node, {**types, **types_of}, weights)
    if values is None:
        return None
    folded = {
        name: Weight(TensorType(str(value.dtype), value.shape), value)
        for name, value in values.items()
    }
    return folded if all(is_cheap(weight.type) for weight in folded.values()) else None


def _is_cheap(kind: TensorType) -> bool:
    if not is_numeric(kind) or kind.dtype == "bfloat16":
        return False
    return kind.size <= (_FOLDED_FLOATS if kind.is_float else _FOLDED_INTEGERS)


def _data(weights: Mapping[str, Weight], name: str) -> Array | None:
    weight = weights.get(name)
    return None if weight is None else weight.data


class NodeReader:
    """Turns ONNX nodes, given in topological order, into nodes of the graph.

    Args:
        graph: where the nodes are from; its value_info is believed where inference knows nothing.
        imports: operator set versions by domain.
        inputs: types of the graph inputs.
        weights: what is known before inference; grows by what is folded.
        as_they_are: keep every node opaque, and none merged with its like.
        unfolded: values that stay computed, whatever is known of them.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        imports: Mapping[str, int],
        inputs: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
        where: str,
        *,
        as_they_are: bool = False,
        unfolded: Collection[str] = (),
    ) -> None:
        self._as_they_are = as_they_are
        self._unfolded = frozenset(unfolded)
        self._imports = {"": 1, **imports}
        self._weights = dict(weights)
        self._types = {**inputs, **{name: weight.type for name, weight in weights.items()}}
        self._where = where
        self._nodes: list[Node] = []
        self._fresh = FreshNames(all_names(graph))
        self._oracle = NodeOracle(imports, where)
        self._declared = {
            value.name: from_type_proto(value.type) for value in (*graph.value_info, *graph.output)
        }
        self._used: set[str] = set()
        self._readers = _readers()
        self._made: list[set[str] | None] = []
        self._choices: dict[str, bool] = {}
        self._sequences: dict[str, tuple[str, ...]] = {}

    def read_all(self, nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> None:
        """Read nodes in topological order, all that ``outputs`` need and only those.

        Raises:
            ModelError: a node's operands do not fit.
        """
        self._used = {*outputs, *(name for node in nodes for name in input_names(node))}
        for node in nodes:
            count = len(self._nodes)
            node = _in_default_domain(node)
            is_branch = self._read(node)
            values = {name for made in self._nodes[count:] for name in made.outputs}
            values |= {name for name in node.output if name in self._weights}
            self._made.append(None if is_branch else values)

    @property
    def made(self) -> Sequence[Collection[str] | None]:
        """The values that were made of each node that was read, in order; None for a choice."""
        return self._made

    @property
    def choices(self) -> Mapping[str, bool]:
        """Conditions that were known, so that one branch was read in place of the choice."""
        return self._choices

    @property
    def constants(self) -> Mapping[str, Weight]:
        """All values that are known before inference."""
        return self._weights

    def result(self, outputs: Iterable[str]) -> tuple[list[Node], dict[str, Weight]]:
        """Return the nodes and weights that the outputs depend on."""
        values, nodes = set(outputs), []
        for node in reversed(self._nodes):
            if values.intersection(node.outputs):
                values.update(node.inputs)
                nodes.append(node)
        weights = {name: weight for name, weight in self._weights.items() if name in values}
        return nodes[::-1], weights

    def _read(self, node: onnx.NodeProto) -> bool:
        """Read a node; return whether it was a choice, in place of which what it gives was read."""
        if self._as_they_are:
            self._read_as_opaque(node)
            return False
        if node.op_type == "If" and not node.domain:
            chosen = _data(self._weights, node.input[0])
            if chosen is not None and node.input[0] not in self._unfolded:
                self._read_branch(node, is_true=bool(chosen))
                return True
        if node.op_type == "SequenceConstruct":
            self._sequences[node.output[0]] = tuple(node.input)
        if node.op_type == "SequenceAt" and (element := self._element(node)):
            self._read(onnx.helper.make_node("Identity", [element], node.output))
            return True
        folded = None
        if self._unfolded.isdisjoint(node.output):
            folded = fold(node, self._types, self._weights, self._oracle)
        if folded is not None:
            self._weights |= folded
            self._types |= {name: weight.type for name, weight in folded.items()}
        elif not self._read_as_operator(node):
            self._read_as_opaque(node)
        return False

    def _element(self, node: onnx.NodeProto) -> str:
        """Return the value that is taken from a sequence of known values; "" where that is not known."""
        elements = self._sequences.get(node.input[0], ())
        position = _data(self._weights, node.input[1])
        if position is None or not -len(elements) <= int(position) < len(elements):
            return ""
        return elements[int(position)]

    def _read_branch(self, node: onnx.NodeProto, *, is_true: bool) -> None:
        """Read one branch of a choice as nodes of the graph, with names that nothing else has."""
        self._choices[node.input[0]] = is_true
        name = "then_branch" if is_true else "else_branch"
        branch = next(attribute.g for attribute in node.attribute if attribute.name == name)
        names = {value: self._fresh.new(value) for value in sorted(defined_names(branch))}
        inner = [
            *(
                onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
                for tensor in branch.initializer
            ),
            *(
                onnx.helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
                for sparse in branch.sparse_initializer
            ),
            *branch.node,
        ]
        nodes = []
        for one in inner:
            copy = onnx.NodeProto()
            copy.CopyFrom(one)
            rename_node(copy, names, (), self._fresh)
            nodes.append(_in_default_domain(copy))
        given = [names.get(value.name, value.name) for value in branch.output]
        nodes += [
            onnx.helper.make_node("Identity", [value], [result])
            for value, result in zip(given, node.output, strict=True)
            if result
        ]
        self._used |= {value for one in nodes for value in input_names(one)}
        for one in nodes:
            self._read(one)

    def _read_as_operator(self, node: onnx.NodeProto) -> bool:
        """Read a node that an operator understands; return whether one does."""
        if not all(is_numeric(self._types[name]) for name in node.input if name):
            return False
        if node.domain:
            return node.domain == _CONTRIB and self._read_as_parts(node)
        readers = self._readers.get(node.op_type, ())
        if not readers:
            return False
        facts = read_node(node, self._imports[""], self._types, self._weights, self._used)
        for operator in readers:
            try:
                mapped = map_onnx(operator, facts)
                if mapped is not None and self._place_all(mapped, node, facts.outputs):
                    return True
            except ShapeError:
                # Not for these operands. If they do not fit the ONNX operator either, reading the
                # node as opaque reports it; else it is one of the cases that operators leave out.
                continue
        return False

    def _read_as_parts(self, node: onnx.NodeProto) -> bool:
        """Read one of onnxruntime's operators as what it does at once; return whether that is known."""
        from relational_tensat.formats.onnx_contrib import (
            check_mapped,
            read_parts,
        )  # few have these

        facts = read_node(node, self._imports[""], self._types, self._weights, self._used)
        try:
            parts = read_parts(facts)
        except (ShapeError, IndexError):
            return False
        if parts is None or not set(filter(None, facts.outputs)) <= parts.keys():
            return False
        nodes: list[Node] = []
        types: dict[str, TensorType] = {}
        for name, part in parts.items():
            mapped = check_mapped(part, facts)
            if mapped is None:
                return False
            self._place(mapped, [name], node.name, nodes, types)
            facts = replace(
                facts,
                inputs=(*facts.inputs, name),
                input_types=(*facts.input_types, types[name]),
            )
        self._nodes += nodes
        self._types |= types
        return True

    def _place_all(
        self, mapped: Mapped, node: onnx.NodeProto, used_outputs: tuple[str, ...]
    ) -> bool:
        """Make the nodes of ``mapped``; return whether it gives all outputs that are used."""
        nodes: list[Node] = []
        types: dict[str, TensorType] = {}
        count = _count_outputs(mapped, node)
        if count is None or any(used_outputs[count:]):
            return False
        names = [name or self._fresh.new(f"{label(node)}_unused") for name in node.output[:count]]
        self._place(mapped, names, node.name, nodes, types)
        self._nodes += nodes
        self._types |= types
        return True

    def _place(
        self,
        mapped: Mapped,
        outputs: list[str],
        name: str,
        nodes: list[Node],
        types: dict[str, TensorType],
    ) -> None:
        inputs = []
        for operand in mapped.inputs:
            if isinstance(operand, Mapped):
                value = self._fresh.new(f"{outputs[0]}/{operand.op}")
                self._place(operand, [value], "", nodes, types)
                operand = value
            inputs.append(operand)
        operator = get_operator(mapped.op)
        operand_types = tuple(
            types[value] if value in types else self._types[value] for value in inputs
        )
        result = tensors_of(operator.check(operand_types, mapped.attrs))
        if len(result) != len(outputs):
            raise ShapeError(f"{mapped.op} gives {len(result)} results, expected {len(outputs)}")
        types |= dict(zip(outputs, result, strict=True))
        nodes.append(Node(mapped.op, tuple(inputs), tuple(outputs), dict(mapped.attrs), name))

    def _read_as_opaque(self, node: onnx.NodeProto) -> None:
        inferred = self._oracle.output_types(node, self._types, self._weights)
        types = {name: self._known_type(name, kind) for name, kind in inferred.items()}
        self._types |= types
        if self._is_without_elements(node, inferred.values()):
            self._weights |= {name: Weight(kind, _empty(kind)) for name, kind in types.items()}
            return
        opset = self._imports.get(node.domain)
        if opset is None:
            raise ModelError(f"{self._where}: {label(node)}: no version of its domain is imported")
        attrs = encode(node, opset, list(types.values()), keep=self._as_they_are)
        self._nodes.append(Node("opaque", input_names(node), tuple(types), attrs, node.name))

    def _known_type(self, name: str, inferred: TensorType | None) -> TensorType:
        """Return the type of an output: inferred, declared, or ``UNKNOWN``."""
        declared = self._declared.get(name)
        if declared is not None and (inferred is None or is_carried(inferred)):
            return declared
        return UNKNOWN if inferred is None else inferred

    def _is_without_elements(
        self, node: onnx.NodeProto, inferred: Iterable[TensorType | None]
    ) -> bool:
        """Whether all that a node gives is known to have no elements, whatever its inputs are."""
        if self._as_they_are or not is_deterministic(node):
            return False
        return all(kind is not None and is_numeric(kind) and kind.size == 0 for kind in inferred)


def _count_outputs(mapped: Mapped, node: onnx.NodeProto) -> int | None:
    """Return how many of the node's outputs the operator gives, None if it cannot be that one."""
    if get_operator(mapped.op).multi_output:
        return len(node.output)
    return 1 if node.output[0] else None


def _empty(kind: TensorType) -> Array:
    return np.empty(kind.shape, numpy_dtype(kind.dtype))


def _readers() -> dict[str, list[Operator]]:
    """Return the operators that read each ONNX operator."""
    readers: dict[str, list[Operator]] = {}
    for operator in operators().values():
        for op_type in operator.onnx:
            readers.setdefault(op_type, []).append(operator)
    return readers


def _in_default_domain(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the node with the default domain spelled ``""``."""
    if node.domain != "ai.onnx":
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.domain = ""
    return copy
