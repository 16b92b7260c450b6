"""μGraphs that tests share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
    ThreadGraph,
)


def flash_attention(h: int = 2, q: int = 4, d: int = 4, k: int = 8, e: int = 2) -> MuGraph:
    """FlashAttention without its maximum: a grid over heads and queries, a loop over keys."""
    block = BlockGraph(
        grid=(2, 2),
        loop=4,
        iterators=(
            InputIterator("Q", "q", ("h", "q")),
            InputIterator("K", "k", ("h", ""), "k"),
            InputIterator("V", "v", ("h", ""), "k"),
        ),
        steps=(
            Operation("matmul", ("q", "k"), "s", {"over": ("d",)}),
            ThreadGraph((Operation("exp", ("s",), "p"),), ("p",)),
            Operation("sum", ("p",), "r", {"over": ("k",)}),
            Accumulate("r", "l"),
            Operation("matmul", ("p", "v"), "o", {"over": ("k",)}),
            Accumulate("o", "a"),
            Operation("div", ("a", "l"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"h={h} q={q} e={e}"), ("h", "q")),),
    )
    inputs = {
        "Q": dims_of(f"h={h} q={q} d={d}"),
        "K": dims_of(f"h={h} d={d} k={k}"),
        "V": dims_of(f"h={h} k={k} e={e}"),
    }
    return MuGraph("attention", inputs, (Kernel("flash", block),), ("Y",))


def with_wide_results(graph: MuGraph) -> MuGraph:
    """Return a μGraph whose kernels store as float32 whatever is no output, nor read by a library."""
    narrow = {*graph.outputs}
    for step in graph.steps:
        narrow.update(step.operands if isinstance(step, Operation) else ())
    return replace(
        graph,
        steps=tuple(
            _widened(step, narrow) if isinstance(step, Kernel) else step for step in graph.steps
        ),
    )


def _widened(kernel: Kernel, narrow: Collection[str]) -> Kernel:
    savers = tuple(
        saver if saver.output in narrow else replace(saver, is_wide=True)
        for saver in kernel.block.savers
    )
    return replace(kernel, block=replace(kernel.block, savers=savers))
