"""Accesses of a warp: the elements that its threads touch at once.

Loads, sweeps and products are those of ``fused.cuh`` and of emitted loops. Of the passes of a loop the
first stands for all, of the strips and pieces of a product one warp's. ``access_costs`` has what they take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.mugraph.graph.dims import Dim, Dims, Window, count
from relational_tensat.mugraph.kernels.cuda_buffers import WARPS
from relational_tensat.mugraph.kernels.indices import Indexing, viewed_index
from relational_tensat.mugraph.kernels.layouts import Layout
from relational_tensat.mugraph.kernels.statements import (
    Compute,
    KernelFrame,
    Load,
    Multiply,
    Program,
    Reduce,
    Save,
    Statement,
    fade_of,
)

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LANES = 32
_THREADS = _LANES * WARPS
#: Rows and columns of a piece of a product, and how much of its sum an instruction takes.
_STRIP, _PIECE, _STEP = 16, 8, 16

At = Mapping[str, Ints]


@dataclass(frozen=True, eq=False)
class Access:
    """The elements of a tensor that warps touch.

    Attributes:
        tensor: in shared memory, by name; of a load or a save, in device memory, empty.
        at: the index of each variable, by access and lane.
        active: which lanes take part.
        width: elements that a lane moves.
        times: how often that happens.
        pairs: the variable of which a lane wants two neighbours: at once, if the layout has them so.
        eights: the accesses instead if the layout lets a product read 8 x 8 elements at once, by the way of
            reading (see ``reading_of``), and the dims of the tile's rows or columns and of the sum.
    """

    tensor: str
    at: At
    active: Flags
    width: int
    times: int
    pairs: str = ""
    eights: Mapping[str, Access] = field(default_factory=dict)
    product: tuple[Dims, Dims] = ((), ())


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Indices of threads' work: by access and lane."""

    at: At
    active: Flags
    times: int


def order_of(program: Program, statement: Statement) -> Dims | None:
    """Return the dims that the threads of a statement go over, in any order; None where it is fixed."""
    match statement:
        case Load():
            return program.dims[statement.output]
        case Compute() if program.frame(statement.operand) is None:
            return program.dims[statement.operand]
        case Save() if program.frame(statement.saver.tile) is None:
            return program.dims[statement.saver.tile]
    return None


def accesses(
    program: Program,
    statement: Statement,
    order: Dims | None,
    width: int = 1,
    *,
    on_tensor_cores: bool = True,
) -> Iterator[Access]:
    """Yield what one execution of a statement touches.

    Args:
        program: the kernel.
        statement: one of its statements.
        order: in which threads go over the elements, where it can be chosen.
        width: how many elements of the last dim of the order a thread moves at once.
        on_tensor_cores: whether these compute products; else each thread adds up its own elements.
    """
    match statement:
        case Load():
            assert order is not None
            lanes = _sweep(order, width)
            yield _access("", lanes, width)
            yield _access(statement.output, lanes, width)
        case Multiply():
            yield from _products(program, statement, on_tensor_cores)
        case Compute():
            lanes = _over(program, statement.operand, order)
            yield from _read(program, statement.operand, lanes)
            if program.stored[statement.output].frame is None:
                is_read = statement.adds or statement.rescale
                yield from [_access(statement.output, lanes)] * (2 if is_read else 1)
            if statement.rescale:
                yield from _read(program, fade_of(statement.rescale), lanes)
        case Reduce():
            yield from _read(program, statement.operand, _rows(program, statement))
        case Save():
            lanes = _over(program, statement.saver.tile, order)
            yield from _read(program, statement.saver.tile, lanes)
            yield _access("", lanes)


def _access(tensor: str, lanes: _Lanes, width: int = 1) -> Access:
    return Access(tensor, lanes.at, lanes.active, width, lanes.times)


def _sweep(order: Dims, width: int = 1) -> _Lanes:
    """Return what threads do that go over all elements, each so many at once."""
    narrow = (*order[:-1], Dim(order[-1].variable, order[-1].size // width)) if order else ()
    total = count(narrow)
    e = np.arange(_THREADS).reshape(WARPS, _LANES)
    at = dict(_numbers_of(e, narrow))
    if order:
        at[order[-1].variable] = at[order[-1].variable] * width
    return _Lanes(at, e < total, -(-total // _THREADS))


def _over(program: Program, operand: str, order: Dims | None) -> _Lanes:
    """Return what threads do that go over a formula: in an order, or over their registers."""
    if order is not None:
        return _sweep(order)
    frame = program.frame(operand)
    assert frame is not None
    return _registers(frame)


def _registers(frame: KernelFrame) -> _Lanes:
    """Return what threads do that go over a product's registers."""
    lane, element = np.arange(_LANES), np.arange(4)[:, None]
    row, column = lane // 4 + element // 2 * 8, lane % 4 * 2 + element % 2
    batch, rows, columns = frame.sizes
    times = batch * -(-rows // _STRIP) * -(-columns // _PIECE)
    return _Lanes(_framed(frame, row, column), (row < rows) & (column < columns), times)


def _framed(frame: KernelFrame, row: Ints, column: Ints) -> At:
    zero = np.zeros((1, 1), np.int64)
    return {
        **_numbers_of(zero, frame.batch),
        **_numbers_of(row, frame.rows),
        **_numbers_of(column, frame.columns),
    }


def _rows(program: Program, reduce: Reduce) -> _Lanes:
    """Return what threads do that reduce; see ``reduce`` of ``fused.cuh``."""
    frame = program.frame(reduce.operand)
    if frame is not None:
        return _registers(frame)
    dims = program.dims[reduce.operand]
    kept = tuple(dim for dim in dims if dim.variable not in reduce.over)
    summed = tuple(dim for dim in dims if dim.variable in reduce.over)
    results, each = count(kept), count(summed)
    team = _THREADS
    while team > 1 and (team > each or team * results > _THREADS):
        team //= 2
    thread = np.arange(_THREADS).reshape(WARPS, _LANES)
    n, k = thread // team, thread % team
    times = -(-results // (_THREADS // team)) * -(-each // team)
    at = {**_numbers_of(n, kept), **_numbers_of(k, summed)}
    return _Lanes(at, (n < results) & (k < each), times)


def _products(program: Program, product: Multiply, on_tensor_cores: bool) -> Iterator[Access]:
    """Yield what a product reads of its tiles; see ``multiply`` of ``fused.cuh``."""
    frame = program.stored[product.output].frame
    assert frame is not None
    batch, rows, columns = frame.sizes
    strips, pieces = -(-rows // _STRIP), -(-columns // _PIECE)
    share = 1 if strips >= WARPS else WARPS // strips
    if product.rescale:
        yield from _read(program, fade_of(product.rescale), _registers(frame))
    for a, b, over in product.pairs:
        summed = tuple(dim for dim in program.dims[a] if dim.variable in over)
        if not on_tensor_cores:
            times = batch * strips * pieces * count(summed)
            lane, half = np.arange(_LANES)[None, :], np.arange(2)[:, None]
            for name, own, most, n in (
                (a, frame.rows, rows, lane // 4 + half * 8),
                (b, frame.columns, columns, lane % 4 * 2 + half),
            ):
                yield from _operand(program, name, frame, (own, n, most), (summed, n * 0), times)
            continue
        steps = -(-count(summed) // _STEP)
        for name, own, most, halves, times in (
            (a, frame.rows, rows, 2, batch * strips * min(share, pieces) * steps),
            (b, frame.columns, columns, 1, batch * min(strips, WARPS) * pieces * steps),
        ):
            n, k = _fragments(halves)
            for access in _operand(program, name, frame, (own, n, most), (summed, k), times):
                if access.tensor != name:  # a view
                    yield replace(access, pairs=paired(summed))
                    continue
                eights = {}
                for reading in ("ALONG", "ACROSS"):
                    n8, k8 = _matrices(halves, reading == "ALONG", most)
                    (whole,) = _operand(program, name, frame, (own, n8, most), (summed, k8), times)
                    eights[reading] = replace(whole, width=_PIECE)
                yield replace(access, pairs=paired(summed), eights=eights, product=(own, summed))


def reading_of(layout: Layout, tile: Dims, own: Dims, summed: Dims) -> str:
    """Return how a product reads a tile: as ``fused.cuh`` calls it.

    Args:
        layout, tile: of the tile, and its dims.
        own: the dims of its rows or columns; none where it is read as a view.
        summed: the dims of the sum.
    """
    along, across = _in_eights(summed), _in_eights(own)
    if own and along and layout.moves(along, _PIECE, tile):
        return "ALONG"
    if own and across and count(summed) % 2 == 0 and layout.moves(across, _PIECE, tile):
        return "ACROSS"
    inner = paired(summed)
    return "PAIRS" if inner and layout.moves(inner, 2, tile) else "ONE"


def _in_eights(dims: Dims) -> str:
    """Return the innermost variable, if its values are whole eights; else nothing."""
    inner = [dim for dim in dims if dim.size > 1][-1:]
    return inner[0].variable if inner and inner[0].size % _PIECE == 0 else ""


def paired(summed: Dims) -> str:
    """Return the variable whose neighbours a product reads in pairs, or ""."""
    inner = [dim for dim in summed if dim.size > 1][-1:]
    return inner[0].variable if inner and inner[0].size % 2 == 0 else ""


def _operand(
    program: Program,
    name: str,
    frame: KernelFrame,
    outer: tuple[Dims, Ints, int],
    inner: tuple[Dims, Ints],
    times: int,
) -> Iterator[Access]:
    """Yield the reads of an operand.

    Args:
        program: the kernel.
        name: the operand.
        frame: of the product.
        outer: the dims of its rows or columns, the lanes' indices, and how many there are.
        inner: the dims of the sum, and the lanes' indices.
        times: how often.
    """
    own, n, most = outer
    summed, k = inner
    zero = np.zeros((1, 1), np.int64)
    at = {**_numbers_of(zero, frame.batch), **_numbers_of(n, own), **_numbers_of(k, summed)}
    active = (n < most) & (k < count(summed))
    yield from _read(program, name, _Lanes(at, active, times))


def _fragments(halves: int) -> tuple[Ints, Ints]:
    """Return the rows and places of the sum that lanes read of an operand, access by access."""
    lane, access = np.arange(_LANES)[None, :], np.arange(2 * halves)[:, None]
    return lane // 4 + access // 2 * 8, lane % 4 * 2 + access % 2 * 8


def _matrices(halves: int, is_along: bool, most: int) -> tuple[Ints, Ints]:
    """Return the rows and places of the sum where the matrices begin whose rows lanes name.

    Args:
        halves: two for a left operand, of four matrices; one for a right one, of two.
        is_along: whether rows of matrices are along the sum.
        most: the row of lanes that name no row.
    """
    lane = np.arange(_LANES)[None, :]
    matrix, row = lane // _PIECE, lane % _PIECE
    n = matrix % 2 * _PIECE if halves == 2 else np.where(matrix < 2, 0, most)
    k = (matrix // 2 if halves == 2 else matrix % 2) * _PIECE
    return (n + row, k) if is_along else (n, k + row)


def _read(program: Program, name: str, lanes: _Lanes) -> Iterator[Access]:
    """Yield what a formula reads in shared memory, each tensor once."""
    found: dict[tuple[str, bytes], Access] = {}
    _collect(program, name, lanes, found)
    yield from found.values()


def _collect(
    program: Program, name: str, lanes: _Lanes, found: dict[tuple[str, bytes], Access]
) -> None:
    if name in program.stored:
        if program.stored[name].frame is None:
            used = [lanes.at[dim.variable] for dim in program.stored[name].dims]
            key = name, b"".join(np.ascontiguousarray(index).tobytes() for index in used)
            found.setdefault(key, _access(name, lanes))
        return
    formula = program.formulas[name]
    at = lanes.at
    if formula.op in ("rename", "split", "merge", "repeat", "window"):
        at = viewed_index(formula, program.dims[formula.operands[0]], at, _INDEXING)
    inner = _Lanes(at, lanes.active, lanes.times)
    for operand in formula.operands:
        _collect(program, operand, inner, found)


def _numbers_of(index: Ints, dims: Dims) -> dict[str, Ints]:
    """Return the index of each variable where one index counts them all, the last the fastest."""
    result: dict[str, Ints] = {}
    for dim in reversed(dims):
        result[dim.variable] = index % dim.size
        index = index // dim.size
    return result


def _joined(parts: Sequence[tuple[Ints, int]]) -> Ints:
    result = np.zeros((), np.int64)
    for index, extent in parts:
        result = result * extent + index
    return np.asarray(result)


def _taken(index: Ints, window: Window) -> Ints:
    """Return indices where a window is not 0; elsewhere that of its first or last such element."""
    return window.offset + window.step * np.clip(index, window.first, window.last - 1)


_INDEXING = Indexing(_joined, _numbers_of, _taken)
