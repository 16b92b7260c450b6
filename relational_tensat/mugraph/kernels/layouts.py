"""Layouts of tensors in memory: a stride for each index variable, in shared memory perhaps swizzled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.mugraph.graph.dims import Dims, count

Ints = NDArray[np.int64]

#: Bytes added to each row.
PADDING_BYTES = 16
#: Chunks of 8 rows change places: as many as banks hold.
_SWIZZLED_ROWS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Where elements of a tensor lie.

    Attributes:
        strides: in elements, by index variable.
        elements: how many there are, with padding.
        swizzled: the innermost variable, if chunks of its rows change places: chunk c of row r lies where
            chunk c ^ r mod 8 would; else empty.
        chunk: elements of a chunk.
    """

    strides: Mapping[str, int]
    elements: int
    swizzled: str = ""
    chunk: int = 1

    def offset(self, at: Mapping[str, str]) -> str:
        """Return the offset of an element, as C spells it; ``at`` has an index for each variable."""
        if not self.swizzled:
            return sum_text((at[variable], stride) for variable, stride in self.strides.items())
        rows = sum_text((at[name], stride) for name, stride in self._rows.items())
        others = sum_text((at[n], s) for n, s in self.strides.items() if n != self.swizzled)
        return f"{others} + ({at[self.swizzled]} ^ ({rows}) % {_SWIZZLED_ROWS} * {self.chunk})"

    def offsets(self, at: Mapping[str, Ints]) -> Ints:
        """Return the offsets of elements; the same in numbers."""
        zero = np.zeros((), np.int64)
        others = (at[n] * s for n, s in self.strides.items() if n != self.swizzled)
        result = sum(others, zero)
        if not self.swizzled:
            return np.asarray(result)
        rows = sum((at[name] * stride for name, stride in self._rows.items()), zero)
        return np.asarray(result + (at[self.swizzled] ^ rows % _SWIZZLED_ROWS * self.chunk))

    @property
    def _rows(self) -> Mapping[str, int]:
        """How many rows lie between neighbours of each variable but the innermost."""
        others = {n: s for n, s in self.strides.items() if n != self.swizzled}
        row = min((s for s in others.values() if s > 1), default=1)
        return {name: stride // row for name, stride in others.items() if stride > 1}

    def moves(self, variable: str, width: int, tile: Dims) -> bool:
        """Return whether so many neighbours along a variable lie in a row, at a multiple of them."""
        others = [
            stride
            for name, stride in self.strides.items()
            if name != variable and any(dim.variable == name and dim.size > 1 for dim in tile)
        ]
        is_whole = not self.swizzled or self.chunk % width == 0
        return self.strides.get(variable) == 1 and is_whole and all(s % width == 0 for s in others)

    def __str__(self) -> str:
        strides = " ".join(f"{variable}:{stride}" for variable, stride in self.strides.items())
        return f"{strides} swizzled" if self.swizzled else strides


def row_major(dims: Dims, padding: int = 0) -> Layout:
    """Return dims one after the other, the last one contiguous.

    Args:
        dims: of the tensor.
        padding: elements that each row is longer, where there are several.
    """
    strides: dict[str, int] = {}
    stride = 1
    for dim in reversed(dims):
        strides[dim.variable] = stride
        stride *= dim.size
        if len(strides) == 1 and dim.size > 1 and any(d.size > 1 for d in dims[:-1]):
            stride += padding
    return Layout(dict(reversed(strides.items())), stride)


def orders(dims: Dims) -> list[Dims]:
    """Return the orders that dims may have: as they are, and with each other one of several elements last.

    Dims of one element come first, as it does not matter where they are.
    """
    real = [dim for dim in dims if dim.size > 1]
    plain = (*(dim for dim in dims if dim.size == 1), *real)
    return [plain, *(_with_last(plain, dim.variable) for dim in reversed(real[:-1]))]


def shared_layouts(dims: Dims, item_bytes: int) -> list[Layout]:
    """Return the layouts that a tensor in shared memory may have: plain, longer rows, swizzled."""
    chunk = PADDING_BYTES // item_bytes
    result = []
    for order in orders(dims):
        plain = row_major(order)
        result.append(plain)
        inner, rows = order[-1] if order else None, count(order[:-1])
        if inner is None or inner.size < 2 or rows < 2:
            continue
        result.append(row_major(order, chunk))
        if inner.size % (_SWIZZLED_ROWS * chunk) == 0:
            result.append(Layout(plain.strides, plain.elements, inner.variable, chunk))
    return result


def are_copied(width: int, device: Dims, order: Dims, layout: Layout) -> bool:
    """Return whether threads can copy so many elements of a tile at once: all have them in a row.

    Args:
        width: how many.
        device: dims in the order of device memory.
        order: dims of the tile as threads go over them.
        layout: of the tile.
    """
    if not order or not device or device[-1].variable != order[-1].variable:
        return False
    return (
        device[-1].size % width == 0
        and order[-1].size % width == 0
        and layout.moves(order[-1].variable, width, order)
    )


def _with_last(dims: Dims, variable: str) -> Dims:
    last = next(dim for dim in dims if dim.variable == variable)
    return (*(dim for dim in dims if dim != last), last)


def sum_text(terms: Iterable[tuple[str, int]]) -> str:
    """Return the sum of indices times factors, as C spells it."""
    parts = [
        index if factor == 1 else f"{index} * {factor}" for index, factor in terms if index != "0"
    ]
    return " + ".join(parts) or "0"
