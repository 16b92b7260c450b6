"""What a statement's accesses to memory cost, by where a layout puts the elements."""

from __future__ import annotations

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.layouts.accesses import Access, reading_of
from relational_tensat.mugraph.kernels.layouts.memory_clocks import (
    CLOCK,
    Flags,
    Ints,
    sectors,
    wavefronts,
)
from relational_tensat.mugraph.kernels.lowering.layouts import Layout

#: Each access is an instruction; a swizzled one computes its address in one more.
_ISSUE = 1


def shared_cost(access: Access, layout: Layout, tile: Dims, item_bytes: int) -> int:
    """Return what an access to shared memory costs, all of its times."""
    own, summed = access.product
    whole = access.eights.get(reading_of(layout, tile, own, summed)) if item_bytes == 2 else None
    if whole is not None:
        return shared_cost(whole, layout, tile, item_bytes)
    addresses = _addresses(access, layout, item_bytes)
    is_one = not access.pairs or layout.moves(access.pairs, 2, tile)
    width = access.width * (2 if access.pairs and is_one else 1) * item_bytes
    clocks = wavefronts(addresses, _active(access, addresses), width)
    instructions = np.count_nonzero(clocks) * (_ISSUE + bool(layout.swizzled))
    once = CLOCK * int(clocks.sum()) + instructions
    return int(once) * (1 if is_one else 2) * access.times


def device_cost(access: Access, layout: Layout, item_bytes: int) -> int:
    """Return what an access to device memory costs, all of its times."""
    addresses = _addresses(access, layout, item_bytes)
    moved = sectors(addresses, _active(access, addresses), access.width * item_bytes)
    return int(moved.sum() + np.count_nonzero(moved) * _ISSUE) * access.times


def _addresses(access: Access, layout: Layout, item_bytes: int) -> Ints:
    zero = np.zeros((1, 1), np.int64)
    at = {variable: access.at.get(variable, zero) for variable in layout.strides}
    shape = np.broadcast_shapes(access.active.shape, *(index.shape for index in at.values()))
    return np.broadcast_to(layout.offsets(at) * item_bytes, shape)


def _active(access: Access, addresses: Ints) -> Flags:
    return np.broadcast_to(access.active, addresses.shape)
