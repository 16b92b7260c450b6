"""Where an element lies, as C spells it: an index for each variable, of tiles and of what views show.

Formulas are spelled here, too: an element of a tensor, given an index for each of its variables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import (
    Dim,
    Dims,
    Window,
    WindowBound,
    count,
    size_of,
    source_of,
)
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import BlockGraph, InputIterator, Operation, Saver
from relational_tensat.mugraph.graph.partial_tiles import TileSplit
from relational_tensat.mugraph.kernels.layouts import Layout, are_copied, row_major, sum_text
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    Program,
    Reduce,
    fade_of,
    identifier,
)
from relational_tensat.tensor.spellings import SPELLINGS

Index = TypeVar("Index")


@dataclass(frozen=True, slots=True)
class Indexing(Generic[Index]):
    """How indices are computed of others.

    Attributes:
        joined: one index of several, the last the fastest, each with its extent.
        parts_of: the opposite.
        taken: the index, in what a window is taken of, of its element of an index.
    """

    joined: Callable[[Sequence[tuple[Index, int]]], Index]
    parts_of: Callable[[Index, Dims], Mapping[str, Index]]
    taken: Callable[[Index, Window], Index]


def viewed_index(
    view: Operation, source: Dims, at: Mapping[str, Index], indexing: Indexing[Index]
) -> Mapping[str, Index]:
    """Return the index of a view's element in what it is a view of.

    Args:
        view: the view, or a window: then where it is not 0.
        source: dims of what it is a view of.
        at: an index for each variable of the view.
        indexing: computes with these.
    """
    match view.op:
        case "rename":
            return {**at, str(view.attrs["variable"]): at[str(view.attrs["into"])]}
        case "split":
            sizes = cast(tuple[int, ...], view.attrs["sizes"])
            parts = [
                (at[name], size)
                for name, size in zip(names(view.attrs, "into"), sizes, strict=True)
            ]
            return {**at, str(view.attrs["variable"]): indexing.joined(parts)}
        case "merge":
            merged = _in_order(names(view.attrs, "variables"), source)
            return {**at, **indexing.parts_of(at[str(view.attrs["into"])], merged)}
        case "window":
            window = Window.of(view.attrs)
            index = indexing.taken(_window_index(window, at, indexing), window)
            return {**at, **indexing.parts_of(index, _in_order(window.variables, source))}
        case _:
            return at


def _window_index(window: Window, at: Mapping[str, Index], indexing: Indexing[Index]) -> Index:
    """Return which of a window's elements, one after the other, an index for each variable is."""
    if window.strides:
        raise InputError("window: one that slides is of what a kernel loads")
    own = tuple(map(Dim, window.into, window.sizes))
    return indexing.joined([(at[dim.variable], dim.size) for dim in own])


def _in_order(variables: Sequence[str], source: Dims) -> Dims:
    return tuple(dim for name in variables for dim in source if dim.variable == name)


class Formulas(ABC):
    """Spells the tensors of a program; how stored ones are read is the target's."""

    #: Functions that a target calls otherwise.
    names: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: Program) -> None:
        self._program = program

    @abstractmethod
    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return the element of a stored tensor, as a float."""

    def element(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element of any tensor, as a float.

        Args:
            name: of the tensor.
            at: an index for each of its variables at least.
        """
        if name in self._program.stored:
            return self.stored(name, at)
        formula = self._program.formulas[name]
        operands = formula.operands
        match formula.op:
            case "scale":
                return f"({self.element(operands[0], at)} * {number(formula.attrs['value'])})"
            case "shift":
                return f"({self.element(operands[0], at)} + {number(formula.attrs['value'])})"
            case "root":
                mean = f"{self.element(operands[0], at)} * {number(formula.attrs['value'])}"
                return f"sqrtf({mean} + {number(formula.attrs['epsilon'])})"
            case op if op in SPELLINGS:
                return self.names.get(op, SPELLINGS[op].c).format(
                    *(self.element(name, at) for name in operands),
                    value=number(formula.attrs.get("value", 0.0)),
                )
        element = self.element(operands[0], self.viewed(formula, at))
        is_there = _inside(formula, at) if formula.op == "window" else ""
        return f"({is_there} ? {element} : 0.0f)" if is_there else element

    def place(self, name: str, at: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        """Return the stored tensor that a tensor is a view of, and the element's index there."""
        while name not in self._program.stored:
            formula = self._program.formulas[name]
            name, at = formula.operands[0], self.viewed(formula, at)
        return name, at

    def viewed(self, view: Operation, at: Mapping[str, str]) -> Mapping[str, str]:
        """Return the index of a view's element in what it is a view of."""
        source = self._program.dims[view.operands[0]]
        return viewed_index(view, source, at, _INDEXING)


def parts_of(index: str, dims: Dims) -> dict[str, str]:
    """Return the index of each variable where one index counts them all, the last the fastest."""
    real = [dim for dim in dims if dim.size > 1]
    result = {dim.variable: "0" for dim in dims}
    step = 1
    for place, dim in reversed(list(enumerate(real))):
        text = index if step == 1 else f"{index} / {step}"
        result[dim.variable] = text if place == 0 else f"{text} % {dim.size}"
        step *= dim.size
    simple = len(real) <= 1
    return {name: text if simple or text == "0" else f"({text})" for name, text in result.items()}


def summand(reduce: Reduce, value: str) -> str:
    """Return what a reduction takes of an element."""
    return f"square({value})" if reduce.kind == "squares" else value


def reduced(reduce: Reduce, cell_of: Callable[[str], str]) -> list[str]:
    """Return the lines that store one result of a reduction, which is x.

    Args:
        reduce: the reduction.
        cell_of: where a tensor has the element of this result.
    """
    cell = cell_of(reduce.output)
    if reduce.fade:
        return [
            f"const float before = {cell}, now = larger(before, x);",
            f"{cell_of(reduce.fade)} = fade(before, now);",
            f"{cell} = now;",
        ]
    if reduce.rescale:
        return [f"{cell} = {cell} * {cell_of(fade_of(reduce.rescale))} + x;"]
    if reduce.adds and reduce.kind in MAXIMA:
        return [f"{cell} = larger({cell}, x);"]
    return [f"{cell} {'+=' if reduce.adds else '='} x;"]


def joined(parts: Sequence[tuple[str, int]]) -> str:
    """Return one index of several, the last the fastest, each with its extent."""
    text = "0"
    for index, extent in parts:
        if extent > 1 and text != "0":
            text = f"({text} * {extent}{'' if index == '0' else f' + {index}'})"
        elif extent > 1:
            text = index
    return text


def number(value: object) -> str:
    """Return a number as C spells a float; infinity without a header."""
    spelled = float(cast(float, value))
    if math.isinf(spelled):
        return f"({math.copysign(1.0, spelled)!r}f / 0.0f)"
    return f"{spelled!r}f"


def _taken(index: str, window: Window) -> str:
    step = index if window.step == 1 else f"{window.step} * ({index})"
    return f"({window.offset} + {step})"


_INDEXING = Indexing(joined, parts_of, _taken)


def _inside(formula: Operation, at: Mapping[str, str]) -> str:
    """Return the condition that a window's element is not 0 whatever it is of; empty for none."""
    window = Window.of(formula.attrs)
    index = _window_index(window, at, _INDEXING)
    conditions = [f"({index}) >= {window.first}"] if window.first else []
    conditions += [f"({index}) < {window.last}"] if window.last < window.size else []
    return " && ".join(conditions)


#: Of what threads copy at once, the best first.
COPIED_BYTES = (16, 8, 4)
#: The name of the loop's counter.
ITERATION = "iteration"


def tile_start(
    iterator: InputIterator, tensor: Dims, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> str:
    """Return the offset of a tile's first element in elements.

    Args:
        iterator: the maps.
        tensor: dims in device memory, in their order there.
        tile: dims of the tile.
        block: the grid and the loop.
        blocks: how the target calls the block's index along each axis of the grid.
    """
    starts = _starts(iterator, tile, block, blocks)
    if not iterator.windows:
        return _offset(starts, tensor)
    source = source_of(tensor, iterator.windows)
    text = sum_text((starts.get(name, "0"), stride) for name, stride in source.strides.items())
    return f"{text} + {source.start}" if source.start else text


def element_offset(iterator: InputIterator, at: Mapping[str, str], tensor: Dims) -> str:
    """Return the offset of a tile's element from its first one.

    Args:
        iterator: the load.
        at: an index for each variable of the tile.
        tensor: dims in device memory, in their order there.
    """
    if not iterator.windows:
        return offset(at, tensor)
    strides = source_of(tensor, iterator.windows).strides
    return sum_text((at.get(name, "0"), stride) for name, stride in strides.items())


def inside(
    iterator: InputIterator,
    tile: Dims,
    block: BlockGraph,
    blocks: Sequence[str],
    at: Mapping[str, str],
) -> str:
    """Return the condition that a tile's element is not 0 whatever the tensor has; empty for none.

    Args:
        iterator, tile, block, blocks: as for ``tile_start``.
        at: an index for each variable of the tile.
    """
    starts, conditions = _starts(iterator, tile, block, blocks), []
    for bound in bounds_of(iterator):
        index = place_in(bound, starts, at)
        conditions += [f"({index}) >= {bound.first}"] if bound.first else []
        conditions += [f"({index}) < {bound.last}"] if bound.last < bound.extent else []
    return " && ".join(conditions)


def place_in(bound: WindowBound, starts: Mapping[str, str], at: Mapping[str, str]) -> str:
    """Return an element's place, which decides whether it is 0: see ``WindowBound``.

    Args:
        starts: the index of a tile's first element along each variable.
        at: an index within the tile for each variable.
    """
    parts = []
    for dim, stride in zip(bound.dims, bound.strides, strict=True):
        index = sum_text([(starts[dim.variable], 1), (at[dim.variable], 1)])
        parts.append((f"({index})" if "+" in index else index, stride))
    return sum_text(parts)


def source_layout(iterator: InputIterator, tensor: Dims) -> Layout:
    """Return how what an iterator loads lies in device memory, without its offset."""
    if not iterator.windows:
        return row_major(tensor)
    return Layout(source_of(tensor, iterator.windows).strides, count(tensor))


def load_width(
    iterator: InputIterator, tensor: Dims, order: Dims, layout: Layout, item_bytes: int
) -> int:
    """Return how many elements of a tile threads copy at once: of 16, 8 or 4 bytes, or one.

    Of a window only where each row of it begins at a multiple of them, and nothing of it is 0; of tiles the
    last of which is smaller only where all of them exist, or none. Bools become numbers one by one.

    Args:
        iterator: the load.
        tensor: dims in device memory, in their order there.
        order: dims of the tile as threads go over them.
        layout: of the tile.
        item_bytes: of an element.
    """
    if iterator.is_condition:
        return 1
    widths = (size // item_bytes for size in COPIED_BYTES if size > item_bytes)
    return next((w for w in widths if _are_copied(w, iterator, tensor, order, layout)), 1)


def _are_copied(
    width: int, iterator: InputIterator, tensor: Dims, order: Dims, layout: Layout
) -> bool:
    """Return whether so many elements of a tile can be copied at once; see ``load_width``."""
    if not order or order[-1].whole % width:
        return False
    if not iterator.windows:
        return are_copied(width, tensor, order, layout)
    source = source_of(tensor, iterator.windows)
    if source.bounds or source.start % width or order[-1].size % width:
        return False
    inner, *others = sorted(source.strides.items(), key=lambda item: item[0] != order[-1].variable)
    is_even = inner == (order[-1].variable, 1) and all(stride % width == 0 for _, stride in others)
    return is_even and layout.moves(order[-1].variable, width, order)


def bounds_of(iterator: InputIterator) -> Sequence[WindowBound]:
    """Return what is 0 of windows: that does not depend on how the tensor lies."""
    return [window.bound for window in iterator.windows if window.bound]


def _starts(
    iterator: InputIterator, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> dict[str, str]:
    """Return the index of a tile's first element along each of its variables."""
    starts = {}
    for dim in tile:
        parts = _axes(iterator.imap, dim.variable, block, blocks)
        if iterator.fmap == dim.variable and block.loop > 1:
            parts.append((ITERATION, block.loop))
        starts[dim.variable] = joined([*parts, ("0", dim.size)])
    return starts


def result_start(
    saver: Saver, result: Dims, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> str:
    """Return the offset in the result where a block's part of it begins, in elements.

    Args:
        saver: the maps.
        result: dims in device memory.
        tile, block, blocks: as for ``tile_start``.
    """
    starts = {}
    for dim in result:
        parts = _axes(saver.omap, dim.variable, block, blocks)
        starts[dim.variable] = joined([*parts, ("0", size_of(tile, dim.variable))])
    return _offset(starts, result)


def offset(at: Mapping[str, str], tensor: Dims) -> str:
    """Return the offset of an element from there; variables that the tile lacks are 0."""
    return _offset({dim.variable: at.get(dim.variable, "0") for dim in tensor}, tensor)


def exists(dims: Dims, at: Mapping[str, str]) -> str:
    """Return the condition that an element of a tile is not beyond the end; empty where none is.

    Args:
        dims: of the tile.
        at: an index for each variable.
    """
    return " && ".join(f"{at[d.variable]} < {end_name(d.variable)}" for d in dims if d.whole)


def end_name(variable: str) -> str:
    """Return the name of how many values of a variable there are from a tile's first one on."""
    return f"end_{identifier(variable)}"


def ends(
    partial: Mapping[str, TileSplit], block: BlockGraph, blocks: Sequence[str], in_loop: bool
) -> dict[str, str]:
    """Return how many values of each variable there are from a tile's first one on.

    Args:
        partial: the splits whose last tile is smaller.
        block, blocks: as for ``tile_start``.
        in_loop: those that the loop splits, or the others.
    """
    result = {}
    for name, split in partial.items():
        if split.is_in_loop is not in_loop:
            continue
        parts = [(blocks[axis], block.grid[axis]) for axis in split.axes]
        parts += [(ITERATION, block.loop)] if in_loop else []
        result[name] = f"{split.whole} - {joined([*parts, ('0', split.tile)])}"
    return result


def _axes(
    maps: Sequence[str], variable: str, block: BlockGraph, blocks: Sequence[str]
) -> list[tuple[str, int]]:
    return [
        (blocks[axis], extent)
        for axis, (mapped, extent) in enumerate(zip(maps, block.grid, strict=True))
        if mapped == variable and extent > 1
    ]


def _offset(at: Mapping[str, str], dims: Dims) -> str:
    strides = row_major(dims).strides
    return sum_text((at[dim.variable], strides[dim.variable]) for dim in dims)


def written_index(program: Program, compute: Compute, at: Mapping[str, str]) -> Mapping[str, str]:
    """Return the index at which an element is written: in the whole, of which an iteration has a part."""
    if not compute.along:
        return at
    size = size_of(program.dims[compute.operand], compute.along)
    return {**at, compute.along: f"({ITERATION} * {size} + {at[compute.along]})"}
