"""Sums over windows that slide, in C: a convolution of each channel reads each row of its image once.

Sums stay in registers over all taps of a window. Where channels lie side by side, these are vectors, and so
are weights, which are turned once for all pixels; else pixels are. At borders there are fewer taps. Other
sums over windows are reductions like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    @property
    def pixel(self) -> str:
        """The variable of places side by side, or "" for one place."""
        places = [name for name in self.windows[-1].into if name not in self.taps]
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
        is_of_lanes = all(own.get(lane) == 1 for own in every)
        if is_of_lanes and all(lane not in window.into for window in found.windows):
            apart = frozenset(name for window in found.windows for name in window.into)
            order = tuple(dim for dim in kept if dim.variable != found.pixel)
            *outer, lanes = loops_of(order, self._ends, every, apart)
            first = {dim.variable: "0" for dim in kept}

            def of_lanes(at: Mapping[str, str]) -> None:
                pixel = f"{sums.get(found.pixel, 0)}, {self._from_x(found, at)}, {x.get(found.pixel, 0)}"
                self._slide(found, at, f"slide_lanes({self._to(found, at)}, {pixel}", lanes.end)

            self._write({}, outer, first, of_lanes, None)
        elif lane == found.pixel and sums.get(lane) == 1 and lane not in weights:
            order = tuple(dim for dim in kept if dim.variable != lane)
            first = {dim.variable: "0" for dim in kept}

            def of_pixels(at: Mapping[str, str]) -> None:
                head = f"slide_pixels({self._to(found, at)}, {self._from_x(found, at)}, {x[lane]}"
                self._slide(found, at, head)

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

    def _slide(self, found: WindowSum, at: Mapping[str, str], head: str, lanes: str = "") -> None:
        """Write the call that computes the sums of pixels side by side."""
        x, weights, _ = self._every_stride(found)
        *above, window = found.windows
        *row, tap = found.taps
        row_tap = row[0] if row else ""
        rows = str(self._sizes.get(row_tap, 1))
        ends = ["0", rows]
        if above:
            place, step = self._place(found, 0, at), _step(above[0], row_tap)
            ends = [
                f"counted_below({bound} - ({place}), {step}, {rows})"
                for bound in (above[0].first, above[0].last)
            ]
        steps = [own.get(name, 0) for own in (x, weights) for name in (row_tap, tap)]
        taps = (
            f"(Taps){{{', '.join(map(str, steps))}, {', '.join(ends)}, {self._sizes.get(tap, 1)}}}"
        )
        pixels, stride = "1", 1
        if found.pixel:
            own = next(
                d for d in self._tile(self._program.dims[found.output]) if d.variable == found.pixel
            )
            pixels = self._ends[own.variable] if own.whole else str(own.size)
            stride = _step(window, found.pixel)
        places = [
            pixels,
            self._place(found, -1, at),
            stride,
            _step(window, tap),
            window.first,
            window.last,
        ]
        own_weights = f"{variable_of(found.weights)} + {_sum(weights, at)}"
        more = f", {lanes}" if lanes else ""
        self._text.line(f"{head}, {own_weights}, {taps},")
        self._text.line(f"  (Pixels){{{', '.join(map(str, places))}}}{more});")

    def _place(self, found: WindowSum, which: int, at: Mapping[str, str]) -> str:
        """Return the place of a window's first tap."""
        window, tap = found.windows[which], found.taps[which]
        cut = {dim.variable for dim in self._program.dims[found.x] if self._is_cut(dim)}
        parts = []
        for name, stride in zip(window.into, window.of_each, strict=True):
            index = "0" if name == tap else at.get(name, "0")
            starts = [(start_of(name), stride)] if name in cut else []
            parts += [(index, stride), *starts]
        return sum_text(parts)

    def _to(self, found: WindowSum, at: Mapping[str, str]) -> str:
        return f"{variable_of(found.output)} + {_sum(self._strides(found.output), at)}"

    def _from_x(self, found: WindowSum, at: Mapping[str, str]) -> str:
        return f"{variable_of(found.x)} + {_sum(self._strides(found.x), at)}"


def _sum(strides: Strides, at: Mapping[str, str]) -> str:
    return sum_text((at.get(name, "0"), stride) for name, stride in strides.items())


def _step(window: Window, variable: str) -> int:
    """Return by how much a place grows with a variable; 1 for none."""
    return dict(zip(window.into, window.of_each, strict=True)).get(variable, 1)
