"""The operators of which random graphs are made: each a way to draw an ONNX node for given operands.

Written from ONNX's documentation, not from this project's operators: a mistake in those is not repeated.
What a drawn node is not valid for, or what onnxruntime has no kernel for, is found by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bench.fuzz.values import Array, drawn_constant

#: An operand: a value of the graph by its name, or a constant.
Operand: TypeAlias = str | Array

FLOATS = ("float32", "float64", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)
EVERY = (*NUMBERS, "bool")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the graph under construction."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A node that may be added: its operands and attributes."""

    op_type: str
    operands: Sequence[Operand]
    attributes: dict[str, Any] = field(default_factory=dict)
    n_outputs: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is to be drawn: a value, other values of the graph, and the source of chance."""

    value: Value
    others: Sequence[Value]
    random: np.random.Generator

    def constant(self, *shape: int) -> Array:
        """Return a constant of the value's element type."""
        return drawn_constant(self.random, self.value.dtype, shape)

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of several."""
        return choices[int(self.random.integers(len(choices)))]

    def axis(self) -> int:
        """Return an axis of the value; negative half of the time."""
        rank = max(len(self.value.shape), 1)
        axis = int(self.random.integers(rank))
        return axis - rank if self.random.random() < 0.5 else axis

    def second(self) -> Operand:
        """Return another operand of the value's element type that broadcasts with it."""
        others = [
            other
            for other in self.others
            if other.dtype == self.value.dtype and _broadcast(other.shape, self.value.shape)
        ]
        if others and self.random.random() < 0.5:
            return str(self.pick(others).name)
        shape = self.value.shape
        shapes = [(), (1,), shape, shape[-1:], *([(shape[1], 1, 1)] if len(shape) == 4 else [])]
        return self.constant(*self.pick(shapes))


#: Draws a node for a place; None where there is none.
Piece: TypeAlias = Callable[[Place], Draft | None]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(a, b) == b
    except ValueError:
        return False


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _unary(op_type: str, **attributes: Any) -> Piece:
    return lambda place: Draft(op_type, [place.value.name], dict(attributes))


def _binary(op_type: str) -> Piece:
    def draw(place: Place) -> Draft:
        operands: list[Operand] = [place.value.name, place.second()]
        return Draft(op_type, operands[:: place.pick((1, 1, -1))])

    return draw


def _reduce(op_type: str) -> Piece:
    def draw(place: Place) -> Draft | None:
        if not place.value.shape:
            return None
        axes = {place.axis() % len(place.value.shape) for _ in range(2)}
        keep = int(place.pick((0, 1)))
        return Draft(op_type, [place.value.name, _ints(*sorted(axes))], {"keepdims": keep})

    return draw


def _power(place: Place) -> Draft:
    exponents = (0, 1, 2, 3, 0.5, -1) if place.value.dtype.kind == "f" else (0, 1, 2, 3)
    return Draft("Pow", [place.value.name, np.array(place.pick(exponents), place.value.dtype)])


def _clip(place: Place) -> Draft:
    low, high = np.sort(np.array([place.constant(), place.constant()]))
    return Draft("Clip", [place.value.name, np.asarray(low), np.asarray(high)])


def _cast(place: Place) -> Draft:
    import onnx

    dtype = np.dtype(place.pick(EVERY))
    return Draft("Cast", [place.value.name], {"to": onnx.helper.np_dtype_to_tensor_dtype(dtype)})


def _where(place: Place) -> Draft:
    conditions = [
        other.name
        for other in place.others
        if other.dtype == np.bool_ and _broadcast(other.shape, place.value.shape)
    ]
    condition: Operand = (
        place.pick(conditions) if conditions else place.random.random(place.value.shape) < 0.5
    )
    return Draft("Where", [condition, place.value.name, place.second()])


def _matmul(place: Place) -> Draft | None:
    if not place.value.shape:
        return None
    n = place.value.shape[-1]
    others = [v for v in place.others if v.dtype == place.value.dtype and v.shape[-2:-1] == (n,)]
    if others and place.random.random() < 0.4:
        return Draft("MatMul", [place.value.name, place.pick(others).name])
    return Draft("MatMul", [place.value.name, place.constant(n, int(place.pick((1, 3, 4))))])


def _gemm(place: Place) -> Draft | None:
    if len(place.value.shape) != 2:
        return None
    turned = {name: int(place.pick((0, 1))) for name in ("transA", "transB")}
    inner, outer = place.value.shape[1 - turned["transA"]], int(place.pick((1, 3, 4)))
    weight = place.constant(*((outer, inner) if turned["transB"] else (inner, outer)))
    factors = {"alpha": float(place.pick((1, 0.5))), "beta": float(place.pick((1, 2)))}
    return Draft("Gemm", [place.value.name, weight, place.constant(outer)], {**turned, **factors})


def _conv(place: Place) -> Draft | None:
    shape = place.value.shape
    if len(shape) not in (3, 4):
        return None
    rank, channels = len(shape) - 2, shape[1]
    groups = int(place.pick([n for n in (1, 1, 2, channels) if channels % n == 0]))
    filters = groups * int(place.pick((1, 2)))
    kernel = [int(place.pick((1, 2, 3))) for _ in range(rank)]
    weight = place.constant(filters, channels // groups, *kernel)
    attributes = {
        "group": groups,
        "strides": [int(place.pick((1, 1, 2)))] * rank,
        "dilations": [int(place.pick((1, 1, 2)))] * rank,
        "pads": [int(place.pick((0, 1)))] * 2 * rank,
    }
    bias = [place.constant(filters)] if place.random.random() < 0.5 else []
    return Draft("Conv", [place.value.name, weight, *bias], attributes)


def _pool(op_type: str) -> Piece:
    def draw(place: Place) -> Draft | None:
        rank = len(place.value.shape) - 2
        if rank not in (1, 2):
            return None
        attributes: dict[str, Any] = {
            "kernel_shape": [int(place.pick((1, 2, 3)))] * rank,
            "strides": [int(place.pick((1, 2)))] * rank,
            "pads": [int(place.pick((0, 0, 1)))] * 2 * rank,
        }
        if op_type == "AveragePool":
            attributes["count_include_pad"] = int(place.pick((0, 1)))
        return Draft(op_type, [place.value.name], attributes)

    return draw


def _batch_norm(place: Place) -> Draft | None:
    if len(place.value.shape) < 2:
        return None
    n = place.value.shape[1]
    variance = np.abs(place.constant(n)) + np.array(0.1, place.value.dtype)
    statistics = [place.constant(n), place.constant(n), place.constant(n), variance]
    return Draft("BatchNormalization", [place.value.name, *statistics])


def _layer_norm(place: Place) -> Draft | None:
    if not place.value.shape:
        return None
    n = place.value.shape[-1]
    return Draft("LayerNormalization", [place.value.name, place.constant(n), place.constant(n)])


def _along_axis(op_type: str) -> Piece:
    return lambda place: (
        Draft(op_type, [place.value.name], {"axis": place.axis()}) if place.value.shape else None
    )


def _transpose(place: Place) -> Draft:
    order = place.random.permutation(len(place.value.shape)).tolist()
    return Draft("Transpose", [place.value.name], {"perm": order} if order else {})


def _reshape(place: Place) -> Draft:
    size = int(np.prod(place.value.shape))
    shapes = [(size,), (-1,), (1, size), place.value.shape, (*place.value.shape, 1)]
    shapes += [(n, size // n) for n in (2, 3, 4, 6) if size % n == 0]
    return Draft("Reshape", [place.value.name, _ints(*place.pick(shapes))])


def _flatten(place: Place) -> Draft:
    axis = int(place.random.integers(len(place.value.shape) + 1))
    return Draft("Flatten", [place.value.name], {"axis": axis})


def _unsqueeze(place: Place) -> Draft:
    axis = int(place.random.integers(len(place.value.shape) + 1))
    return Draft("Unsqueeze", [place.value.name, _ints(axis)])


def _squeeze(place: Place) -> Draft | None:
    axes = [axis for axis, size in enumerate(place.value.shape) if size == 1]
    return Draft("Squeeze", [place.value.name, _ints(place.pick(axes))]) if axes else None


def _slice(place: Place) -> Draft | None:
    if not place.value.shape:
        return None
    axis = place.axis()
    size = place.value.shape[axis]
    start = int(place.random.integers(max(size, 1)))
    stop = int(place.pick((size, start + 1, -1, 1000)))
    step = int(place.pick((1, 1, 2)))
    return Draft("Slice", [place.value.name, _ints(start), _ints(stop), _ints(axis), _ints(step)])


def _concat(place: Place) -> Draft | None:
    if not place.value.shape:
        return None
    axis = place.axis() % len(place.value.shape)

    def rest(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:axis] + shape[axis + 1 :]

    others = [
        other.name
        for other in place.others
        if other.dtype == place.value.dtype
        and len(other.shape) == len(place.value.shape)
        and rest(other.shape) == rest(place.value.shape)
    ]
    second: Operand = place.pick(others) if others else place.constant(*place.value.shape)
    return Draft("Concat", [place.value.name, second], {"axis": axis})


def _split(place: Place) -> Draft | None:
    axis = place.axis()
    if not place.value.shape or place.value.shape[axis] < 2:
        return None
    first = int(place.random.integers(1, place.value.shape[axis]))
    sizes = _ints(first, place.value.shape[axis] - first)
    return Draft("Split", [place.value.name, sizes], {"axis": axis}, 2)


def _pad(place: Place) -> Draft | None:
    rank = len(place.value.shape)
    if not rank:
        return None
    pads = place.random.integers(0, 2, 2 * rank).tolist()
    if place.random.random() < 0.2:
        return Draft("Pad", [place.value.name, _ints(*pads)], {"mode": "edge"})
    return Draft("Pad", [place.value.name, _ints(*pads), place.constant()])


def _expand(place: Place) -> Draft:
    return Draft("Expand", [place.value.name, _ints(2, *place.value.shape)])


def _tile(place: Place) -> Draft | None:
    repeats = place.random.integers(1, 3, len(place.value.shape)).tolist()
    return Draft("Tile", [place.value.name, _ints(*repeats)]) if repeats else None


def _gather(place: Place) -> Draft | None:
    axis = place.axis()
    if not place.value.shape or not place.value.shape[axis]:
        return None
    indices = place.random.integers(0, place.value.shape[axis], int(place.pick((1, 2, 3))))
    return Draft("Gather", [place.value.name, indices.astype(np.int64)], {"axis": axis})


def _scale_and_zero(place: Place) -> tuple[Array, Array]:
    dtype = np.dtype(place.pick(("int8", "uint8")))
    scale = np.array(place.pick((0.5, 0.1, 0.02)), np.float32)
    return scale, np.array(place.random.integers(0, 6), dtype)


def _quantize(place: Place) -> Draft:
    return Draft("QuantizeLinear", [place.value.name, *_scale_and_zero(place)])


def _dequantize(place: Place) -> Draft:
    scale, zero = _scale_and_zero(place)
    return Draft("DequantizeLinear", [place.value.name, scale, zero.astype(place.value.dtype)])


_ANY = [
    _unary("Identity"), _cast, _where, _transpose, _reshape, _flatten, _unsqueeze, _squeeze, _slice,
    _concat, _split, _expand, _tile, _gather, _unary("Shape"),
]  # fmt: skip
_NUMBER = [
    *(_binary(name) for name in ("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min")),
    *(_binary(name) for name in ("Equal", "Less", "Greater", "GreaterOrEqual")),
    *(_reduce(f"Reduce{name}") for name in ("Sum", "Max", "Min", "Mean", "Prod")),
    *(_unary(name) for name in ("Abs", "Sign")), _clip, _power, _matmul, _pad, _gemm,
]  # fmt: skip
_SIGNED_NUMBER = [_unary("Neg"), _unary("Relu")]
_FLOAT = [
    *(
        _unary(name)
        for name in (
            "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Reciprocal", "Erf", "Floor", "Ceil",
            "Round", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish",
            "Gelu", "Sin", "Cos",
        )
    ),
    _unary("Gelu", approximate="tanh"), _unary("GlobalAveragePool"), _unary("GlobalMaxPool"),
    *(_along_axis(name) for name in ("Softmax", "LogSoftmax")),
    *(_reduce(f"Reduce{name}") for name in ("L1", "L2", "SumSquare", "LogSumExp")),
    _conv, _conv, _conv, _matmul, _matmul, _gemm, _batch_norm, _batch_norm, _layer_norm,
    _pool("MaxPool"), _pool("AveragePool"), _quantize,
]  # fmt: skip
_BOOL = [_binary("And"), _binary("Or"), _binary("Xor"), _unary("Not")]
_UNSIGNED = [_binary(f"Bitwise{name}") for name in ("And", "Or", "Xor")]


def pieces_for(dtype: np.dtype[np.generic]) -> list[Piece]:
    """Return the operators that take values of an element type."""
    name = dtype.name
    pieces = list(_ANY)
    if name == "bool":
        return pieces + 2 * _BOOL
    pieces += _NUMBER
    if name in FLOATS:
        return pieces + _SIGNED_NUMBER + _FLOAT
    pieces += _SIGNED_NUMBER if name in SIGNED else _UNSIGNED
    return pieces + [_dequantize] * (name in ("int8", "uint8"))
