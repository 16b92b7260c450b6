"""What an operator is: one class says everything that the rest of the system asks of it.

Signature, shape rule, numeric meaning, flops and bytes, and the ONNX operators it reads and
writes. Adding an operator is adding one class with ``@register``: the graph, the e-graph, the
rules, the cost model, the verifier and both file formats pick it up from here.

Attributes have one canonical form per meaning, since the e-graph tells e-nodes apart by them:
``normalize`` does what needs no operand (defaults, ``dilation=(1, 1)`` is ``()``), ``canonical``
does the rest (negative axes count from the front). ``build_graph`` stores canonical attributes;
``infer`` refuses what is left uncanonical.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from relational_tensat.base.errors import ShapeError, UsageError, nearest
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.types import (
    Array,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

#: The activations that conv, matmul and pool operators can have fused.
ACTIVATIONS = ("none", "relu", "sigmoid", "tanh")

#: What runs when an operator is applied:
#: nothing: what is there is used as it is (leaves, tuples and their parts, identities);
#: view: the same memory under another shape, free on every device;
#: copy: elements move to a tensor of their own, which costs its bytes. No consumer reads a split, slice
#: or transpose in place: all operands are contiguous (a profile may say otherwise, see ``free`` there);
#: compute: a kernel that computes.
KERNELS = ("nothing", "view", "copy", "compute")

#: What operators' methods take: the operands' types, their values, their names in an ONNX graph.
Types: TypeAlias = tuple[ValueType, ...]
Values: TypeAlias = Sequence[Any]
Names: TypeAlias = Sequence[str]

#: No default: the attribute must be given.
REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute of an operator.

    Attributes:
        kind: int, float, str, bool, ints, floats, dtype, padding ("same", "valid" or the ints
            begin_1..begin_n, end_1..end_n), or any.
        default: what holds when it is not given; ``REQUIRED`` when it must be given.
        choices: the values allowed, when they are few.
    """

    name: str
    kind: str
    default: Any = REQUIRED
    choices: tuple[AttrValue, ...] = ()


class OnnxNode(Protocol):
    """An ONNX node as ``Operator.from_onnx`` sees it: static facts only, no protobuf."""

    @property
    def op_type(self) -> str:
        """The ONNX operator's name."""

    @property
    def domain(self) -> str:
        """The operator set that it is from; "" for the default one."""

    @property
    def opset(self) -> int:
        """The version of the default operator set."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, "" where an optional one is left out."""

    @property
    def input_types(self) -> tuple[TensorType | None, ...]:
        """One per input; None where none is known."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs, "" where unused."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Numbers, strings, tuples of these; tensors as NumPy arrays."""

    def constant(self, index: int) -> Array | None:
        """Return the value of an input that is known before inference, None if it is not."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What an ONNX node becomes: an operator, its operands, its attributes.

    An operand is the name of one of the ONNX node's inputs, or another ``Mapped``: a node of one
    output that is made for it first (``Gemm`` with ``transB`` is a matmul of a transpose).
    """

    op: str
    inputs: tuple[str | Mapped, ...]
    attrs: Attrs = field(default_factory=dict)


class OnnxEmitter(Protocol):
    """What ``Operator.to_onnx`` writes with."""

    @property
    def opset(self) -> int:
        """The version of the default operator set that is written."""

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add an ONNX node; return the names of its outputs (fresh ones for a number)."""

    def constant(self, value: Array) -> str:
        """Add (or find) an initializer of this value; return its name."""


class Operator(ABC):
    """The description of one operator. Stateless: one instance serves all."""

    name: ClassVar[str]
    #: Fewest and most inputs; None for no upper limit.
    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    attrs: ClassVar[tuple[Attr, ...]] = ()
    #: Whether the result is a tuple whose parts are separate values of a graph (split, opaque).
    multi_output: ClassVar[bool] = False
    #: What runs when it is applied, one of ``KERNELS``.
    kernel: ClassVar[str] = "compute"
    #: The ONNX operators (default domain) that ``from_onnx`` reads.
    onnx: ClassVar[tuple[str, ...]] = ()
    #: The first version of ONNX's operators in which ``to_onnx`` writes this operator as one node,
    #: where it takes many before.
    onnx_since: ClassVar[int] = 1

    @cached_property
    def declared(self) -> Mapping[str, Attr]:
        """Its attributes by name, in order."""
        return {attr.name: attr for attr in self.attrs}

    @property
    def free(self) -> bool:
        """Whether it never launches a kernel, whatever the device: nothing runs, or it is a view."""
        return self.kernel in ("nothing", "view")

    @abstractmethod
    def infer(self, inputs: Types, attrs: Attrs) -> ValueType:
        """Return the type of the result.

        Raises:
            ShapeError: the operands do not fit; says what was given and what was expected.
        """

    @abstractmethod
    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Compute the result in float64 (integers stay integers); a tuple for a tuple type.

        This is the meaning of the operator: slow, simple, exact.
        """

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Return the number of arithmetic operations; one per output element unless overridden."""
        return sum(part.size for part in tensors_of(output))

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Return the bytes read and written; every operand and result once unless overridden."""
        parts = [part for value in (*inputs, output) for part in tensors_of(value)]
        return sum(part.nbytes for part in parts)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Return which operands are parameters of a network wherever it is run, by their numbers.

        A device measures an operator with these known before inference, as kernels may arrange them
        once. None unless overridden.
        """
        return ()

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """As ``evaluate``, for operators whose meaning needs the operands' declared types."""
        return self.evaluate(inputs, attrs)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """Compute the result with residues modulo a prime in place of floats.

        Integers and booleans stay what they are; operators of nothing else are never asked. Enough
        as it stands for operators whose ``evaluate`` only moves, adds, subtracts and, once,
        multiplies elements; others say here what they are over a field.

        Raises:
            Undefined: a quotient by 0.
        """
        return field.reduced(self.evaluate_typed(inputs, types, attrs))

    def from_onnx(self, node: OnnxNode) -> Mapped | None:
        """Return what an ONNX node of ``self.onnx`` becomes, attributes canonical.

        None where the node cannot be expressed exactly: it stays opaque.
        """
        types = dict(zip(node.inputs, node.input_types, strict=True))
        try:
            mapped = self.read_onnx(node)
            return None if mapped is None else _checked(mapped, types)[0]
        except ShapeError:
            return None

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Translate an ONNX node of any version; ``from_onnx`` then checks operands and attributes.

        Raises:
            ShapeError: the node cannot be expressed (e.g. a shape is known at run time only).
        """
        return None

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the operator as ONNX nodes; return the names of its results (one per part).

        Args:
            inputs: the names of the operands' tensors; a tuple operand (a ``noop``) takes as many
                names as it has parts, one after the other.
            types: one per operand.
            attrs: normalized.

        Valid for ``emitter.opset`` from 13 on.
        """
        raise NotImplementedError(f"{self.name} has no ONNX form")

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        """Return the attributes complete with defaults, in declared order.

        Raises:
            ShapeError: one is unknown, missing, or of the wrong kind.
        """
        for key in attrs:
            if key not in self.declared:
                known = nearest(key, self.declared)
                raise ShapeError(f"{self.name} has no attribute {key!r}{known}")
        result: dict[str, AttrValue] = {}
        for attr in self.attrs:
            value = attrs.get(attr.name, attr.default)
            if value is REQUIRED:
                raise ShapeError(f"{self.name} needs the attribute {attr.name!r}")
            if not _fits(value, attr.kind):
                raise ShapeError(f"{self.name}: {attr.name} = {value!r}, expected {attr.kind}")
            if attr.choices and value not in attr.choices:
                allowed = ", ".join(map(str, attr.choices))
                hint = nearest(str(value), map(str, attr.choices))
                raise ShapeError(
                    f"{self.name}: {attr.name} = {value!r}, expected one of {allowed}{hint}"
                )
            result[attr.name] = value
        return result

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        """Return the normalized attributes in the form that is unique for these operands.

        Raises:
            ShapeError: as ``normalize``, or an axis that the operands do not have.
        """
        return self.normalize(attrs)

    def check(self, inputs: Types, attrs: Attrs) -> ValueType:
        """Check arity and attributes, then infer the result's type.

        Raises:
            ShapeError: as ``infer`` and ``normalize``.
        """
        self.check_arity(len(inputs))
        return self.infer(inputs, self.normalize(attrs))

    def check_arity(self, count: int) -> None:
        """Refuse a number of operands that the operator does not take.

        Raises:
            ShapeError: too few or too many.
        """
        low, high = self.arity
        if count < low or (high is not None and count > high):
            expected = f"{low} or more" if high is None else f"{low} to {high}"
            expected = str(low) if low == high else expected
            raise ShapeError(f"{self.name} takes {expected} inputs, not {count}")


_REGISTRY: dict[str, Operator] = {}
_OperatorClass = TypeVar("_OperatorClass", bound=type[Operator])


def register(cls: _OperatorClass) -> _OperatorClass:
    """Class decorator: make the operator known under its name."""
    if cls.name in _REGISTRY:
        raise UsageError(f"the operator {cls.name!r} is described twice")
    _REGISTRY[cls.name] = cls()
    return cls


def get_operator(name: str) -> Operator:
    """Return the operator of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        hint = nearest(name, _REGISTRY)
        raise UsageError(f"unknown operator {name!r}{hint}") from None


def operators() -> dict[str, Operator]:
    """Return all operators by name."""
    return dict(sorted(_REGISTRY.items()))


def tensor(value: ValueType, what: str) -> TensorType:
    """Return ``value`` as a tensor type.

    Raises:
        ShapeError: it is a tuple.
    """
    if isinstance(value, TensorType):
        return value
    raise ShapeError(f"{what} is a tuple of {len(value)} tensors, expected one tensor")


def _checked(mapped: Mapped, types: Mapping[str, TensorType | None]) -> tuple[Mapped, ValueType]:
    """Type-check a translation, operands first; return it with canonical attributes, and its type.

    Raises:
        ShapeError: an operator does not take its operands or attributes.
    """
    operands: list[str | Mapped] = []
    kinds: list[ValueType] = []
    for operand in mapped.inputs:
        if isinstance(operand, Mapped):
            inner, kind = _checked(operand, types)
            operands.append(inner)
            kinds.append(kind)
            continue
        declared = types[operand]
        if declared is None:
            raise ShapeError(f"the type of {operand!r} is not known")
        operands.append(operand)
        kinds.append(declared)
    operator = get_operator(mapped.op)
    operator.check_arity(len(kinds))
    attrs = operator.canonical(tuple(kinds), mapped.attrs)
    return Mapped(mapped.op, tuple(operands), attrs), operator.infer(tuple(kinds), attrs)


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bool":
            return isinstance(value, bool)
        case "str" | "dtype":
            return isinstance(value, str)
        case "ints":
            return isinstance(value, tuple) and all(_fits(item, "int") for item in value)
        case "floats":
            return isinstance(value, tuple) and all(_fits(item, "float") for item in value)
        case "padding":
            return value in ("same", "valid") or _fits(value, "ints")
        case _:
            return True


def activate(name: str, array: Any) -> Any:
    """Apply a fused activation to an array."""
    match name:
        case "none":
            return array
        case "relu":
            return np.maximum(array, 0)
        case "sigmoid":
            decay = np.exp(-np.abs(array))  # never overflows
            return np.where(array >= 0, 1.0, decay) / (1.0 + decay)
        case "tanh":
            return np.tanh(array)
        case _:
            raise ShapeError(f"unknown activation {name!r}{nearest(name, ACTIVATIONS)}")
