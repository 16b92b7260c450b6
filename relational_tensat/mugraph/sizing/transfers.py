"""What a kernel moves between device memory and its blocks, counted from its maps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mugraph import Iterator, Kernel, Saver
from relational_tensat.mugraph.graph.well_formed import block_tensors, loaded_dims


@dataclass(frozen=True, slots=True)
class Transfer:
    """What all blocks together load or store of a tensor.

    Attributes:
        step: the iterator or saver.
        tile: dims of what a block moves at a time.
        moved_elements: of all blocks and iterations; what several of them need counts for each.
        tensor_elements: of the tensor in device memory: no less can be moved.
    """

    step: Iterator | Saver
    tile: Dims
    moved_elements: int
    tensor_elements: int

    @property
    def is_load(self) -> bool:
        """Whether it is from device memory to the blocks."""
        return isinstance(self.step, Iterator)


def transfers(kernel: Kernel, device: Mapping[str, Dims]) -> list[Transfer]:
    """Return what a kernel loads, in order, and then what it stores.

    Args:
        kernel: the kernel.
        device: the dims of tensors in device memory.

    Raises:
        InputError: it is not well-formed.
    """
    block = kernel.block
    dims = block_tensors(kernel, device).dims
    blocks = math.prod(block.grid)
    loads = [
        Transfer(
            step=iterator,
            tile=dims[iterator.output],
            moved_elements=blocks
            * (block.loop if iterator.fmap else 1)
            * count(dims[iterator.output]),
            tensor_elements=count(loaded_dims(iterator, device)),
        )
        for iterator in block.iterators
    ]
    stores = [
        Transfer(saver, dims[saver.tile], blocks * count(dims[saver.tile]), count(saver.dims))
        for saver in block.savers
    ]
    return loads + stores
