"""The C of one kernel without products: tile by tile, a sweep for each statement.

Values that lie in memory in another order than sweeps go are turned by registers, on the way in or out.
Kernels whose blocks do more than part their results keep their blocks and their loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.c_sweeps import Loop, Strides, Sweep, loops_of
from relational_tensat.mugraph.kernels.c_tensors import BLOCKS, C_TYPES, start_of, variable_of
from relational_tensat.mugraph.kernels.c_tiles import CpuTiles
from relational_tensat.mugraph.kernels.c_windows import CWindows
from relational_tensat.mugraph.kernels.indices import (
    ITERATION,
    bounds_of,
    end_name,
    ends,
    number,
    source_layout,
    tile_start,
    written_index,
)
from relational_tensat.mugraph.kernels.layouts import Layout, row_major, sum_text
from relational_tensat.mugraph.kernels.statements import (
    Compute,
    Load,
    Program,
    Reduce,
    Save,
    Statement,
    fade_of,
    identifier,
)

#: Of all tiles: threads of a runtime may have 512 KiB of stack.
MOST_STACK_BYTES = 240 << 10
#: Rows of so many elements, or multiples, share a cache's sets.
_SHARED_SETS, _PADDING = 128, 16


class CEmission(CWindows):
    """Writes the body of a kernel's function."""

    def __init__(
        self,
        program: Program,
        lying: Mapping[str, Dims],
        tiles: CpuTiles | None,
        quantized: Mapping[str, str] = MappingProxyType({}),
        *,
        is_parted: bool = False,
    ) -> None:
        super().__init__(program, lying, tiles, quantized)
        self._is_parted = is_parted
        loads = [s for s in program.statements[BlockStage.INVARIANT] if isinstance(s, Load)]
        self._turned = {load.output: order for load in loads if (order := self._turned_load(load))}

    def body(self) -> str:
        """Return the lines within the function.

        Raises:
            InputError: it needs too much of the stack.
        """
        program, text = self._program, self._text
        with ExitStack() as blocks:
            self._load_once()
            self._open(blocks)
            self._declare_ends(in_loop=False)
            self._declare()
            self._run(BlockStage.INVARIANT)
            if self._statements[BlockStage.LOOP]:
                with text.block(_for(ITERATION, str(program.block.loop))):
                    self._declare_ends(in_loop=True)
                    self._run(BlockStage.LOOP)
            self._run(BlockStage.AFTER)
        return str(text)

    @property
    def pieces(self) -> int:
        """How many blocks or tiles there are, none of which reads what another one writes."""
        return math.prod(extent for _, extent, _ in self._axes())

    def _axes(self) -> list[tuple[str, int, int]]:
        """Return what is counted by blocks and tiles: how C calls it, how many there are, and its steps."""
        grid = zip(BLOCKS, self._program.block.grid, strict=False)
        axes = [(axis, extent, 1) for axis, extent in grid if extent > 1]
        for name in self._tiles.order if self._tiles else ():
            size, tile = self._sizes.get(name, 1), self._cut.get(name, 0)
            if 0 < tile < size:
                axes.append((start_of(name), -(-size // tile), tile))
        return axes

    def _open(self, blocks: ExitStack) -> None:
        """Open the one loop over all blocks or tiles: any range of it is a part of the work."""
        left = pieces = self.pieces
        if pieces == 1:
            return
        ends = (f"{pieces} * part / parts", f"{pieces} * (part + 1) / parts")
        first, last = ends if self._is_parted else ("0", str(pieces))
        head = f"for (long piece = {first}; piece < {last}; ++piece) {{"
        blocks.enter_context(self._text.block(head))
        for name, extent, step in self._axes():
            is_first, left = left == pieces, left // extent
            index = f"piece / {left}" if left > 1 else "piece"
            index = index if is_first else f"{index} % {extent}"
            self._text.line(f"const long {name} = {index}{f' * {step}' if step > 1 else ''};")
        for name, tile in self._cut.items():
            if (size := self._sizes.get(name, 1)) % tile and tile < size:
                self._ends[name] = end_name(name)
                rest = f"{size} - {start_of(name)}"
                self._text.line(f"const long {end_name(name)} = fewer({tile}, {rest});")

    def _load_once(self) -> None:
        """Turn what all pieces read before the first of them."""
        for load in self._statements[BlockStage.INVARIANT] if self.pieces > 1 else ():
            name = load.output
            if not isinstance(load, Load) or name not in self._turned:
                continue
            if not any(map(self._is_cut, self._program.dims[name])):
                self._layouts[name] = _padded(self._turned[name])
                self._declare_tile(name)
                self._load(load)
                self._done.append(load)

    def _declare_tile(self, name: str) -> None:
        elements = self._layouts[name].elements
        self._text.line(f"_Alignas(64) float {variable_of(name)}[{elements}];")

    def _declare_ends(self, in_loop: bool) -> None:
        """Declare how many elements a tile has of the variables whose last tile is smaller."""
        partial = self._program.partial
        for name, rest in ends(partial, self._program.block, BLOCKS, in_loop).items():
            self._ends[name] = end_name(name)
            self._text.line(f"const long {end_name(name)} = fewer({partial[name].tile}, {rest});")

    def _declare(self) -> None:
        """Declare what is stored; give what the loop adds to its initial values."""
        known = set(self._layouts)
        for name, stored in self._program.stored.items():
            if name in self._turned and name not in known:
                self._layouts[name] = _padded(self._turned[name])
            elif name not in self._loaded:
                self._layouts[name] = row_major(self._tile(stored.dims))
        every = (each for own in self._statements.values() for each in own)
        for save in (each for each in every if isinstance(each, Save)):
            if save.saver.tile not in self._layouts and (order := self._turned_save(save)):
                self._layouts[_staged(save)] = _padded(order)
        if 4 * sum(layout.elements for layout in self._layouts.values()) > MOST_STACK_BYTES:
            raise InputError(f"{self._program.kernel.name}: its tiles are too large for a stack")
        for name in (n for n in self._layouts if n not in known):
            self._declare_tile(name)
        for name, stored in self._program.stored.items():
            if stored.initial is not None:
                self._fill(name, number(stored.initial))

    def _fill(self, name: str, value: str) -> None:
        def body(at: Mapping[str, str]) -> None:
            self._text.line(f"{self.stored(name, at)} = {value};")

        self._swept(self._program.stored[name].dims, [], [self._strides(name)], body)

    def _run(self, stage: BlockStage) -> None:
        statements = self._statements[stage]
        for place, statement in enumerate(statements):
            after = statements[place + 1] if place + 1 < len(statements) else None
            if statement in self._done:
                continue
            is_reduced = isinstance(after, Reduce) and self._is_plain(after)
            if (
                isinstance(statement, Compute)
                and isinstance(after, Reduce)
                and is_reduced
                and after.operand == statement.output
                and not self._has_costly_rest(statement, after)
            ):
                self._done.append(after)
                self._reduce(after, statement)
            else:
                self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Load():
                self._load(statement)
            case Compute():
                self._compute(statement)
            case Reduce():
                self._reduce(statement)
            case Save():
                self._save(statement)

    def _load(self, load: Load) -> None:
        """Point to a tile: it is read where it lies, or turned."""
        iterator, program = load.iterator, self._program
        tensor, tile = self._lying[iterator.tensor], program.dims[iterator.output]
        start = tile_start(iterator, tensor, tile, program.block, BLOCKS)
        strides = source_layout(iterator, tensor).strides
        pointer = f"in_{identifier(iterator.tensor)} + {self._from(start, tile, strides)}"
        if load.output not in self._turned:
            kind = "bool" if iterator.is_condition else self._kind(iterator.tensor)
            self._text.line(
                f"const {C_TYPES[kind]} *restrict {variable_of(load.output)} = {pointer};"
            )
            return
        layout = self._layouts[load.output]
        self._turn(pointer, strides, variable_of(load.output), layout.strides, tile, is_saved=False)

    def _turn(
        self, source: str, source_strides: Strides, target: str, strides: Strides, dims: Dims,
        *, is_saved: bool,
    ) -> None:  # fmt: skip
        """Copy a tile whose innermost variable is another one in its target."""
        tile, both = self._tile(dims), [source_strides, strides]

        def loops(own: Dims, by: Strides) -> list[Loop]:
            order = sorted(own, key=lambda dim: by[dim.variable], reverse=True)
            return loops_of(tuple(order), self._ends, both, frozenset())

        rows = loops(tile, strides)[-1]
        rest = tuple(dim for dim in tile if dim.variable not in rows.all)
        *outer, columns = loops(rest, source_strides)

        def body(at: Mapping[str, str]) -> None:
            places = [sum_text((index, own[name]) for name, index in at.items()) for own in both]
            self._text.line(
                f"turn_tile({source} + {places[0]}, {source_strides[rows.variable]}, "
                f"{target} + {places[1]}, "
                f"{strides[columns.variable]}, {rows.end}, {columns.end}, {is_saved:d});"
            )

        Sweep(self._text).write(outer, {}, body, None)

    def _compute(self, compute: Compute) -> None:
        also = self._saved_at_once(compute)

        def body(at: Mapping[str, str]) -> None:
            value = self.element(compute.operand, at)
            cell = self.stored(compute.output, written_index(self._program, compute, at))
            if compute.rescale:
                value = f"{cell} * {self.stored(fade_of(compute.rescale), at)} + {value}"
            elif compute.adds:
                value = f"{cell} + {value}"
            self._store([cell], also, at, value)

        is_known = not (compute.along or compute.rescale)
        written = [self._strides(compute.output), *map(self._result_strides, also)]
        dims = self._program.dims[compute.operand]
        reads, known = [compute.operand], written if is_known else None
        may_repeat = not (compute.adds or compute.rescale)
        self._swept(dims, reads, known, body, may_repeat=may_repeat)

    def _save(self, save: Save) -> None:
        saver, program = save.saver, self._program
        tile, strides = program.dims[saver.tile], self._result_strides(save)
        pointer = self._begin_result(save)
        if self._turned_save(save):
            name = saver.tile
            if name not in self._layouts:
                name = _staged(save)
                own = self._layouts[name]

                def stage(at: Mapping[str, str]) -> None:
                    value = self.element(saver.tile, at)
                    self._text.line(f"{variable_of(name)}[{own.offset(at)}] = {value};")

                self._swept(tile, [saver.tile], [own.strides], stage)
            layout = self._layouts[name].strides
            self._turn(variable_of(name), layout, pointer, strides, tile, is_saved=True)
            return

        def body(at: Mapping[str, str]) -> None:
            value = self.element(saver.tile, at)
            self._store([], [save], at, value)

        self._swept(tile, [saver.tile], [strides], body)

    def _turned_load(self, load: Load) -> Dims | None:
        """Return the order in which a tile is stored that lies otherwise in memory; else None."""
        iterator, dims = load.iterator, self._program.dims[load.output]
        if self._tiles is None or iterator.is_condition or bounds_of(iterator):
            return None
        if any(window.strides for window in iterator.windows):
            return None
        if iterator.tensor in self._quantized:
            return None
        strides = source_layout(iterator, self._lying[iterator.tensor]).strides
        return self._turned_order(dims, strides)

    def _turned_save(self, save: Save) -> Dims | None:
        if self._tiles is None or save.saver.output in self._quantized:
            return None
        result = self._lying[save.saver.output]
        return self._turned_order(self._program.dims[save.saver.tile], row_major(result).strides)

    def _turned_order(self, dims: Dims, strides: Strides) -> Dims | None:
        """Return the dims of a tile by their strides, but for the lane, which is last."""
        assert self._tiles is not None
        lane, tile = self._tiles.lane, self._tiles.dims(dims)
        real = sorted((d for d in tile if d.size > 1), key=lambda d: strides[d.variable])
        is_turned = (
            len(real) > 1
            and strides[real[0].variable] == 1
            and real[0].variable != lane
            and any(dim.variable == lane for dim in real)
        )
        if not is_turned:
            return None
        order = sorted(tile, key=lambda d: (d.variable == lane, -strides[d.variable]))
        return tuple(order)


def _staged(save: Save) -> str:
    return f"{save.saver.output} staged"


def _for(name: str, end: str) -> str:
    return f"for (long {name} = 0; {name} < {end}; ++{name}) {{"


def _padded(dims: Dims) -> Layout:
    """Return rows that begin at other sets of a cache, where they would share them."""
    is_shared = bool(dims) and dims[-1].size % _SHARED_SETS == 0
    return row_major(dims, _PADDING if is_shared else 0)
