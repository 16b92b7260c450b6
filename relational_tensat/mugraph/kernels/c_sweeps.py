"""Sweeps over a tile's elements, as loops of C: in the order of memory, several as one where they may be.

Loops of variables that lie one behind the other in all that is read and written are one loop. Where a
window's elements are 0 below or above an index, a loop is several: no condition is within.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.statements import Text, identifier

#: Fewer elements are no vector.
_SHORTEST_VECTOR = 4

Strides = Mapping[str, int]
Body = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: of a variable, or of several that are counted by one index.

    Attributes:
        variable: the innermost of them, which the index is of; that of others is 0.
        all: of them.
        size: how many elements at most.
        end: the same, as C spells it.
    """

    variable: str
    size: int
    end: str
    all: tuple[str, ...] = ()


def loops_of(
    dims: Dims, ends: Mapping[str, str], strides: Sequence[Strides] | None, apart: frozenset[str]
) -> list[Loop]:
    """Return the loops over a tile, the outermost first.

    Args:
        dims: of the tile, in order.
        ends: how C spells the number of elements along variables whose last tile is smaller.
        strides: of each tensor that is read or written; None where they are not known.
        apart: variables whose index has a meaning of its own.
    """
    loops: list[Loop] = []
    for dim in reversed([dim for dim in dims if dim.size > 1]):
        end = ends[dim.variable] if dim.whole else str(dim.size)
        own = Loop(dim.variable, dim.size, end, (dim.variable,))
        inner = loops[-1] if loops else None
        if (
            inner is not None
            and strides is not None
            and inner.end == str(inner.size)
            and not {own.variable, inner.variable} & apart
            and all(
                each.get(own.variable, 0) == each.get(inner.variable, 0) * inner.size
                for each in strides
            )
        ):
            size = own.size * inner.size
            end = str(size) if own.end == str(own.size) else f"{own.end} * {inner.size}"
            loops[-1] = Loop(inner.variable, size, end, (*own.all, *inner.all))
        else:
            loops.append(own)
    return loops[::-1]


class Sweep:
    """Writes the loops of one sweep.

    Attributes:
        ranges: of the loops around what is written now: of each variable its first index, and the last but
            one at most.
    """

    def __init__(self, text: Text, breaks: Mapping[str, Sequence[int]] | None = None) -> None:
        """Begin.

        Args:
            text: what is written to.
            breaks: of variables, the indices at which their loops are parted.
        """
        self._text, self._breaks = text, breaks or {}
        self.ranges: dict[str, tuple[int, int]] = {}

    def write(
        self, loops: Sequence[Loop], at: Mapping[str, str], body: Body, pragma: str | None = ""
    ) -> None:
        """Write loops around a body.

        Args:
            loops: the outermost first.
            at: the index of each variable that has no loop here.
            body: writes what is within, given the index of each variable.
            pragma: clauses of the innermost loop, which is of vectors; None where it is not.
        """
        if not loops:
            body(at)
            return
        loop, *inner = loops
        name = f"i_{identifier(loop.variable)}"
        edges = [place for place in self._breaks.get(loop.variable, ()) if 0 < place < loop.size]
        for first, last in zip([0, *edges], [*edges, loop.size], strict=True):
            self.ranges[loop.variable] = first, last
            if not inner and pragma is not None and last - first >= _SHORTEST_VECTOR:
                self._text.line(f"#pragma omp simd{pragma}")
            end = str(last) if edges else loop.end
            with self._text.block(f"for (long {name} = {first}; {name} < {end}; ++{name}) {{"):
                self.write(inner, {**at, loop.variable: name}, body, pragma)
        del self.ranges[loop.variable]
