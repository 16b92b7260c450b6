"""Dims: each carries the index variable that it runs over, as in an einsum.

A tensor has each variable at most once, so operands are aligned by name and no operator needs to say
which of its dims is which: what ONNX writes as Transpose, Reshape, Expand or Split renames, splits and
merges variables, and moves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Dim:
    """One dim of a tensor.

    Attributes:
        variable: the index variable.
        size: how many values it takes there.
        whole: of a block's tile whose size does not divide that of the tensor in device memory: how many
            values all tiles have together, the last of which has fewer; else 0.
    """

    variable: str
    size: int
    whole: int = 0

    def __str__(self) -> str:
        return f"{self.variable}{'≤' if self.whole else '='}{self.size}"


#: The dims of a tensor, in the order of its layout, the last one contiguous.
Dims: TypeAlias = tuple[Dim, ...]


def dims_of(text: str) -> Dims:
    """Return the dims that a text such as ``"h=2 q=256 d=64"`` lists.

    Raises:
        ShapeError: it is not of that form, or lists a variable twice.
    """
    result = []
    for word in text.split():
        variable, _, size = word.partition("=")
        if not variable or not size.isdecimal() or int(size) == 0:
            raise ShapeError(f"{word!r} is no dim, expected VARIABLE=SIZE")
        result.append(Dim(variable, int(size)))
    return checked(tuple(result), text)


def checked(dims: Dims, what: str) -> Dims:
    """Return dims whose variables are all different.

    Raises:
        ShapeError: two are not.
    """
    names = variables(dims)
    if len(set(names)) < len(names):
        raise ShapeError(f"{what}: an index variable stands twice in [{text_of(dims)}]")
    return dims


def variables(dims: Iterable[Dim]) -> tuple[str, ...]:
    """Return the index variables, in order."""
    return tuple(dim.variable for dim in dims)


def size_of(dims: Dims, variable: str) -> int:
    """Return how many values a variable takes; 1 where no dim carries it."""
    return next((dim.size for dim in dims if dim.variable == variable), 1)


def count(dims: Dims) -> int:
    """Return the number of elements."""
    return math.prod(dim.size for dim in dims)


def with_sizes(dims: Dims, sizes: Mapping[str, int]) -> Dims:
    """Return the dims with other sizes of their variables."""
    return tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)


def without(dims: Dims, dropped: Iterable[str]) -> Dims:
    """Return the dims that carry none of these variables."""
    names = frozenset(dropped)
    return tuple(dim for dim in dims if dim.variable not in names)


def union(first: Dims, second: Dims, what: str) -> Dims:
    """Return the dims of what both are broadcast to: the longer one's order, then what it lacks.

    Raises:
        ShapeError: a variable has two sizes.
    """
    others = {dim.variable: dim for dim in second}
    for dim in first:
        if others.get(dim.variable, dim) != dim:
            sizes = [
                text_of((one,)).removeprefix(dim.variable) for one in (dim, others[dim.variable])
            ]
            one, other = (size.removeprefix("=") for size in sizes)
            raise ShapeError(f"{what}: {dim.variable} is {one} in one operand, {other} in another")
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    return longer + without(shorter, variables(longer))


def text_of(dims: Iterable[Dim]) -> str:
    """Return dims as ``dims_of`` reads them; "≤" of tiles the last of which is smaller."""
    return " ".join(map(str, dims))
