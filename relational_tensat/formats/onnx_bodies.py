"""Bodies of If, Loop and Scan as models of their own, and back.

A body's inputs are its own and the values that it takes from outside, which have indexed names in an opaque
node's payload. A value that a loop carries from one turn to the next has the same shape in all turns if a
turn that begins with its first shape ends with it. Where it does not, sizes that differ are dynamic ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from relational_tensat.base.errors import first_line
from relational_tensat.formats.onnx_names import FreshNames, all_names, captured_by, subgraphs
from relational_tensat.formats.onnx_opaque import decode, encode, input_names
from relational_tensat.formats.onnx_types import (
    from_type_proto,
    is_carried,
    is_numeric,
    to_tensor,
    to_type_proto,
)
from relational_tensat.tensor import Attrs, TensorType, Weight
from relational_tensat.tensor.operators.opaque import WITH_BODIES, turns_of
from relational_tensat.tensor.types import AttrValue

#: Types of values at each of a model's sizes, the ones that it is optimized at first.
Readings: TypeAlias = Sequence[TensorType]
#: Of models of bodies; any that has all that bodies need.
_IR_VERSION = 10
#: The first version in which Scan has no batch of its own.
_SCAN_WITHOUT_BATCH = 9


class NoModelError(Exception):
    """A body is no model of its own; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A body as a model.

    Attributes:
        attribute: its name among the node's attributes.
        model: all types are known but for dimensions that differ from size to size.
        sizes: of these, where the model is optimized.
        turns: how often it runs when its node runs once, as far as that is known.
    """

    attribute: str
    model: onnx.ModelProto
    sizes: Mapping[str, int]
    turns: float

    @property
    def content(self) -> bytes:
        """The body in bytes; equal bodies have equal ones."""
        return bytes(self.model.SerializeToString(deterministic=True))


def has_bodies(attrs: Attrs) -> bool:
    """Whether an opaque node has bodies that can be models."""
    is_known = attrs["op_type"] in WITH_BODIES and attrs["domain"] in ("", "ai.onnx")
    is_old = attrs["op_type"] == "Scan" and int(str(attrs["opset"])) < _SCAN_WITHOUT_BATCH
    return is_known and not is_old


def bodies_of(
    attrs: Attrs,
    operands: Sequence[Readings],
    known: Mapping[int, Weight],
    imports: Mapping[str, int],
) -> Iterator[Body]:
    """Yield the bodies of an opaque node that can be models.

    Args:
        operands: their types.
        known: those that are known before inference.
        imports: versions of operator sets.
    """
    node = decode(str(attrs["payload"]))
    turns = turns_of(attrs, tuple(kinds[0] for kinds in operands))
    for attribute in node.attribute:
        if attribute.HasField("g"):
            reader = _BodyReader(node, attribute.g, operands, known, imports, may_change=True)
            try:
                yield Body(attribute.name, reader.model(), reader.sizes, turns)
            except NoModelError:
                continue


def types_after_loop(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    imports: Mapping[str, int],
) -> dict[str, TensorType]:
    """Return the types of what a Loop carries to its end: those that it begins with, if turns keep these.

    ONNX's own inference knows of no shape there, for a loop may change it.
    """
    names = input_names(node)
    known = {place: weights[name] for place, name in enumerate(names) if name in weights}
    (body,) = (attribute.g for attribute in node.attribute if attribute.HasField("g"))
    reader = _BodyReader(node, body, [(types[name],) for name in names], known, imports)
    try:
        model = reader.model()
    except NoModelError:
        return {}
    given = zip(node.output, model.graph.output[1 : len(node.input) - 1], strict=False)
    found = {name: from_type_proto(value.type) for name, value in given if name}
    return {name: kind for name, kind in found.items() if kind is not None}


def with_bodies(
    attrs: Attrs, bodies: Mapping[str, onnx.ModelProto]
) -> tuple[dict[str, AttrValue], tuple[int, ...]]:
    """Return the attributes of an opaque node with other bodies, and which of its operands it takes.

    Args:
        bodies: models that stand for the node's own, by attribute.
    """
    node = decode(str(attrs["payload"]))
    before = {name: place for place, name in enumerate(input_names(node))}
    for attribute in node.attribute:
        if attribute.name in bodies:
            _replace(attribute.g, bodies[attribute.name].graph, before)
    out_types = attrs["out_types"]
    assert isinstance(out_types, tuple)
    new = encode(node, int(str(attrs["opset"])), [])
    kept = {name: attrs[name] for name in ("op_type", "domain", "opset", "out_types", "key")}
    operands = tuple(before[name] for name in input_names(node))
    constants = attrs.get("constants", ())
    assert isinstance(constants, tuple)
    there = {item[0]: item[1] for item in constants if isinstance(item, tuple)}
    own = tuple(
        (place, there[operand]) for place, operand in enumerate(operands) if operand in there
    )
    return {**new, **kept, "constants": own}, operands


def _replace(body: onnx.GraphProto, new: onnx.GraphProto, outer: Mapping[str, int]) -> None:
    """Put a model's nodes and constants into a body; values from outside are taken from there again."""
    for field in ("node", "initializer", "sparse_initializer", "value_info"):
        body.ClearField(field)
    body.node.extend(new.node)
    body.initializer.extend(tensor for tensor in new.initializer if tensor.name not in outer)
    body.sparse_initializer.extend(new.sparse_initializer)
    made = {node.output[0]: node for node in body.node if node.op_type == "Identity"}
    for value, given in zip(body.output, new.output, strict=True):
        node = made.get(given.name)
        taken = any(given.name in input_names(each) for each in body.node)
        if value.name != given.name and node is not None and not taken:
            value.name = node.input[0]
            body.node.remove(node)
        else:
            value.name = given.name


#: A value that grows from nothing, or from one element, is optimized at this size: at 1, equal shapes
#: differ later.
_LEAST_CHANGING = 3


class _BodyReader:
    """Makes one body a model."""

    def __init__(
        self,
        node: onnx.NodeProto,
        body: onnx.GraphProto,
        operands: Sequence[Readings],
        known: Mapping[int, Weight],
        imports: Mapping[str, int],
        *,
        may_change: bool = False,
    ) -> None:
        self._node, self._body = node, body
        self._may_change = may_change
        #: Sizes after a turn, by what is carried and the axis, where they are others than before.
        self._changing: dict[tuple[int, int], int] = {}
        names = input_names(node)
        self._operands = dict(zip(names, operands, strict=True))
        self._known = {names[place]: weight for place, weight in known.items()}
        self._imports = imports
        self.sizes: dict[str, int] = {}

    def model(self) -> onnx.ModelProto:
        """Return the model.

        Raises:
            NoModelError: types are not known, or a loop carries what changes its rank, or may not change.
        """
        while True:
            n_changing = len(self._changing)
            model = self._model()
            if len(self._changing) == n_changing:
                # A Loop may begin with nothing, and add to it turn by turn. The body is a model of one
                # element and more then; with none it runs in the first turn of each comparison.
                if any(0 in _shape(value.type) for value in model.graph.input):
                    raise NoModelError("an operand has no elements")
                return model

    def _model(self) -> onnx.ModelProto:
        """Return the model as far as it is known what changes; that may become more."""
        model = onnx.ModelProto(ir_version=_IR_VERSION)
        model.opset_import.extend(
            onnx.helper.make_opsetid(domain, version) for domain, version in self._imports.items()
        )
        graph = model.graph
        graph.name = self._body.name or "body"
        graph.node.extend(self._body.node)
        graph.initializer.extend(self._body.initializer)
        graph.sparse_initializer.extend(self._body.sparse_initializer)
        own = self._own_types()
        first = 2 if self._node.op_type == "Loop" else 0
        for (place, axis), size in self._changing.items():
            symbol = f"turn{place}_{axis}"
            list(own.values())[first + place].tensor_type.shape.dim[axis].dim_param = symbol
            self.sizes[symbol] = size
        graph.input.extend(onnx.helper.make_value_info(*value) for value in own.items())
        for name in captured_by(self._body):
            self._give(graph, name)
        self._name_outputs(graph)
        self._check_carried(model, list(own.values()))
        return model

    def _own_types(self) -> dict[str, onnx.TypeProto]:
        inputs, node = self._body.input, self._node
        if node.op_type == "If":
            return {}
        if node.op_type == "Loop":
            kinds = [self._turn_type(inputs[0], "int64"), self._turn_type(inputs[1], "bool")]
            kinds += [self._type(name) for name in node.input[2:]]
        else:
            kinds = [*self._states(), *self._slices()]
        return dict(zip((value.name for value in inputs), kinds, strict=True))

    def _turn_type(self, value: onnx.ValueInfoProto, dtype: str) -> onnx.TypeProto:
        """Return the type of a turn's number, or of its condition: a tensor of one element."""
        declared = from_type_proto(value.type)
        is_declared = declared is not None and declared in (
            TensorType(dtype, ()), TensorType(dtype, (1,)),
        )  # fmt: skip
        return to_type_proto(declared if is_declared and declared else TensorType(dtype, ()))

    def _states(self) -> list[onnx.TypeProto]:
        return [self._type(name) for name in self._node.input[: self._n_states]]

    @property
    def _n_states(self) -> int:
        """How many values are carried from one turn to the next."""
        if self._node.op_type == "Loop":
            return len(self._node.input) - 2
        attributes = {attribute.name: attribute for attribute in self._node.attribute}
        return len(self._node.input) - int(attributes["num_scan_inputs"].i)

    def _slices(self) -> list[onnx.TypeProto]:
        """Return the types of what Scan goes along."""
        attributes = {attribute.name: list(attribute.ints) for attribute in self._node.attribute}
        names = self._node.input[self._n_states :]
        axes = attributes.get("scan_input_axes") or [0] * len(names)
        return [self._type(name, axis) for name, axis in zip(names, axes, strict=True)]

    def _type(self, name: str, without: int | None = None) -> onnx.TypeProto:
        """Return the type of an operand, or of one of its slices along an axis."""
        if name not in self._operands:
            raise NoModelError("an operand is left out")
        kinds = self._operands[name]
        if any(is_carried(kind) for kind in kinds) or len({kind.rank for kind in kinds}) != 1:
            raise NoModelError("an operand is no tensor of known shape")
        proto = to_type_proto(kinds[0])
        dims = proto.tensor_type.shape.dim
        for axis, sizes in enumerate(zip(*(kind.shape for kind in kinds), strict=True)):
            if len(set(sizes)) > 1 and axis != without:
                symbol = f"d{'_'.join(map(str, sizes))}"
                dims[axis].dim_param = symbol
                self.sizes[symbol] = sizes[0]
        if without is not None:
            del dims[without]
        return proto

    def _give(self, graph: onnx.GraphProto, name: str) -> None:
        """Give a model a value that its body takes from outside: as a constant, if it is known."""
        weight = self._known.get(name)
        if weight is not None and weight.data is not None and is_numeric(weight.type):
            graph.initializer.append(to_tensor(name, weight.data, weight.type.dtype))
        else:
            graph.input.append(onnx.helper.make_value_info(name, self._type(name)))

    def _name_outputs(self, graph: onnx.GraphProto) -> None:
        """Give the model's outputs names of their own: a body may give a value twice, or one of outside."""
        fresh = FreshNames(
            {*all_names(self._body), *self._operands, *(v.name for v in self._body.output)}
        )
        made = {name for node in graph.node for name in node.output}
        taken: set[str] = set()
        for value in self._body.output:
            name = value.name
            if name in taken or name not in made:
                name = fresh.new(f"{name}_given")
                graph.node.append(onnx.helper.make_node("Identity", [value.name], [name]))
            taken.add(name)
            graph.output.append(onnx.ValueInfoProto(name=name))

    def _check_carried(self, model: onnx.ModelProto, own: Sequence[onnx.TypeProto]) -> None:
        """Declare the outputs, and check that a turn ends with the types that it begins with."""
        try:
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
            raise NoModelError(first_line(error)) from None
        for value, known in zip(model.graph.output, inferred.graph.output, strict=True):
            if not known.type.WhichOneof("value"):
                raise NoModelError("what it gives has no known type")
            value.type.CopyFrom(known.type)
        if self._node.op_type == "If":
            return
        is_loop = self._node.op_type == "Loop"
        count = self._n_states
        before = own[2:] if is_loop else own[:count]
        after = [value.type for value in model.graph.output][int(is_loop) :][:count]
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            self._compare(place, old, new)

    def _compare(self, place: int, old: onnx.TypeProto, new: onnx.TypeProto) -> None:
        """Note where a turn ends with another size than it begins with.

        Raises:
            NoModelError: that may not be, or nothing is known of it.
        """
        sizes, later = _shape(old), _shape(new)
        if not new.tensor_type.HasField("shape") or len(later) != len(sizes):
            raise NoModelError("a turn may end with another rank than it begins with")
        for axis, (size, after) in enumerate(zip(sizes, later, strict=True)):
            if size == after or (place, axis) in self._changing:
                continue
            if not self._may_change:
                raise NoModelError("a turn may end with another shape than it begins with")
            own = [number for number in (after, size) if isinstance(number, int)]
            later_size = own[0] if own else self.sizes[str(size)]
            self._changing[place, axis] = max(later_size, _LEAST_CHANGING)


def _shape(kind: onnx.TypeProto) -> list[int | str]:
    """Return sizes and names of dimensions; one of no known size equals nothing."""
    dims = kind.tensor_type.shape.dim
    return [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"?{place}"
        for place, dim in enumerate(dims)
    ]


def count_nodes(attrs: Attrs) -> int:
    """Return how many nodes the bodies of an opaque node have."""
    graphs = list(subgraphs(decode(str(attrs["payload"]))))
    count = 0
    while graphs:
        nodes = graphs.pop().node
        count += len(nodes)
        graphs += [inner for node in nodes for inner in subgraphs(node)]
    return count
