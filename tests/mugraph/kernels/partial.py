"""μGraphs whose last tile is smaller: sizes one beside a tile's, primes, and what loops put together."""

from __future__ import annotations

from collections.abc import Iterator

from relational_tensat.mugraph.graph.dims import Window, dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from tests.mugraph.kernels.inputs import numbered
from tests.mugraph.kernels.mugraphs import attention, gated_mlp, logsumexp, ntrans, rmsnorm_linear


def position_by_position(m: int = 5, n: int = 7, has_product: bool = False) -> MuGraph:
    """The loop adds up exponentials, or products of them, position by position of a tile."""
    product = Operation("matmul", ("e", "w"), "p", {"over": ("j",)})
    columns = "c=3" if has_product else "j=6"
    steps: tuple[BlockStep, ...] = (
        Operation("exp", ("x",), "e"),
        *((product,) if has_product else ()),
        Accumulate("p" if has_product else "e", "all"),
        Operation("sum", ("all",), "y", {"over": ("n",)}),
    )
    inputs = {"X": dims_of(f"m={m} n={n} j=6")}
    iterators = (InputIterator("X", "x", ("m",), "n"),)
    if has_product:
        inputs["W"] = dims_of("j=6 c=3")
        iterators = (*iterators, InputIterator("W", "w", ("",)))
    savers = (Saver("y", "Y", dims_of(f"m={m} {columns}"), ("m",)),)
    block = BlockGraph((2,), 3, iterators, steps, savers)
    return MuGraph("positions", inputs, (Kernel("positions", block),), ("Y",))


def gathered(m: int = 5, n: int = 11) -> MuGraph:
    """Iterations are put one after the other, and cut."""
    dims = dims_of(f"m={m} n={n}")
    block = BlockGraph(
        (2,),
        3,
        (InputIterator("X", "x", ("m",), "n"),),
        (
            Operation("exp", ("x",), "e"),
            Accumulate("e", "all", "concat", ("n",)),
            Operation("sum", ("all",), "s", {"over": ("n",)}),
            Operation("div", ("all", "s"), "y"),
        ),
        (Saver("y", "Y", dims, ("m",)),),
    )
    return MuGraph("gathered", {"X": dims}, (Kernel("gathered", block),), ("Y",))


def windowed(m: int = 5, n: int = 11) -> MuGraph:
    """The last n of 30 are taken of the input, in tiles."""
    window = Window(("k",), ("n",), (n,), 30 - n, 1, 0, n)
    block = BlockGraph(
        (2,),
        4,
        (InputIterator("X", "x", ("m",), "n", (window,)),),
        (
            Operation("exp", ("x",), "e"),
            Operation("sum", ("e",), "r", {"over": ("n",)}),
            Accumulate("r", "y"),
        ),
        (Saver("y", "Y", dims_of(f"m={m}"), ("m",)),),
    )
    inputs = {"X": dims_of(f"m={m} k=30")}
    return MuGraph("windowed", inputs, (Kernel("windowed", block),), ("Y",))


def _attentions() -> Iterator[MuGraph]:
    """The last tile has one key fewer than others, or one only; primes; a smaller tile of heads, too."""
    for q, k in ((31, 63), (29, 13), (23, 61), (3, 3)):
        yield attention(q=q, k=k, grid=(1, 2) if q == 23 else (2, 2), loop=2 if k == 3 else 4)
    yield attention(h=3, q=17, e=13, k=37, grid=(2, 2), loop=3)


#: No products: those of which C is made.
PARTIAL_CHAINS = tuple(
    numbered((
        ntrans(7, 100, 4), ntrans(3, 13, 2), logsumexp(5, 47), logsumexp(3, 33), logsumexp(4, 21, 4, 5),
        position_by_position(), windowed(), gathered(),
    ))
)  # fmt: skip
#: Those of which CUDA is made; of all but the first Triton, which concatenates no iterations.
PARTIAL = (
    PARTIAL_CHAINS[-1],
    *PARTIAL_CHAINS[:-1],
    *numbered((
        *_attentions(), rmsnorm_linear(5, 61, 31), rmsnorm_linear(16, 65, 33), gated_mlp(13, 63, 17),
        position_by_position(has_product=True),
    )),
)  # fmt: skip
