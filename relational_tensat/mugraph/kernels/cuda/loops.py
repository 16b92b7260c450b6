"""The loops of a block's threads as CUDA: over the elements of a tensor, over a product's registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.kernels.cuda.partials import WARPS
from relational_tensat.mugraph.kernels.lowering.formulas import parts_of
from relational_tensat.mugraph.kernels.lowering.statements import Frame
from relational_tensat.mugraph.kernels.lowering.text import Text

#: Threads of a block.
THREADS = 32 * WARPS
#: So many passes of a loop are begun at once: their loads are on their way together.
_UNROLLED = 8


class Loops:
    """Writes loops; what is written meanwhile is in them."""

    def __init__(self, text: Text) -> None:
        """Begin at the end of a text."""
        self._text = text

    @contextmanager
    def elements(self, dims: Dims, width: int = 1) -> Iterator[Mapping[str, str]]:
        """Have the threads go over all elements; yield an index for each variable."""
        total = count(dims) // width
        narrow = tuple(
            replace(dim, size=dim.size // width) if place == len(dims) - 1 else dim
            for place, dim in enumerate(dims)
        )
        at = parts_of("e", narrow)
        if width > 1:
            at[dims[-1].variable] = f"{at[dims[-1].variable]} * {width}"
        with self._passes(total):
            yield at

    @contextmanager
    def _passes(self, total: int) -> Iterator[None]:
        """Have the threads count so many with e; how often each goes round is a constant."""
        passes, is_cut = -(-total // THREADS), total % THREADS != 0
        if passes == 1 and is_cut:
            with self._text.block(f"if (threadIdx.x < {total}) {{"):
                self._text.line("const int e = threadIdx.x;")
                yield
            return
        self._text.line(f"#pragma unroll {min(passes, _UNROLLED)}")
        with self._text.block(f"for (int pass = 0; pass < {passes}; ++pass) {{"):
            self._text.line("const int e = pass * THREADS + threadIdx.x;")
            if is_cut:
                self._text.line(f"if (e >= {total}) break;")
            yield

    @contextmanager
    def each(self, frame: Frame) -> Iterator[Mapping[str, str]]:
        """Have the threads go over their registers; yield an index for each variable."""
        _, rows, columns = frame.sizes
        with (
            self.batch(frame),
            self._text.block(
                f"each<{rows}, {columns}>([&](int row, int column, Own own) {{", "});"
            ),
        ):
            yield frame_index(frame)

    @contextmanager
    def batch(self, frame: Frame) -> Iterator[None]:
        """Have the threads go over the matrices of a product, if it has several."""
        if frame.sizes[0] == 1:
            yield
            return
        self._text.line("#pragma unroll")
        with self._text.block(f"for (int b = 0; b < {frame.sizes[0]}; ++b) {{"):
            yield


def frame_index(frame: Frame) -> dict[str, str]:
    """Return an index for each variable of a product, in its batch b, row and column."""
    return {
        **parts_of("b", frame.batch),
        **parts_of("row", frame.rows),
        **parts_of("column", frame.columns),
    }
