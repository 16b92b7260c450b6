"""Tensors of a Triton program: an expression, and which index variable each of its axes runs over.

Triton's sizes are powers of 2, so an axis may be longer than its variable: what lies beyond is *padding*,
which holds zeros where it was loaded and anything after a function of it. So is what a last tile lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.kernels.lowering.indices import end_name
from relational_tensat.mugraph.kernels.lowering.names import identifier

#: The least length of a product's sum in tensor cores, of any element type.
LEAST_PRODUCT = 16


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor in a Triton program.

    Attributes:
        text: an expression.
        axes: a variable and its size for each axis; sizes are those without padding.
        is_wide: whether elements are float32; otherwise they are of the kernel's element type.
    """

    text: str
    axes: Dims
    is_wide: bool

    @property
    def wide(self) -> str:
        """The expression with elements of float32."""
        return self.text if self.is_wide else f"{self.text}.to(tl.float32)"


class Axes:
    """Lengths of axes, and the names of the indices along them."""

    def __init__(self, multiplied: Collection[str], looped: Collection[str] = ()) -> None:
        """Begin.

        Args:
            multiplied: the variables no axis of which is shorter than tensor cores need.
            looped: those that the loop splits; its last iteration may have fewer elements.
        """
        self._multiplied = frozenset(multiplied)
        self.looped = frozenset(looped)
        self._indices: dict[Dim, str] = {}

    def length(self, dim: Dim) -> int:
        """Return a power of 2 that is at least as long."""
        least = LEAST_PRODUCT if dim.variable in self._multiplied else 1
        return max(1 << (dim.size - 1).bit_length(), least)

    def shape(self, axes: Sequence[Dim]) -> list[int]:
        """Return the lengths of axes."""
        return [self.length(dim) for dim in axes]

    def index(self, dim: Dim) -> str:
        """Return the name of the indices 0, 1, … along an axis."""
        if dim not in self._indices:
            plain = f"i_{identifier(dim.variable)}"
            taken = plain in self._indices.values()
            self._indices[dim] = f"{plain}_{dim.size}" if taken else plain
        return self._indices[dim]

    def declarations(self) -> list[str]:
        """Return a line for each index that was used."""
        return [f"{name} = tl.arange(0, {self.length(dim)})" for dim, name in self._indices.items()]

    def along(self, dim: Dim, axes: Sequence[Dim]) -> str:
        """Return the indices along one of several axes, to be broadcast over the others."""
        return f"{self.index(dim)}{_places([other == dim for other in axes])}"

    def mask(self, axes: Sequence[Dim], only: Sequence[str] = ()) -> str:
        """Return where elements are no padding; empty if there is none.

        Args:
            axes: of the tensor.
            only: the variables whose padding counts; all, if none is named.
        """
        parts = [
            f"({self.along(dim, axes)} < {end_name(dim.variable) if dim.whole else dim.size})"
            for dim in axes
            if self.is_padded(dim) and (not only or dim.variable in only)
        ]
        return " & ".join(parts)

    def is_padded(self, dim: Dim) -> bool:
        """Whether an axis is longer than its variable, in the last tile at least."""
        return dim.whole > 0 or self.length(dim) != dim.size

    def aligned(self, value: Value, axes: Sequence[Dim], text: str) -> str:
        """Return an expression of a tensor's axes as one of these axes, which include them."""
        order = [dim for dim in axes if dim in value.axes]
        if order != list(value.axes):
            places = [value.axes.index(dim) for dim in order]
            text = f"tl.permute({text}, {places})"
        if len(order) < len(axes) and value.axes:
            text = f"{_atom(text)}{_places([dim in value.axes for dim in axes])}"
        return text

    def spread(self, value: Value, axes: Sequence[Dim], text: str) -> str:
        """Return the same with axes that it lacks repeated, rather than of length 1."""
        aligned = self.aligned(value, axes, text)
        if set(value.axes) == set(axes) or not axes:
            return aligned
        return f"tl.broadcast_to({aligned}, {self.shape(axes)})"

    def matrix(self, value: Value, groups: Sequence[Dims], text: str) -> str:
        """Return an expression with the axes of each group as one; the first group may be absent."""
        present = [group for place, group in enumerate(groups) if place or group]
        axes = [dim for group in present for dim in group]
        text = self.spread(value, axes, text)
        if all(len(group) == 1 for group in present):
            return text
        return f"tl.reshape({text}, {[count_of(self.shape(group)) for group in present]})"


def real(dims: Dims) -> Dims:
    """Return the dims that an axis stands for: those of more than one element."""
    return tuple(dim for dim in dims if dim.size > 1)


def union(values: Sequence[Value]) -> Dims:
    """Return the axes of several tensors together, those of the one that has most first."""
    most = max(values, key=lambda value: len(value.axes)).axes
    more = (dim for value in values for dim in value.axes)
    return tuple(dict.fromkeys([*most, *more]))


def renamed(value: Value, old: str, new: str) -> Value:
    """Return a tensor with another name of a variable."""
    axes = (Dim(new, dim.size) if dim.variable == old else dim for dim in value.axes)
    return replace(value, axes=tuple(axes))


def count_of(sizes: Sequence[int]) -> int:
    """Return the product of lengths."""
    result = 1
    for size in sizes:
        result *= size
    return result


def _atom(text: str) -> str:
    """Return an expression that a subscript may follow."""
    is_call = text.endswith(")") and text.startswith(("tl.", "("))
    return text if text.isidentifier() or is_call else f"({text})"


def _places(present: Sequence[bool]) -> str:
    """Return a subscript that has an axis of length 1 where one is absent; empty where none is."""
    if all(present):
        return ""
    return f"[{', '.join(':' if here else 'None' for here in present)}]"
