"""Reductions in C: along rows, or of results that lie side by side, in the sweep that stores their operand.

A result that is stored in a tile goes to both at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.c_sweeps import VECTOR, Loop, Strides, loops_of
from relational_tensat.mugraph.kernels.c_tensors import (
    BLOCKS,
    C_TYPES,
    CTensors,
    scale_of,
    zero_of,
)
from relational_tensat.mugraph.kernels.indices import (
    number,
    offset,
    reduced,
    result_start,
    summand,
)
from relational_tensat.mugraph.kernels.layouts import row_major, sum_text
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    Reduce,
    Save,
    identifier,
)
from relational_tensat.tensor.floats import integer_range
from relational_tensat.tensor.spellings import SPELLINGS

#: A row of a sum is parted, so that additions need not wait for each other.
_PARTS, _SHORTEST_PARTED = 4, 256
Value = Callable[[Mapping[str, str]], str]


class CReductions(CTensors):
    """Writes reductions, and what is stored on the way."""

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
            self._store([self.stored(compute.output, at)], also, at, f"value_{self._number}")
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

    def _is_plain(self, reduce: Reduce) -> bool:
        return self._tiles is not None and not (reduce.adds or reduce.rescale or reduce.fade)

    def _has_costly_rest(self, compute: Compute, reduce: Reduce) -> bool:
        """Whether rows of sums end amid a vector of what is costly: that is stored first, then added up."""
        op = self._program.formulas[compute.operand].op
        order = self._tile(self._program.dims[reduce.operand])
        real = [dim for dim in order if dim.size > 1]
        is_row = bool(real) and real[-1].variable in reduce.over
        is_costly = op in SPELLINGS and SPELLINGS[op].is_costly
        has_rest = is_row and real[-1].size > VECTOR and real[-1].size % VECTOR > 0
        return is_costly and has_rest and reduce.kind not in MAXIMA

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

            is_max = reduce.kind in MAXIMA  # of which the same again changes nothing
            self._write(breaks, loops, outer, body, f" reduction({how})", may_repeat=is_max)
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

    def _begin_result(self, save: Save) -> str:
        """Point to a tile's part of a result."""
        saver, program = save.saver, self._program
        tile, result = program.dims[saver.tile], self._lying[saver.output]
        start = result_start(saver, result, tile, program.block, BLOCKS)
        place = self._from(start, tile, self._result_strides(save))
        pointer = f"to_{identifier(saver.output)}"
        kind = C_TYPES[self._kind(saver.output)]
        self._text.line(f"{kind} *restrict {pointer} = out_{identifier(saver.output)} + {place};")
        return pointer

    def _store(
        self, cells: Sequence[str], also: Sequence[Save], at: Mapping[str, str], value: str
    ) -> None:
        """Store a value in cells of tiles, and in results: in those of integers what is nearest."""
        integers = [save for save in also if save.saver.output in self._quantized]
        cells = [*cells, *(self._result_cell(save, at) for save in also if save not in integers)]
        if cells:
            self._text.line(f"{' = '.join(cells)} = {value};")
            value = cells[0]
        for save in integers:
            tensor = save.saver.output
            least, most = integer_range(self._kind(tensor))
            scale, zero = scale_of(tensor), zero_of(tensor)
            near = f"quantized({value}, {scale}, {zero}, {least}, {most})"
            self._text.line(f"{self._result_cell(save, at)} = {near};")

    def _kind(self, tensor: str) -> str:
        return self._quantized.get(tensor, "float32")

    def _result_strides(self, save: Save) -> Strides:
        return row_major(self._lying[save.saver.output]).strides

    def _result_cell(self, save: Save, at: Mapping[str, str]) -> str:
        place = offset(at, self._lying[save.saver.output])
        return f"to_{identifier(save.saver.output)}[{place}]"


def _is_parted(loops: Sequence[Loop]) -> bool:
    """Whether a row is that long that parts of it are added up beside each other."""
    if not loops or loops[-1].size < _SHORTEST_PARTED:
        return False
    return loops[-1].end == str(loops[-1].size)
