"""What lies between kernels as float32: sums of parts may be larger than any element of the model's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation


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
