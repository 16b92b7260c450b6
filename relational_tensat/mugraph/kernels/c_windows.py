"""Sums over windows that slide, in C: a convolution of each channel reads each row of its image once.

Sums stay in registers over all taps of a window. Where channels lie side by side, these are vectors, and so
are weights, turned once for all pixels; else pixels are. At borders there are fewer taps, or zeros:
an infinite weight counts nothing there, or gives NaN, as in onnxruntime's kernels. Other sums over windows
are reductions like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Window
from relational_tensat.mugraph.kernels.c_reductions import CReductions
from relational_tensat.mugraph.kernels.c_sweeps import Strides, loops_of
from relational_tensat.mugraph.kernels.c_tensors import start_of, variable_of
from relational_tensat.mugraph.kernels.indices import bounds_of
from relational_tensat.mugraph.kernels.layouts import sum_text
from relational_tensat.mugraph.kernels.statements import Compute, Reduce


@dataclass(frozen=True, slots=True)
class WindowSum:
    """A sum of products of a window and its weights.

    Attributes:
        output: the sums.
        x, weights: the loads.
        windows: of x, those that slide: along rows, if there are two, and along columns.
        taps: by window its variable that is summed over, or "" where it shows one element.
    """

    output: str
    x: str
    weights: str
    windows: tuple[Window, ...]
    taps: tuple[str, ...]

    def window(self, which: int) -> Window | None:
        """Return the last window, or the one before it; None if there are fewer."""
        return self.windows[which] if -which <= len(self.windows) else None

    def tap(self, which: int) -> str:
        """Return the variable that a window's taps are summed over, or ""."""
        return self.taps[which] if -which <= len(self.taps) else ""

    def place(self, which: int) -> str:
        """Return the innermost variable of a window's places, or ""."""
        window = self.window(which)
        places = [name for name in window.into if name not in self.taps] if window else []
        return places[-1] if places else ""


class CWindows(CReductions):
    """Writes reductions, and sums over windows."""

    def _reduce(self, reduce: Reduce, compute: Compute | None = None) -> None:
        found = self._window_sum(reduce) if compute is None and self._is_plain(reduce) else None
        if found is None:
            super()._reduce(reduce, compute)
            return
        assert self._tiles is not None
        lane, every = self._tiles.lane, self._every_stride(found)
        x, weights, sums = every
        kept = self._tile(self._program.dims[found.output])
        first = {dim.variable: "0" for dim in kept}
        pixel, row = found.place(-1), found.place(-2)
        is_of_lanes = all(own.get(lane) == 1 for own in every)
        if is_of_lanes and all(lane not in window.into for window in found.windows):
            apart = frozenset(name for window in found.windows for name in window.into)
            order = tuple(dim for dim in kept if dim.variable != pixel)
            *outer, lanes = loops_of(order, self._ends, every, apart)

            def of_lanes(at: Mapping[str, str]) -> None:
                to, own, factors = self._pointers(found, at)
                side = f"{to}, {sums.get(pixel, 0)}, {own}, {x.get(pixel, 0)}, {factors}"
                taps = self._taps(found, self._rows(found, at))
                columns = self._pixels(found, -1, at)
                self._text.line(f"slide_lanes({side}, {taps},", f"  {columns}, {lanes.end});")

            self._write({}, outer, first, of_lanes, None)
        elif lane == pixel and sums.get(lane) == 1 and lane not in weights:
            order = tuple(dim for dim in kept if dim.variable not in (lane, row))

            def of_pixels(at: Mapping[str, str]) -> None:
                to, own, factors = self._pointers(found, at)
                side = f"{to}, {sums.get(row, 0)}, {own}, {self._high(found)}, {x[lane]}, {factors}"
                rows = str(self._sizes.get(found.tap(-2), 1))
                images = f"{self._pixels(found, -2, at)}, {self._pixels(found, -1, at)}"
                taps = self._taps(found, ["0", rows])
                self._text.line(f"slide_pixels({side}, {taps},", f"  {images});")

            outer = loops_of(order, self._ends, None, frozenset())
            self._write({}, outer, first, of_pixels, None)
        else:
            super()._reduce(reduce, compute)

    def _window_sum(self, reduce: Reduce) -> WindowSum | None:
        """Return what a reduction is as a sum over windows; None where it is none."""
        formula = self._program.formulas.get(reduce.operand)
        if formula is None or formula.op != "mul" or reduce.kind != "sum":
            return None
        for x, weights in (formula.operands, formula.operands[::-1]):
            if not {x, weights} <= self._loaded.keys():
                continue
            windows = tuple(w for w in self._loaded[x].windows if w.strides)
            taps = [[n for n in window.into if n in reduce.over] for window in windows]
            loads = [self._loaded[name] for name in (x, weights)]
            is_plain = not any(it.is_condition or it.tensor in self._quantized for it in loads)
            is_plain = is_plain and not bounds_of(loads[1])
            is_plain = is_plain and len(bounds_of(loads[0])) == sum(w.is_bounded for w in windows)
            is_known = {n for each in taps for n in each} == set(reduce.over)
            own = {dim.variable for dim in self._program.dims[weights]}
            is_known = is_known and set(reduce.over) <= own
            if 1 <= len(windows) <= 2 and is_plain and is_known and max(map(len, taps)) <= 1:
                names = tuple(each[0] if each else "" for each in taps)
                return WindowSum(reduce.output, x, weights, windows, names)
        return None

    def _every_stride(self, found: WindowSum) -> list[Strides]:
        return [self._strides(name) for name in (found.x, found.weights, found.output)]

    def _taps(self, found: WindowSum, rows: Sequence[str]) -> str:
        """Return the taps of a window, those of the rows from the first to the last."""
        x, weights, _ = self._every_stride(found)
        across = (found.tap(-2), found.tap(-1))
        steps = [own.get(name, 0) for own in (x, weights) for name in across]
        return f"(Taps){{{', '.join(map(str, steps))}, {', '.join(rows)}, {self._sizes.get(across[1], 1)}}}"

    def _rows(self, found: WindowSum, at: Mapping[str, str]) -> list[str]:
        """Return the first row of a window within the image, and the last but one."""
        tap, window = found.tap(-2), found.window(-2)
        rows = str(self._sizes.get(tap, 1))
        if window is None:
            return ["0", rows]
        place, step = self._place(found, -2, at), _step(window, tap)
        return [
            f"counted_below({bound} - ({place}), {step}, {rows})"
            for bound in (window.first, window.last)
        ]

    def _pixels(self, found: WindowSum, which: int, at: Mapping[str, str]) -> str:
        """Return places side by side, as windows slide over them."""
        window, variable = found.window(which), found.place(which)
        if window is None:
            return "(Pixels){1, 0, 1, 1, 0, 1}"
        tile = self._tile(self._program.dims[found.output])
        own = next((dim for dim in tile if dim.variable == variable), None)
        count = "1" if own is None else self._ends[variable] if own.whole else str(own.size)
        place, strides = self._place(found, which, at), _step(window, variable)
        ends = f"{_step(window, found.tap(which))}, {window.first}, {window.last}"
        return f"(Pixels){{{count}, {place}, {strides}, {ends}}}"

    def _high(self, found: WindowSum) -> int:
        """Return how far rows of an image are apart in memory."""
        window = found.window(-2)
        each = zip(window.into, window.of_each, strict=True) if window else ()
        strides = self._strides(found.x)
        return next((strides[name] // of for name, of in each if self._sizes[name] > 1), 0)

    def _place(self, found: WindowSum, which: int, at: Mapping[str, str]) -> str:
        """Return the place of a window's first tap."""
        window, tap = found.windows[which], found.tap(which)
        cut = {dim.variable for dim in self._program.dims[found.x] if self._is_cut(dim)}
        parts = []
        for name, stride in zip(window.into, window.of_each, strict=True):
            index = "0" if name == tap else at.get(name, "0")
            starts = [(start_of(name), stride)] if name in cut else []
            parts += [(index, stride), *starts]
        return sum_text(parts)

    def _pointers(self, found: WindowSum, at: Mapping[str, str]) -> list[str]:
        """Return where the sums, the first tap's elements and its weights lie."""
        return [
            f"{variable_of(name)} + {_sum(self._strides(name), at)}"
            for name in (found.output, found.x, found.weights)
        ]


def _sum(strides: Strides, at: Mapping[str, str]) -> str:
    return sum_text((at.get(name, "0"), stride) for name, stride in strides.items())


def _step(window: Window, variable: str) -> int:
    """Return by how much a place grows with a variable; 1 for none."""
    return dict(zip(window.into, window.of_each, strict=True)).get(variable, 1)
