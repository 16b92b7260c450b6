"""Dims, each with the index variable that it runs over, as in an einsum; and windows of tensors.

A tensor has each variable at most once. So operands are aligned by name, and no operator needs to say
which of its dims is which. ONNX's Transpose, Reshape, Expand and Split rename, split and merge variables,
and move nothing.

A window is the part of an input that a kernel loads where a model slices, splits, gathers or joins: its
index may be offset and strided. So a slice of an input moves nothing, and a piece of a concatenation is the
piece with zeros beside it. A window that slides has an index for its place and one for what it shows there:
a convolution of each channel is a sum of products with the latter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, cast

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.tensor.types import Attrs


@dataclass(frozen=True, slots=True)
class Dim:
    """One dim of a tensor.

    Attributes:
        variable: the index variable.
        size: how many values it takes there.
        whole: of a block's tile whose size does not divide that of the tensor in device memory: the number
            of values of all tiles together, the last of which has fewer; else 0.
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


@dataclass(frozen=True, slots=True)
class Window:
    """Element i of a window is element ``offset + step i`` of what it is taken of, or 0.

    Where it slides, several elements of it have the same i.

    Attributes:
        variables: those that it is taken along, as one index, the first the slowest; empty if nothing has
            more than one element there.
        into: the variables that i runs over, the first the slowest; none for one element.
        sizes: of these.
        offset, step: in elements along ``variables``.
        first, last: elements below ``first`` and from ``last`` on are 0.
        strides: i is the sum of the variables of ``into``, each times its stride; empty where i counts them
            one after the other. Of a convolution with stride 2: 2 for places, 1 for taps.

    >>> Window(("h",), ("q", "k"), (4, 3), -1, 1, 1, 8, (2, 1)).extent
    9
    """

    variables: tuple[str, ...]
    into: tuple[str, ...]
    sizes: tuple[int, ...]
    offset: int
    step: int
    first: int
    last: int
    strides: tuple[int, ...] = ()

    @classmethod
    def of(cls, attrs: Attrs) -> Window:
        """Return the window that an operation's attributes, or JSON's, are.

        Raises:
            ShapeError: they make no window.
        """
        lists = [attrs["variables"], attrs["into"], attrs["sizes"], attrs.get("strides", ())]
        numbers = [attrs[name] for name in ("offset", "step", "first", "last")]
        if not all(isinstance(one, (tuple, list)) for one in lists):
            raise ShapeError("window: variables, into, sizes and strides are lists")
        along, into, sizes, strides = (tuple(cast(Any, one)) for one in lists)
        if not all(isinstance(number, int) for number in (*numbers, *sizes, *strides)):
            raise ShapeError(
                "window: sizes, strides, offset, step, first and last are whole numbers"
            )
        offset, step, first, last = cast(Any, numbers)
        return cls(along, into, sizes, offset, step, first, last, strides)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of an operation; strides where it slides."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return every if self.strides else {k: v for k, v in every.items() if k != "strides"}

    @property
    def size(self) -> int:
        """The number of elements along it."""
        return math.prod(self.sizes)

    @property
    def of_each(self) -> tuple[int, ...]:
        """By how much i grows with each variable of ``into``."""
        places = range(len(self.sizes))
        return self.strides or tuple(math.prod(self.sizes[place + 1 :]) for place in places)

    @property
    def extent(self) -> int:
        """One more than the largest i."""
        largest = (s * (size - 1) for s, size in zip(self.of_each, self.sizes, strict=True))
        return 1 + sum(largest)

    @property
    def bound(self) -> WindowBound | None:
        """Which elements are 0 in any tensor; None for none."""
        into = tuple(map(Dim, self.into, self.sizes))
        bound = WindowBound(into, self.of_each, self.first, self.last, self.extent)
        return bound if self.is_bounded else None

    @property
    def is_bounded(self) -> bool:
        """Whether some elements are 0 in any tensor."""
        return self.first > 0 or self.last < self.extent

    def dims(self, source: Dims) -> Dims:
        """Return the dims of a window of a tensor.

        Raises:
            ShapeError: the tensor lacks a variable, or has fewer elements along them.
        """
        missing = set(self.variables) - set(variables(source))
        if missing or len(self.into) != len(self.sizes) or self.step == 0:
            raise ShapeError(f"window: no window of [{variables(source)}] along {self.variables}")
        if self.strides and (len(self.strides) != len(self.into) or min(self.strides) < 1):
            raise ShapeError(
                f"window: strides {self.strides} of {self.into}, expected one each, from 1 on"
            )
        length = math.prod(size_of(source, name) for name in self.variables)
        if not 0 <= self.first < self.last <= self.extent:
            raise ShapeError(f"window: {self.first} to {self.last} of {self.extent} elements")
        ends = [self.offset + self.step * place for place in (self.first, self.last - 1)]
        if min(ends) < 0 or max(ends) >= length:
            raise ShapeError(f"window: elements {ends[0]} to {ends[1]} of {length}")
        into = tuple(map(Dim, self.into, self.sizes))
        if not self.variables:
            return checked((*source, *into), "window")
        result: list[Dim] = []
        for dim in source:
            result += into if dim.variable == self.variables[0] else []
            result += [] if dim.variable in self.variables else [dim]
        return checked(tuple(result), "window")

    def taken(self, source: Labelled) -> Labelled:
        """Return the elements; the new axes come last."""
        kept = [label for label in source.labels if label not in self.variables]
        moved = source.ordered([*kept, *self.variables]).data
        own = moved.shape[: moved.ndim - len(self.variables)]
        flat = moved.reshape(*own, -1)
        place = np.zeros(self.sizes, np.int64)
        for axis, (stride, size) in enumerate(zip(self.of_each, self.sizes, strict=True)):
            place += stride * np.arange(size).reshape(-1, *(1,) * (len(self.sizes) - axis - 1))
        is_there = (place >= self.first) & (place < self.last)
        data = np.zeros((*own, *self.sizes), flat.dtype)
        data[..., is_there] = flat[..., self.offset + self.step * place[is_there]]
        return Labelled((*kept, *self.into), data)


def windowed(dims: Dims, windows: Sequence[Window]) -> Dims:
    """Return the dims of windows of windows, the first of the tensor.

    Raises:
        ShapeError: it has no such windows.
    """
    for window in windows:
        dims = window.dims(dims)
    return dims


def composed(outer: Window, inner: Window) -> Window | None:
    """Return a window of a window as one; None where it cannot be one, or the inner one is along others.

    Args:
        outer: of the tensor.
        inner: of that.
    """
    if outer.into != inner.variables or math.prod(outer.sizes) < 1 or outer.strides:
        return None
    places = [
        place
        for place in range(inner.first, inner.last)
        if outer.first <= inner.offset + inner.step * place < outer.last
    ]
    if not places:
        return None
    offset = outer.offset + outer.step * inner.offset
    return Window(
        outer.variables, inner.into, inner.sizes, offset, outer.step * inner.step,
        places[0], places[-1] + 1, inner.strides,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowBound:
    """Elements are 0 unless ``first`` ≤ i < ``last``; i is the sum of the dims' indices times ``strides``.

    Attributes:
        extent: one more than the largest i.
    """

    dims: Dims
    strides: tuple[int, ...]
    first: int
    last: int
    extent: int

    def indices(self, variable: str) -> tuple[int, int]:
        """Return the indices of a variable, all others at 0, from which on and before which none is 0."""
        stride = self.strides[variables(self.dims).index(variable)]
        return -(-self.first // stride), -(-self.last // stride)


@dataclass(frozen=True, slots=True)
class Source:
    """Where elements of windows lie in the tensor in device memory.

    Attributes:
        start: of the element at 0 of all variables, in elements; it may lie outside where that is 0.
        strides: by variable, in elements.
        bounds: the elements that are 0.
    """

    start: int
    strides: Mapping[str, int]
    bounds: tuple[WindowBound, ...] = ()


def source_of(tensor: Dims, windows: Sequence[Window]) -> Source:
    """Return where windows of windows of a tensor lie.

    Args:
        tensor: its dims in their order in memory, the last one contiguous.
        windows: the first is of the tensor.

    Raises:
        ShapeError: one is along variables that do not lie side by side, or along what another leaves at 0.
    """
    strides = {dim.variable: count(tensor[place + 1 :]) for place, dim in enumerate(tensor)}
    start, dims = 0, tensor
    bounds: tuple[WindowBound, ...] = ()
    for window in windows:
        taken = {name: strides.pop(name) for name in window.variables}
        if any(set(taken) & set(variables(bound.dims)) for bound in bounds):
            raise ShapeError("window: of what another leaves at 0")
        stride = 0
        for name in reversed(window.variables):
            stride = stride or taken[name]
        expected = stride
        for name in reversed(window.variables):
            if taken[name] != expected:
                raise ShapeError(f"window: {window.variables} do not lie side by side")
            expected *= size_of(dims, name)
        dims = window.dims(dims)
        start += window.offset * stride
        for name, of_each in zip(window.into, window.of_each, strict=True):
            strides[name] = window.step * stride * of_each
        bounds = (*bounds, window.bound) if window.bound else bounds
    return Source(start, strides, bounds)
