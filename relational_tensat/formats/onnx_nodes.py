"""Reading the nodes of an ONNX graph, one after the other: folded, understood, or opaque.

A choice whose condition is known is its branch, a loop of few turns these turns, an element of a sequence
that is known that element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from relational_tensat.base.errors import ModelError, ShapeError
from relational_tensat.formats.onnx_fold import data_of, few_turns, fold
from relational_tensat.formats.onnx_names import FreshNames, defined_names, rename_node
from relational_tensat.formats.onnx_node import NodeOracle, label, read_node
from relational_tensat.formats.onnx_opaque import encode, input_names, is_deterministic
from relational_tensat.formats.onnx_types import UNKNOWN, from_type_proto, is_carried, is_numeric
from relational_tensat.tensor import Node, TensorType, Weight, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import Operator, get_operator, map_onnx, operators, typed
from relational_tensat.tensor.operators.onnx_form import Mapped
from relational_tensat.tensor.types import Array

#: The domain of onnxruntime's own operators.
_CONTRIB = "com.microsoft"
#: Operators that change nothing a second time.
_IDEMPOTENT = frozenset({"Floor", "Ceil", "Round", "Sign"})
#: Operators that give the elements of their first operand, once or several times.
_KEEPING = frozenset({"Cast", "Expand", "Reshape", "Identity"})
#: With what operators change nothing.
_NEUTRAL = {"Mul": 1, "Div": 1, "Add": 0, "Sub": 0}


class NodeReader:
    """Turns ONNX nodes, given in topological order, into nodes of the graph.

    Args:
        names: of all values where the nodes are from.
        imports: operator set versions by domain.
        inputs: types of the graph inputs.
        weights: the tensors known before inference; folded ones are added.
        declared: types of values, which are believed where inference knows nothing.
        as_they_are: keep every node opaque, and none merged with its like.
        unfolded: values that stay computed, even if they are known.
    """

    def __init__(
        self,
        names: Collection[str],
        imports: Mapping[str, int],
        inputs: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
        where: str,
        declared: Mapping[str, onnx.ValueInfoProto],
        *,
        as_they_are: bool = False,
        unfolded: Collection[str] = (),
    ) -> None:
        self._as_they_are = as_they_are
        self._unfolded = frozenset(unfolded)
        self._imports = {"": 1, **imports}
        self._weights = dict(weights)
        #: Those that are the file's own, at all sizes.
        self._given = dict(weights)
        self._types = {**inputs, **{name: weight.type for name, weight in weights.items()}}
        self._where = where
        self._nodes: list[Node] = []
        self._fresh = FreshNames(names)
        self._oracle = NodeOracle(imports, where)
        self._declared = declared
        self._used: set[str] = set()
        self._readers = _readers()
        self._made: list[set[str] | None] = []
        self._choices: dict[str, bool] = {}
        self._sequences: dict[str, tuple[str, ...]] = {}
        self._rounded: dict[str, str] = {}
        #: Constants whose elements are one number at all sizes.
        self._uniform: set[str] = set()

    def read_all(self, nodes: Sequence[onnx.NodeProto], used: Collection[str]) -> None:
        """Read nodes in topological order, all that the graph's outputs need and only those.

        Args:
            used: all values that nodes take, and the outputs.

        Raises:
            ModelError: a node's operands do not fit.
        """
        self._used = set(used)
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
            chosen = data_of(self._weights, node.input[0])
            if chosen is not None and node.input[0] not in self._unfolded:
                self._read_branch(node, is_true=bool(chosen))
                return True
        if node.op_type == "Loop" and not node.domain and self._unfolded.isdisjoint(node.input):
            turns = few_turns(node, self._given)
            if turns is not None:
                self._read_turns(node, turns)
                return True
        if node.op_type == "Range":
            node = self._with_scalars(node)
        if node.op_type == "SequenceConstruct":
            self._sequences[node.output[0]] = tuple(node.input)
        if node.op_type == "SequenceAt" and (element := self._element(node)):
            self._read(onnx.helper.make_node("Identity", [element], node.output))
            return True
        if (same := self._same_as_operand(node)) and self._unfolded.isdisjoint(node.input):
            self._read(onnx.helper.make_node("Identity", [same], node.output))
            return True
        folded = None
        if self._unfolded.isdisjoint(node.output):
            folded = fold(node, self._types, self._weights, self._oracle)
        if folded is not None:
            self._weights |= folded
            self._types |= {name: weight.type for name, weight in folded.items()}
            if node.op_type == "Constant":
                self._given |= folded
            if node.op_type == "ConstantOfShape" or (
                node.op_type in _KEEPING and node.input[0] in self._uniform
            ):
                self._uniform.update(folded)
        elif not self._read_as_operator(node):
            self._read_as_opaque(node)
        return False

    def _with_scalars(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Return a node whose operands of one element have no axes: runtimes take them, ONNX does not."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for place, name in enumerate(node.input):
            kind = self._types[name]
            if kind.rank and kind.size == 1 and is_numeric(kind):
                copy.input[place] = self._fresh.new(f"{name}/scalar")
                self._used.add(copy.input[place])
                self._read(onnx.helper.make_node("Squeeze", [name], [copy.input[place]]))
        return copy

    def _read_turns(self, node: onnx.NodeProto, count: int) -> None:
        """Read the turns of a loop, one after the other, with names that nothing else has."""
        (body,) = (attribute.g for attribute in node.attribute if attribute.HasField("g"))
        carried = list(node.input[2:])
        for turn in range(count):
            number = self._fresh.new(f"{node.output[0]}/turn")
            shape = [1] * len(body.input[0].type.tensor_type.shape.dim)
            value = onnx.numpy_helper.from_array(np.full(shape, turn, np.int64))
            self._read(onnx.helper.make_node("Constant", [], [number], value=value))
            names = dict(zip((v.name for v in body.input[2:]), carried, strict=True))
            names |= {body.input[0].name: number}
            own = sorted(defined_names(body) - {v.name for v in body.input})
            names |= {name: self._fresh.new(name) for name in own}
            kept = [one for one in body.node if body.input[1].name not in one.input]
            self._read_copies(body, kept, names)
            carried = [names.get(v.name, v.name) for v in body.output[1:]]
        for value_name, result in zip(carried, node.output, strict=True):
            if result:
                self._used.add(value_name)
                self._read(onnx.helper.make_node("Identity", [value_name], [result]))

    def _read_copies(
        self, body: onnx.GraphProto, nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]
    ) -> None:
        """Read a body's constants and nodes under other names."""
        constants = [
            onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
            for tensor in body.initializer
        ]
        constants += [
            onnx.helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
            for sparse in body.sparse_initializer
        ]
        copies = []
        for one in (*constants, *nodes):
            copy = onnx.NodeProto()
            copy.CopyFrom(one)
            rename_node(copy, names, (), self._fresh)
            copies.append(_in_default_domain(copy))
        self._used |= {value for one in copies for value in input_names(one)}
        for one in copies:
            self._read(one)

    def _same_as_operand(self, node: onnx.NodeProto) -> str:
        """Return the operand that a node only gives again; "" where it does something.

        That is a rounding of what is rounded so, and a product with ones of several elements, or a sum with
        zeros: rules see single numbers.
        """
        if node.domain or not node.output[0] or len(node.output) > 1:
            return ""
        if node.op_type in _IDEMPOTENT:
            operand = str(node.input[0])
            is_again = self._rounded.get(operand) == node.op_type
            self._rounded[node.output[0]] = node.op_type
            return operand if is_again else ""
        if node.op_type not in _NEUTRAL or len(node.input) != 2:
            return ""
        places = (0, 1) if node.op_type in ("Mul", "Add") else (0,)
        for place in places:
            kept, other = str(node.input[place]), str(node.input[1 - place])
            constants = self._weights if other in self._uniform else self._given
            data, kind = data_of(constants, other), self._types[kept]
            if data is None or data.size < 2 or kept in self._weights or not is_numeric(kind):
                continue
            sizes = zip(reversed(data.shape), reversed(kind.shape), strict=False)
            is_smaller = data.ndim <= kind.rank and all(own in (1, whole) for own, whole in sizes)
            if is_smaller and bool((np.asarray(data) == _NEUTRAL[node.op_type]).all()):
                return kept
        return ""

    def _element(self, node: onnx.NodeProto) -> str:
        """Return the value that is taken from a sequence of known values; "" where that is not known."""
        elements = self._sequences.get(node.input[0], ())
        position = data_of(self._weights, node.input[1])
        if position is None or not -len(elements) <= int(position) < len(elements):
            return ""
        return elements[int(position)]

    def _read_branch(self, node: onnx.NodeProto, *, is_true: bool) -> None:
        """Read one branch of a choice as nodes of the graph, with names that nothing else has."""
        self._choices[node.input[0]] = is_true
        name = "then_branch" if is_true else "else_branch"
        branch = next(attribute.g for attribute in node.attribute if attribute.name == name)
        names = {value: self._fresh.new(value) for value in sorted(defined_names(branch))}
        given = [names.get(value.name, value.name) for value in branch.output]
        self._used |= set(given)
        self._read_copies(branch, branch.node, names)
        for value_name, result in zip(given, node.output, strict=True):
            if result:
                self._read(onnx.helper.make_node("Identity", [value_name], [result]))

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
        # few have these
        from relational_tensat.formats.onnx_contrib import check_mapped, read_parts

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
        operand_types = tuple(
            types[value] if value in types else self._types[value] for value in inputs
        )
        result = tensors_of(typed(get_operator(mapped.op), operand_types, mapped.attrs)[1])
        if len(result) != len(outputs):
            raise ShapeError(f"{mapped.op} gives {len(result)} results, expected {len(outputs)}")
        types |= dict(zip(outputs, result, strict=True))
        nodes.append(Node(mapped.op, tuple(inputs), tuple(outputs), dict(mapped.attrs), name))

    def _read_as_opaque(self, node: onnx.NodeProto) -> None:
        inferred = self._oracle.output_types(node, self._types, self._weights)
        types = {name: self._known_type(name, kind) for name, kind in inferred.items()}
        if node.op_type == "Loop" and not node.domain and any(map(is_carried, types.values())):
            from relational_tensat.formats.onnx_bodies import types_after_loop  # few have loops

            types |= types_after_loop(node, self._types, self._weights, self._imports)
        self._types |= types
        if self._is_without_elements(node, inferred.values()):
            self._weights |= {name: Weight(kind, _empty(kind)) for name, kind in types.items()}
            return
        opset = self._imports.get(node.domain)
        if opset is None:
            raise ModelError(f"{self._where}: {label(node)}: no version of its domain is imported")
        attrs = encode(node, opset, list(types.values()), self._given, keep=self._as_they_are)
        self._nodes.append(Node("opaque", input_names(node), tuple(types), attrs, node.name))

    def _known_type(self, name: str, inferred: TensorType | None) -> TensorType:
        """Return the type of an output: inferred, declared, or ``UNKNOWN``."""
        if (inferred is None or is_carried(inferred)) and name in self._declared:
            declared = from_type_proto(self._declared[name].type)
            if declared is not None:
                return declared
        return UNKNOWN if inferred is None else inferred

    def _is_without_elements(
        self, node: onnx.NodeProto, inferred: Iterable[TensorType | None]
    ) -> bool:
        """Whether all results of a node are known to have no elements, for any inputs."""
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
