"""Shape and element-type checks that several operators share."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES, TensorType, ValueType

#: Element types that can be negated.
SIGNED_DTYPES = FLOAT_DTYPES | {"int64", "int32", "int16", "int8"}
#: Element types that can be added; everything but bool.
NUMBER_DTYPES = frozenset(DTYPE_BYTES) - {"bool"}


def one_dtype(op: str, kinds: Sequence[TensorType], accepted: frozenset[str]) -> str:
    """Return the element type that all operands share.

    Raises:
        ShapeError: they differ, or the operator does not compute with that type.
    """
    dtype = kinds[0].dtype
    if dtype not in accepted:
        family = "floats" if accepted == FLOAT_DTYPES else "numbers"
        raise ShapeError(f"{op} takes {family}, not {dtype}")
    for kind in kinds:
        if kind.dtype != dtype:
            raise ShapeError(
                f"{op} takes operands of one element type, not {dtype} and {kind.dtype}"
            )
    return dtype


def operands(op: str, inputs: Sequence[ValueType]) -> tuple[TensorType, ...]:
    """Return all operands as tensor types.

    Raises:
        ShapeError: one is a tuple.
    """
    return tuple(tensor(value, f"{op}: operand {i}") for i, value in enumerate(inputs))


def broadcast(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that NumPy broadcasting gives.

    Raises:
        ShapeError: two dimensions differ and neither is 1.
    """
    result: list[int] = [1] * max(map(len, shapes))
    for shape in shapes:
        for back, size in enumerate(reversed(shape), start=1):
            if size != 1:
                if result[-back] not in (1, size):
                    shapes_text = " and ".join(str(list(operand_shape)) for operand_shape in shapes)
                    raise ShapeError(f"{op}: shapes {shapes_text} do not broadcast")
                result[-back] = size
    return tuple(result)


def check_axis(op: str, axis: int, rank: int) -> int:
    """Return a canonical axis.

    Raises:
        ShapeError: it is not in 0..rank-1.
    """
    if not 0 <= axis < rank:
        raise ShapeError(f"{op}: axis {axis} is not in 0..{rank - 1} (rank {rank})")
    return axis


def front_axis(op: str, axis: int, rank: int) -> int:
    """Return an axis counted from the front; a negative one counts from the back.

    Raises:
        ShapeError: it is not in -rank..rank-1.
    """
    if not -rank <= axis < rank:
        raise ShapeError(f"{op}: axis {axis} is not in {-rank}..{rank - 1} (rank {rank})")
    return axis % rank


def spatial(op: str, kind: TensorType) -> tuple[int, ...]:
    """Return the spatial sizes of a tensor ``[N, C, s1, ..]`` of 1, 2 or 3 spatial dimensions.

    Raises:
        ShapeError: it has another rank.
    """
    if not 3 <= kind.rank <= 5:
        raise ShapeError(f"{op} takes [N, C, 1 to 3 spatial dimensions], not {kind}")
    return kind.shape[2:]


def check_length(op: str, label: str, values: Sequence[int], count: int) -> None:
    """Refuse a list of sizes that is not of the expected length or not positive.

    Raises:
        ShapeError: it is neither.
    """
    if len(values) != count or (values and min(values) < 1):
        raise ShapeError(f"{op}: {label} {list(values)}, expected {count} positive numbers")
