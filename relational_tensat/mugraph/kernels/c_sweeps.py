"""Sweeps over a tile's elements, as loops of C: in the order of memory, several as one where they may be.

Loops of variables that lie one behind the other in all that is read and written are one loop. Where a
window's elements are 0 below or above an index, a loop is several: no condition is within. The rest of a
loop that no whole vector is left for is a vector that ends with it: some elements are computed twice, which
takes a vector's time. One by one, as compilers do it, the rest of 197 takes as long as half of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.statements import Text, identifier

#: Fewer elements are no vector.
_SHORTEST_VECTOR = 4
#: Elements of the longest vectors.
VECTOR = 16

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

    def __init__(
        self,
        text: Text,
        breaks: Mapping[str, Sequence[int]] | None = None,
        *,
        may_repeat: bool = False,
    ) -> None:
        """Begin.

        Args:
            text: the writer.
            breaks: of variables, the indices at which their loops are parted.
            may_repeat: whether what is within may be done twice for an element.
        """
        self._text, self._breaks = text, breaks or {}
        self._may_repeat = may_repeat
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
        parts = list(zip([0, *edges], [*edges, loop.size], strict=True))
        is_vector = not inner and pragma is not None and loop.end == str(loop.size)
        if self._may_repeat and is_vector:
            parts = [part for each in parts for part in _whole_vectors(*each)]
        for first, last in parts:
            self.ranges[loop.variable] = first, last
            if not inner and pragma is not None and last - first >= _SHORTEST_VECTOR:
                self._text.line(f"#pragma omp simd{pragma}")
            end = str(last) if len(parts) > 1 else loop.end
            with self._text.block(f"for (long {name} = {first}; {name} < {end}; ++{name}) {{"):
                self.write(inner, {**at, loop.variable: name}, body, pragma)
        del self.ranges[loop.variable]


def _whole_vectors(first: int, last: int) -> list[tuple[int, int]]:
    """Return a range as whole vectors, and one that ends where it does; as it is where it is short."""
    rest = (last - first) % VECTOR
    if not rest or last - first < VECTOR:
        return [(first, last)]
    return [(first, last - rest), (last - VECTOR, last)]
