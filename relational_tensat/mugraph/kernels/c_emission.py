"""The C of one kernel without products: tile by tile, a sweep for each statement.

A kernel whose blocks only part its results is cut for a processor (``c_tiles``). Others keep their blocks
and their loop. Tiles lie on the stack. What lies in memory in another order than sweeps go is turned by
registers, on the way in or out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.c_sweeps import Body, Loop, Strides, Sweep, loops_of
from relational_tensat.mugraph.kernels.c_tiles import CpuTiles
from relational_tensat.mugraph.kernels.indices import (
    ITERATION,
    Formulas,
    bounds_of,
    element_offset,
    end_name,
    ends,
    inside,
    number,
    offset,
    reduced,
    result_start,
    source_layout,
    summand,
    tile_start,
    written_index,
)
from relational_tensat.mugraph.kernels.layouts import Layout, row_major, sum_text
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    Load,
    Multiply,
    Program,
    Reduce,
    Save,
    Statement,
    Text,
    fade_of,
    identifier,
)

_BLOCKS = ("block_x", "block_y", "block_z")
_STAGES = (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER)
Value = Callable[[Mapping[str, str]], str]
_VIEWS = ("rename", "split", "merge", "window")
#: Of a tile on the stack of any thread.
MOST_STACK_BYTES = 1 << 20
#: Rows of so many elements, or multiples, share a cache's sets.
_SHARED_SETS, _PADDING = 128, 16
#: A row of a sum is parted, so that additions need not wait for each other.
_PARTS, _SHORTEST_PARTED = 4, 256


class CEmission(Formulas):
    """Writes the body of a kernel's function.

    Args:
        program: the kernel.
        lying: the dims of operands and results in their order in memory.
        tiles: how a kernel of one block is cut; None for one with a grid or a loop.
    """

    names = MappingProxyType({"exp": "exp_of({})", "erf": "erf_of({})", "tanh": "tanh_of({})"})

    def __init__(self, program: Program, lying: Mapping[str, Dims], tiles: CpuTiles | None) -> None:
        super().__init__(program)
        self._text, self._lying, self._tiles = Text(), lying, tiles
        self._cut = {} if tiles is None else dict(tiles.sizes)
        self._statements = {stage: program.statements[stage] for stage in _STAGES}
        loads = [s for each in self._statements.values() for s in each if isinstance(s, Load)]
        self._loaded = {load.output: load.iterator for load in loads}
        self._ends: dict[str, str] = {}
        self._turned = {load.output: order for load in loads if (order := self._turned_load(load))}
        self._layouts: dict[str, Layout] = {}
        self._sweep = Sweep(self._text)
        self._locals: dict[tuple[str, tuple[str, ...]], str] = {}
        reads = Counter(n for formula in program.formulas.values() for n in formula.operands)
        self._several = {name for name in program.formulas if reads[name] > 1}
        self._number = 0
        self._done: list[Statement] = []

    def body(self) -> str:
        """Return the lines within the function.

        Raises:
            InputError: it has a product, or needs too much of the stack.
        """
        program, text = self._program, self._text
        with ExitStack() as blocks:
            for axis, extent in zip(_BLOCKS, program.block.grid, strict=False):
                if extent > 1:
                    blocks.enter_context(text.block(_for(axis, str(extent))))
            for name in self._tiles.order if self._tiles else ():
                self._open(name, blocks)
            self._declare_ends(in_loop=False)
            self._declare()
            self._run(BlockStage.INVARIANT)
            if self._statements[BlockStage.LOOP]:
                with text.block(_for(ITERATION, str(program.block.loop))):
                    self._declare_ends(in_loop=True)
                    self._run(BlockStage.LOOP)
            self._run(BlockStage.AFTER)
        return str(text)

    def _open(self, name: str, blocks: ExitStack) -> None:
        """Open the loop over the tiles along a variable that is cut."""
        size, tile = self._sizes().get(name, 1), self._cut.get(name, 0)
        if not tile or tile >= size:
            return
        at = _at(name)
        blocks.enter_context(
            self._text.block(f"for (long {at} = 0; {at} < {size}; {at} += {tile}) {{")
        )
        if size % tile:
            self._ends[name] = end_name(name)
            self._text.line(f"const long {end_name(name)} = fewer({tile}, {size} - {at});")

    def _sizes(self) -> dict[str, int]:
        dims = self._program.dims.values()
        return {dim.variable: dim.size for each in dims for dim in each}

    def _declare_ends(self, in_loop: bool) -> None:
        """Declare how many elements a tile has of the variables whose last tile is smaller."""
        partial = self._program.partial
        for name, rest in ends(partial, self._program.block, _BLOCKS, in_loop).items():
            self._ends[name] = end_name(name)
            self._text.line(f"const long {end_name(name)} = fewer({partial[name].tile}, {rest});")

    def _declare(self) -> None:
        """Declare what is stored; give what the loop adds to its initial values."""
        for name, stored in self._program.stored.items():
            if name in self._turned:
                self._layouts[name] = _padded(self._turned[name])
            elif name not in self._loaded:
                self._layouts[name] = row_major(self._tile(stored.dims))
        every = (each for own in self._statements.values() for each in own)
        for save in (each for each in every if isinstance(each, Save)):
            if save.saver.tile not in self._layouts and (order := self._turned_save(save)):
                self._layouts[_staged(save)] = _padded(order)
        if 4 * sum(layout.elements for layout in self._layouts.values()) > MOST_STACK_BYTES:
            raise InputError(f"{self._program.kernel.name}: its tiles are too large for a stack")
        for name, layout in self._layouts.items():
            self._text.line(f"_Alignas(64) float {_variable(name)}[{layout.elements}];")
        for name, stored in self._program.stored.items():
            if stored.initial is not None:
                self._fill(name, number(stored.initial))

    def _fill(self, name: str, value: str) -> None:
        def body(at: Mapping[str, str]) -> None:
            self._text.line(f"{self.stored(name, at)} = {value};")

        self._swept(self._program.stored[name].dims, [], [self._strides(name)], body)

    def _tile(self, dims: Dims) -> Dims:
        return dims if self._tiles is None else self._tiles.dims(dims)

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
            ):
                self._done.append(after)
                self._reduce(after, statement)
            else:
                self._statement(statement)

    def _is_plain(self, reduce: Reduce) -> bool:
        return self._tiles is not None and not (reduce.adds or reduce.rescale or reduce.fade)

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
            case Multiply():
                raise InputError(
                    f"{self._program.kernel.name}: {statement.output} is a product, which no C is made of"
                )

    def _load(self, load: Load) -> None:
        """Point to a tile: it is read where it lies, or turned."""
        iterator, program = load.iterator, self._program
        tensor, tile = self._lying[iterator.tensor], program.dims[iterator.output]
        start = tile_start(iterator, tensor, tile, program.block, _BLOCKS)
        strides = source_layout(iterator, tensor).strides
        pointer = f"in_{identifier(iterator.tensor)} + {self._from(start, tile, strides)}"
        if load.output not in self._turned:
            kind = type_of(iterator.is_condition)
            self._text.line(f"const {kind} *restrict {_variable(load.output)} = {pointer};")
            return
        layout = self._layouts[load.output]
        self._turn(pointer, strides, _variable(load.output), layout.strides, tile, is_saved=False)

    def _from(self, start: str, tile: Dims, strides: Strides) -> str:
        """Return where the tile begins, in elements."""
        cut = [(_at(dim.variable), strides[dim.variable]) for dim in tile if self._is_cut(dim)]
        return sum_text([(start, 1), *cut])

    def _is_cut(self, dim: Dim) -> bool:
        return 0 < self._cut.get(dim.variable, 0) < dim.size

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
                f"turn({source} + {places[0]}, {source_strides[rows.variable]}, {target} + {places[1]}, "
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
            cells = [cell, *(self._result_cell(save, at) for save in also)]
            self._text.line(f"{' = '.join(cells)} = {value};")

        is_known = not (compute.along or compute.rescale)
        written = [self._strides(compute.output), *map(self._result_strides, also)]
        dims = self._program.dims[compute.operand]
        self._swept(dims, [compute.operand], written if is_known else None, body)

    def _saved_at_once(self, compute: Compute) -> list[Save]:
        """Return the results that are written in the sweep that stores them; they are begun here."""
        if self._tiles is None:
            return []
        every = (each for own in self._statements.values() for each in own)
        dims, own = self._program.dims[compute.output], self._strides(compute.output)
        real = [dim.variable for dim in self._tile(dims) if dim.size > 1]

        def order(strides: Strides) -> list[str]:
            return sorted(real, key=lambda name: strides[name])

        also = [
            save
            for save in every
            if isinstance(save, Save)
            and save.saver.tile == compute.output
            and order(self._result_strides(save)) == order(own)
        ]
        for save in also:
            self._begin_result(save)
        self._done += also
        return also

    def _swept(
        self, dims: Dims, reads: Sequence[str], written: list[Strides] | None, body: Body
    ) -> None:
        """Sweep over a tile in the order of what is written.

        Args:
            dims: of all elements.
            reads: the tensors whose elements are read.
            written: the strides of what is written; None where these are not known.
            body: as for ``Sweep``.
        """
        order = self._tile(dims)
        if written:
            place = {d.variable: -abs(written[0].get(d.variable, 0)) for d in order}
            order = tuple(sorted(order, key=lambda dim: place[dim.variable]))
        loops, breaks = self._loops(order, reads, written)
        self._write(breaks, loops, {dim.variable: "0" for dim in dims}, body)

    def _loops(
        self, order: Dims, reads: Sequence[str], written: list[Strides] | None
    ) -> tuple[list[Loop], dict[str, list[int]]]:
        """Return the loops over a tile, and where those of windows are parted."""
        strides: list[Strides] | None = list(written or [])
        breaks: dict[str, list[int]] = {}
        apart: set[str] = set()
        for name in {leaf for each in reads for leaf in self._leaves(each)}:
            if name not in self._program.stored:
                strides = None  # a view
                continue
            if strides is not None:
                strides.append(self._strides(name))
            for bound in bounds_of(self._loaded[name]) if name in self._loaded else ():
                own = [dim for dim in bound.dims if dim.size > 1]
                apart.update(dim.variable for dim in own)
                if len(own) == 1 and self._is_static(own[0].variable):
                    breaks.setdefault(own[0].variable, []).extend([bound.first, bound.last])
        known = strides if written is not None else None
        loops = loops_of(order, self._ends, known, frozenset(apart))
        return loops, {name: sorted(set(places)) for name, places in breaks.items()}

    def _is_static(self, variable: str) -> bool:
        """Whether a variable's index is that of its loop: no grid, no loop, no tiles part it."""
        if self._tiles is None:
            return False
        return not self._is_cut(Dim(variable, self._sizes()[variable]))

    def _write(
        self, breaks: dict[str, list[int]], loops: Sequence[Loop], at: Mapping[str, str], body: Body,
        pragma: str | None = "",
    ) -> None:  # fmt: skip
        self._sweep = Sweep(self._text, breaks)

        def fresh(place: Mapping[str, str]) -> None:
            self._locals = {}
            body(place)
            self._locals = {}

        if loops:
            self._sweep.write(loops, at, fresh, pragma)
        else:
            with self._text.block("{"):
                fresh(at)

    def _leaves(self, name: str) -> Iterator[str]:
        """Yield the stored tensors that a tensor is a formula of, and views within."""
        if name in self._program.stored:
            yield name
            return
        formula = self._program.formulas[name]
        if formula.op in _VIEWS:
            yield name
        for operand in formula.operands:
            yield from self._leaves(operand)

    def _reduce(self, reduce: Reduce, compute: Compute | None = None) -> None:
        """Write a reduction, and the sweep that stores what is reduced, if there is one."""
        program, also = self._program, self._saved_at_once(compute) if compute else []
        order = self._tile(program.dims[reduce.operand])
        real = [dim for dim in order if dim.size > 1]
        summed = tuple(dim for dim in order if dim.variable in reduce.over)

        def value(at: Mapping[str, str]) -> str:
            if compute is None:
                return self.element(reduce.operand, at)
            made, self._number = self.element(compute.operand, at), self._number + 1
            self._text.line(f"const float value_{self._number} = {made};")
            cells = [
                self.stored(compute.output, at), *(self._result_cell(save, at) for save in also)
            ]  # fmt: skip
            self._text.line(f"{' = '.join(cells)} = value_{self._number};")
            return f"value_{self._number}"

        read = reduce.operand if compute is None else compute.operand
        written = (
            [self._strides(compute.output), *map(self._result_strides, also)] if compute else []
        )
        if self._is_plain(reduce) and any(dim in summed for dim in real) and real[-1] not in summed:
            self._reduce_beside(reduce, order, read, written, value)
            return
        kept = tuple(dim for dim in order if dim.variable not in reduce.over)
        loops, breaks = self._loops(summed, [read], written)

        def body(place: Mapping[str, str]) -> None:
            self._reduce_row(reduce, loops, breaks, place, value)

        outer = loops_of(kept, self._ends, None, frozenset())
        self._write({}, outer, {dim.variable: "0" for dim in order}, body, None)

    def _reduce_row(
        self, reduce: Reduce, loops: Sequence[Loop], breaks: dict[str, list[int]],
        outer: Mapping[str, str], value: Value,
    ) -> None:  # fmt: skip
        """Write one result of a reduction along what lies side by side."""
        text, is_exact = self._text, reduce.kind == "reduce_max"
        text.line(f"float x = {number(MAXIMA.get(reduce.kind, 0.0))};")
        if is_exact:  # lanes of a vector lose NaN
            text.line("int has_nan = 0;")
        if reduce.kind not in MAXIMA and not breaks and _is_parted(loops):
            self._sum_parts(reduce, loops, outer, value)
        else:
            how = "max:x" if reduce.kind in MAXIMA else "+:x"
            how += ") reduction(|:has_nan" if is_exact else ""

            def body(at: Mapping[str, str]) -> None:
                made = value(at)
                if reduce.kind in MAXIMA:
                    is_nan = ["has_nan |= y != y;"] if is_exact else []
                    text.line(f"const float y = {made};", *is_nan, "x = y > x ? y : x;")
                else:
                    text.line(f"x += {summand(reduce, made)};")

            self._write(breaks, loops, outer, body, f" reduction({how})")
        if is_exact:
            text.line("x = has_nan ? NAN : x;")
        text.line(*reduced(reduce, lambda name: self.stored(name, outer)))

    def _sum_parts(
        self, reduce: Reduce, loops: Sequence[Loop], outer: Mapping[str, str], value: Value
    ) -> None:
        """Add up parts of a row beside each other, and its rest."""
        *before, last = loops
        size = last.size // _PARTS
        sums = [f"x_{place}" for place in range(_PARTS)]

        def body(at: Mapping[str, str]) -> None:
            self._text.line(f"float {', '.join(f'{one} = 0.0f' for one in sums)};")

            def one(place: Mapping[str, str]) -> None:
                for part, name in enumerate(sums):
                    index = sum_text([(place[last.variable], 1), (str(part * size), 1)])
                    made = value({**place, last.variable: f"({index})"})
                    self._text.line(f"{name} += {summand(reduce, made)};")

            part = Loop(last.variable, size, str(size))
            self._write({}, [part], at, one, f" reduction(+:{', '.join(sums)})")
            self._text.line(f"x += {' + '.join(sums)};")
            for rest in range(size * _PARTS, last.size):
                made = value({**at, last.variable: str(rest)})
                self._text.line(f"x += {summand(reduce, made)};")

        self._write({}, before, outer, body, None)

    def _reduce_beside(
        self, reduce: Reduce, order: Dims, read: str, written: list[Strides], value: Value
    ) -> None:
        """Write a reduction whose results lie side by side: vectors of them."""
        names = [dim.variable for dim in order]
        last = max(n for n, name in enumerate(names) if name in reduce.over)
        inner = order[last + 1 :]
        outer = tuple(dim for dim in order[:last] if dim.variable not in reduce.over)
        summed = tuple(dim for dim in order if dim.variable in reduce.over)
        cell = self._strides(reduce.output)
        loops, breaks = self._loops((*summed, *inner), [read], [cell, *written])

        def begin(place: Mapping[str, str]) -> None:
            start = number(MAXIMA.get(reduce.kind, 0.0))
            self._text.line(f"{self.stored(reduce.output, place)} = {start};")

        def step(place: Mapping[str, str]) -> None:
            made, own = value(place), self.stored(reduce.output, place)
            is_max = reduce.kind in MAXIMA
            added = f"larger({own}, {made})" if is_max else f"{own} + {summand(reduce, made)}"
            self._text.line(f"{own} = {added};")

        def both(place: Mapping[str, str]) -> None:
            self._write({}, loops_of(inner, self._ends, [cell], frozenset()), place, begin)
            self._write(breaks, loops, place, step)

        at = dict.fromkeys(names, "0")
        self._write({}, loops_of(outer, self._ends, None, frozenset()), at, both, None)

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
                    self._text.line(f"{_variable(name)}[{own.offset(at)}] = {value};")

                self._swept(tile, [saver.tile], [own.strides], stage)
            layout = self._layouts[name].strides
            self._turn(_variable(name), layout, pointer, strides, tile, is_saved=True)
            return

        def body(at: Mapping[str, str]) -> None:
            value = self.element(saver.tile, at)
            self._text.line(f"{self._result_cell(save, at)} = {value};")

        self._swept(tile, [saver.tile], [strides], body)

    def _begin_result(self, save: Save) -> str:
        """Point to a tile's part of a result."""
        saver, program = save.saver, self._program
        tile, result = program.dims[saver.tile], self._lying[saver.output]
        start = result_start(saver, result, tile, program.block, _BLOCKS)
        place = self._from(start, tile, self._result_strides(save))
        pointer = f"to_{identifier(saver.output)}"
        self._text.line(f"float *restrict {pointer} = out_{identifier(saver.output)} + {place};")
        return pointer

    def _result_strides(self, save: Save) -> Strides:
        return row_major(self._lying[save.saver.output]).strides

    def _result_cell(self, save: Save, at: Mapping[str, str]) -> str:
        place = offset(at, self._lying[save.saver.output])
        return f"to_{identifier(save.saver.output)}[{place}]"

    def _turned_load(self, load: Load) -> Dims | None:
        """Return the order in which a tile is stored that lies otherwise in memory; else None."""
        iterator, dims = load.iterator, self._program.dims[load.output]
        if self._tiles is None or iterator.is_condition or bounds_of(iterator):
            return None
        strides = source_layout(iterator, self._lying[iterator.tensor]).strides
        return self._turned_order(dims, strides)

    def _turned_save(self, save: Save) -> Dims | None:
        if self._tiles is None:
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

    def _strides(self, name: str) -> Strides:
        """Return the strides of a stored tensor's tile where it lies."""
        if name in self._layouts:
            return self._layouts[name].strides
        if name in self._loaded:
            iterator = self._loaded[name]
            return source_layout(iterator, self._lying[iterator.tensor]).strides
        return row_major(self._tile(self._program.stored[name].dims)).strides

    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element where it lies."""
        if name in self._layouts:
            return f"{_variable(name)}[{self._layouts[name].offset(at)}]"
        iterator = self._loaded[name]
        element = f"{_variable(name)}[{element_offset(iterator, at, self._lying[iterator.tensor])}]"
        element = f"(float){element}" if iterator.is_condition else element
        is_there = self._inside(name, at)
        if is_there == "0":
            return "0.0f"
        return f"({is_there} ? {element} : 0.0f)" if is_there else element

    def _inside(self, name: str, at: Mapping[str, str]) -> str:
        """Return the condition that an element of a window is not 0 whatever is there: empty for none."""
        iterator, program = self._loaded[name], self._program
        tile = program.dims[name]
        if self._tiles is None:
            return inside(iterator, tile, program.block, _BLOCKS, at)
        unknown = False
        for bound in bounds_of(iterator):
            own = [dim.variable for dim in bound.dims if dim.size > 1]
            first, last = self._sweep.ranges.get(own[0], (0, bound.last + 1)) if own else (0, 1)
            if len(own) != 1 or not self._is_static(own[0]):
                unknown = True
            elif last <= bound.first or first >= bound.last:
                return "0"
            elif first < bound.first or last > bound.last:
                unknown = True
        if not unknown:
            return ""
        cut = {dim.variable for dim in tile if self._is_cut(dim)}
        whole = {n: f"({_at(n)} + {i})" if n in cut else i for n, i in at.items()}
        return inside(iterator, tile, program.block, _BLOCKS, whole)

    def element(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element; what several read is worked out once."""
        program = self._program
        if name in program.stored or program.formulas[name].op in (*_VIEWS, "repeat"):
            return super().element(name, at)
        formula = program.formulas[name]
        if formula.op in ("inverse", "inverse_scale"):
            return f"{formula.op}({self.element(formula.operands[0], at)})"
        key = name, tuple(at[dim.variable] for dim in program.dims[name])
        if key in self._locals:
            return self._locals[key]
        if formula.op == "quotient":
            made = f"({' * '.join(self.element(operand, at) for operand in formula.operands)})"
        else:
            made = super().element(name, at)
        if name not in self._several:
            return made
        self._number += 1
        self._locals[key] = f"value_{self._number}"
        self._text.line(f"const float value_{self._number} = {made};")
        return self._locals[key]


def _is_parted(loops: Sequence[Loop]) -> bool:
    """Whether a row is that long that parts of it are added up beside each other."""
    if not loops or loops[-1].size < _SHORTEST_PARTED:
        return False
    return loops[-1].end == str(loops[-1].size)


def type_of(is_condition: bool) -> str:
    """Return the C type of an operand's elements."""
    return "unsigned char" if is_condition else "float"


def _variable(name: str) -> str:
    return f"tile_{identifier(name)}"


def _staged(save: Save) -> str:
    return f"{save.saver.output} staged"


def _at(variable: str) -> str:
    return f"at_{identifier(variable)}"


def _for(name: str, end: str) -> str:
    return f"for (long {name} = 0; {name} < {end}; ++{name}) {{"


def _padded(dims: Dims) -> Layout:
    """Return rows that begin at other sets of a cache, where they would share them."""
    is_shared = bool(dims) and dims[-1].size % _SHARED_SETS == 0
    return row_major(dims, _PADDING if is_shared else 0)
