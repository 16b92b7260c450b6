"""What kernels move is what their maps say, block by block."""

from __future__ import annotations

import itertools
import math

from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.mugraph import InputIterator, Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.sizes.cost_model import transfers
from tests.mugraph.kernels.mugraphs import CHAINS, SMALL, attention
from tests.mugraph.mugraphs import flash_attention


def moved_slowly(kernel: Kernel, graph: MuGraph) -> list[int]:
    """Count the elements of each tile of each block in each iteration."""
    device = kernel_tensors(graph)
    block = kernel.block
    moved = []
    for step in (*block.iterators, *block.savers):
        is_load = isinstance(step, InputIterator)
        dims = device[step.tensor] if isinstance(step, InputIterator) else step.dims
        maps = step.imap if isinstance(step, InputIterator) else step.omap
        total = 0
        for _ in itertools.product(*map(range, block.grid)):
            loads = block.loop if isinstance(step, InputIterator) and step.fmap else 1
            for _ in range(loads):
                sizes = {dim.variable: dim.size for dim in dims}
                for variable, parts in zip(maps, block.grid, strict=True):
                    if variable:
                        sizes[variable] //= parts
                if isinstance(step, InputIterator) and step.fmap:
                    sizes[step.fmap] //= block.loop
                total += math.prod(sizes.values())
        moved.append(total)
        assert is_load or total == count(dims), "each element of a result is stored once"
    return moved


def test_what_is_moved_is_what_each_block_loads_and_stores() -> None:
    graphs = [flash_attention(), attention(), *CHAINS, *SMALL]
    for graph in graphs:
        device = kernel_tensors(graph)
        for kernel in graph.kernels:
            moved = transfers(kernel, device)
            assert [one.moved_elements for one in moved] == moved_slowly(kernel, graph)
            assert all(
                one.moved_elements <= one.tensor_elements for one in moved if not one.is_load
            )


def test_keys_are_loaded_again_by_each_block_of_queries() -> None:
    graph = flash_attention()
    (kernel,) = graph.kernels
    q, k, _, y = transfers(kernel, kernel_tensors(graph))
    assert (q.moved_elements, q.tensor_elements) == (32, 32)
    assert (k.moved_elements, k.tensor_elements) == (128, 64)
    assert not y.is_load
