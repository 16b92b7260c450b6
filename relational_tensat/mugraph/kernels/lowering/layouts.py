"""How tensors lie in shared memory: a stride for each index variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.lowering.statements import Program, Stored

#: Rows of 16-bit elements are 16 bytes longer than needed: the reads of a warp then meet all banks.
PADDING_BYTES = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides in elements by index variable, and how many elements there are with padding."""

    strides: Mapping[str, int]
    elements: int

    def offset(self, at: Mapping[str, str]) -> str:
        """Return the offset of an element, as C spells it; ``at`` has an index for each variable."""
        return sum_text((at[variable], stride) for variable, stride in self.strides.items())


def layout_of(stored: Stored, item_bytes: int) -> Layout:
    """Return the layout of a tensor in shared memory: as it is in device memory, rows padded."""
    return row_major(stored.dims, 0 if stored.is_wide else PADDING_BYTES // item_bytes)


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


def layouts(program: Program, item_bytes: int) -> dict[str, Layout]:
    """Return the layouts of all tensors in shared memory."""
    return {
        name: layout_of(stored, item_bytes)
        for name, stored in program.stored.items()
        if stored.frame is None
    }


def sum_text(terms: Iterable[tuple[str, int]]) -> str:
    """Return the sum of indices times factors, as C spells it."""
    parts = [
        index if factor == 1 else f"{index} * {factor}" for index, factor in terms if index != "0"
    ]
    return " + ".join(parts) or "0"
