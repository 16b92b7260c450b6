"""Constants that cost the original its digits: sums and products with them are not regrouped.

``(x·10^-6 + 4000) - 4000`` is all rounding: 4000 is no large number, but beside what it is added to. If a
model by itself loses more than a part of the tolerance of its element type, its result depends on the order
of operations, and another order has another result. Rules that may round otherwise leave the constants
alone that have caused it.

A first-order error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 3) along
what is affine in a value that is computed at run time. That value counts as being of size 1; the offsets
that constants add to it are computed as they are, so that it is seen where they cancel. Each affine
value has a size, an offset and rounding errors.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relational_tensat.base.records import record
from relational_tensat.tensor import Array, Graph, Node, TensorType
from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.attributes import float_of, str_of
from relational_tensat.verify.equivalence import ROUNDED_TOLERANCE

Floats: TypeAlias = npt.NDArray[np.float64]

#: Constants that differ from what they meet by a smaller factor than this do no harm.
HARMLESS = 16.0
#: Of larger constants, only the mean and the spread are used, and the size of so many elements.
_FEW = 1 << 16


@record
class Affine:
    """The known facts of a value: arrays that broadcast with it.

    Attributes:
        scale: the size of what varies with the inputs.
        offset: its part that follows from constants alone.
        error: the size of its rounding errors.
        summands, factors: the constants, by name, that are much larger than what they are added to, and
            those that change the scale much.
    """

    scale: Floats = field(default_factory=lambda: np.ones(()))
    offset: Floats = field(default_factory=lambda: np.zeros(()))
    error: Floats = field(default_factory=lambda: np.zeros(()))
    summands: frozenset[str] = frozenset()
    factors: frozenset[str] = frozenset()

    @property
    def size(self) -> float:
        """The size of its largest elements."""
        return float(self.scale.max() + np.abs(self.offset).max())

    def rounded(self, unit: float) -> Affine:
        """Return it rounded once more, by at most ``unit`` of each element."""
        return replace(self, error=self.error + unit * (np.abs(self.offset) + self.scale))

    def plus(self, other: Affine) -> Affine:
        """Return its sum with another value."""
        return Affine(
            self.scale + other.scale,
            self.offset + other.offset,
            self.error + other.error,
            self.summands | other.summands,
            self.factors | other.factors,
        )

    def shifted(self, constant: Floats, name: str) -> Affine:
        """Return it plus a constant of that name."""
        is_heavy = float(np.abs(constant).max()) > HARMLESS * float(self.scale.max())
        summands = self.summands | {name} if is_heavy else self.summands
        return replace(self, offset=self.offset + constant, summands=summands)

    def times(self, factor: Floats, name: str = "") -> Affine:
        """Return it times a constant of that name."""
        size = np.abs(factor)
        is_heavy = float(size.max()) > HARMLESS or float(size.min()) * HARMLESS < 1.0
        return replace(
            self,
            scale=self.scale * size,
            offset=self.offset * factor,
            error=self.error * size,
            factors=self.factors | {name} if is_heavy and name else self.factors,
        )

    def moved(self) -> Affine:
        """Return it with its elements at other places."""
        if max(self.scale.size, self.offset.size, self.error.size) == 1:
            return self
        spread = np.ptp(self.offset)
        return replace(
            self,
            scale=np.asarray(self.scale.max() + spread),
            offset=np.asarray(self.offset.mean()),
            error=np.asarray(self.error.max()),
        )

    def product(self, op: str, matrix: Array, terms: int, unit: float) -> Affine:
        """Return the sums of so many products with a matrix, or with filters."""
        # Counted from the last axis, channels come after the sizes of the image.
        if op != "matmul" and any(
            size > 1 and axis != matrix.ndim - 2
            for axis, size in enumerate(reversed(self.offset.shape))
        ):
            return self.moved().product(op, matrix, terms, unit)
        sample = _sample(matrix)
        growth = math.sqrt(terms * float(np.square(sample).mean()))
        scale = np.asarray(growth * self.scale.max())
        error = growth * (self.error.max() + unit * np.abs(self.offset).max())
        if not self.summands:  # the offset is no larger than what varies
            return replace(self, scale=scale, offset=np.zeros(()), error=np.asarray(error))
        offset = _offset_of_product(op, self.offset, matrix.astype(np.float64))
        return replace(self, scale=scale, offset=offset, error=np.asarray(error))


def reduced(constant: Array) -> Floats:
    """Return a constant in float64; its largest element alone where it has many."""
    if constant.size <= _FEW:
        return np.asarray(constant, np.float64)
    if not any(constant.strides):  # one number
        return np.asarray(constant.flat[0], np.float64)
    ends: tuple[Any, Any] = constant.max(), constant.min()
    return np.asarray(max(map(float, ends), key=abs), np.float64)


def _sample(matrix: Array) -> Floats:
    """Return some elements, in no order; nothing is copied for it."""
    if not any(matrix.strides):
        return np.asarray(matrix.flat[0], np.float64)
    elements = matrix.ravel(order="K")
    return elements[:: max(1, elements.size // _FEW)].astype(np.float64)


def _offset_of_product(op: str, offset: Floats, matrix: Floats) -> Floats:
    """Return what a product makes of an offset: of a convolution, inside the image."""
    if op == "matmul":
        rows = matrix.shape[-2]
        per_row = offset.reshape(-1) if offset.size == rows else np.full(rows, offset.mean())
        return np.asarray(per_row @ matrix)
    filters = matrix.reshape(*matrix.shape[:2], -1).sum(axis=2)
    n_channels = filters.shape[1]
    n_groups = offset.size // n_channels if offset.size > 1 else 1
    per_channel = np.broadcast_to(offset.reshape(-1), n_groups * n_channels)
    groups = zip(np.split(filters, n_groups), np.split(per_channel, n_groups), strict=True)
    sums = np.concatenate([part @ channel for part, channel in groups])
    return sums.reshape(-1, *(1,) * (matrix.ndim - 2))


#: The part of the tolerance that rounding may take in the original.
_SHARE = 0.25


def ill_conditioned(graph: Graph) -> frozenset[str]:
    """Return the names of weights, and of values of ``fill``, that cost the graph its digits.

    Weights without data count as harmless, as does what is computed from constants by more than moving.
    """
    with np.errstate(all="ignore"):
        return _Analysis(graph).run()


class _Analysis:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: dict[str, Affine] = {}
        #: Constants, and the names of the weights that they are made of.
        self._known: dict[str, tuple[Array, str]] = {
            name: (np.asarray(weight.data), name)
            for name, weight in graph.weights.items()
            if weight.data is not None and weight.type.is_float
        }
        self._found: set[str] = set()

    def run(self) -> frozenset[str]:
        for node in self._graph.nodes:
            kind = self._graph.types[node.outputs[0]]
            if isinstance(kind, TensorType) and kind.is_float and not self._is_constant(node, kind):
                value = self._affine(node, 0.5 * FLOAT_FORMATS[kind.dtype].epsilon)
                if value is not None:
                    self._values[node.outputs[0]] = value
                    self._judge(value, kind.dtype)
        return frozenset(self._found)

    def _is_constant(self, node: Node, kind: TensorType) -> bool:
        """Whether a value is known before inference; its data are kept where nothing is computed."""
        (name, *_), inputs = node.outputs, node.inputs
        if node.op == "fill":
            value = np.asarray(float_of(node.attrs, "value"))
            self._known[name] = (np.broadcast_to(value, kind.shape), name)
            return True
        if not inputs or any(operand not in self._known for operand in inputs):
            return False
        operator = get_operator(node.op)
        if len(inputs) == 1 and (operator.free or node.op == "transpose"):
            data, source = self._known[inputs[0]]
            if any(data.strides) and data.size > 1:
                data = np.asarray(operator.evaluate([data], node.attrs))
            else:  # one number, however large the tensor
                data = np.broadcast_to(data.flat[0], kind.shape)
            self._known[name] = (data, source)
        return True

    def _judge(self, value: Affine, dtype: str) -> None:
        """Find the constants by which a value has lost its digits, or may leave its type."""
        kind, size, scale = FLOAT_FORMATS[dtype], value.size, float(value.scale.max())
        if float(value.error.max()) > _SHARE * ROUNDED_TOLERANCE[dtype] * size:
            self._found |= value.summands
        if size > kind.largest / HARMLESS or 0.0 < scale < kind.smallest_normal * HARMLESS:
            self._found |= value.factors

    def _affine(self, node: Node, unit: float) -> Affine | None:
        """Return what is known of a result; None where it is not affine: its size counts as 1."""
        match node.op:
            case "add" | "sub":
                return self._sum(node).rounded(unit)
            case "mul" | "div":
                value = self._scaled(node)
                return None if value is None else value.rounded(unit)
            case "smul":
                factor = np.asarray(float_of(node.attrs, "value"))
                return self._value(node.inputs[0]).times(factor).rounded(unit)
            case "neg":
                return self._value(node.inputs[0]).times(np.asarray(-1.0))
            case "batch_norm":
                return self._normalized(node, unit)
            case "matmul" | "conv":
                return self._product(node, unit)
            case "relu":
                value = self._value(node.inputs[0])
                return replace(value, offset=np.maximum(value.offset, 0.0))
            case "identity":
                return self._value(node.inputs[0])
            case "transpose" | "reshape":
                return self._value(node.inputs[0]).moved()
            case "reduce_mean":
                return self._value(node.inputs[0]).moved().rounded(unit)
        return None

    def _value(self, name: str) -> Affine:
        return self._values.get(name, Affine())

    def _constant(self, name: str) -> tuple[Floats, str] | None:
        if name not in self._known:
            return None
        data, source = self._known[name]
        return reduced(data), source

    def _sum(self, node: Node) -> Affine:
        first, second = node.inputs
        minus = np.asarray(-1.0 if node.op == "sub" else 1.0)
        if (constant := self._constant(second)) is not None:
            return self._value(first).shifted(minus * constant[0], constant[1])
        value = self._value(second).times(minus)
        if (constant := self._constant(first)) is not None:
            return value.shifted(*constant)
        return self._value(first).plus(value)

    def _scaled(self, node: Node) -> Affine | None:
        first, second = node.inputs
        if (constant := self._constant(second)) is not None:
            data, name = constant
            return self._value(first).times(1.0 / data if node.op == "div" else data, name)
        if node.op == "mul" and (constant := self._constant(first)) is not None:
            return self._value(second).times(*constant)
        return None

    def _normalized(self, node: Node, unit: float) -> Affine | None:
        x, *names = node.inputs
        constants = [self._known[name] for name in names if name in self._known]
        if len(constants) < len(names):
            return None
        shape = (-1, *(1,) * (len(self._shape(x)) - 2))
        scale, bias, mean, var = (reduced(data).reshape(shape) for data, _ in constants)
        factor = scale / np.sqrt(var + float_of(node.attrs, "epsilon"))
        (_, (_, bias_name), (_, mean_name), _) = constants
        centred = self._value(x).shifted(-mean, mean_name).rounded(unit)
        return centred.times(factor).shifted(bias, bias_name).rounded(unit)

    def _product(self, node: Node, unit: float) -> Affine | None:
        x, w, *addends = node.inputs
        if w not in self._known or str_of(node.attrs, "act") not in ("none", "relu"):
            return None
        terms = get_operator(node.op).summed_terms(tuple(self._graph.types[n] for n in node.inputs))
        value = self._value(x).product(node.op, self._known[w][0], terms or 1, unit)
        for constant in filter(None, map(self._constant, addends)):
            data, name = constant
            rank = len(self._shape(x)) - 2 if node.op == "conv" else 0
            value = value.shifted(data.reshape(-1, *(1,) * rank) if rank else data, name)
        return value.rounded(unit)

    def _shape(self, name: str) -> tuple[int, ...]:
        kind = self._graph.types[name]
        assert isinstance(kind, TensorType)
        return kind.shape
