"""What accesses of a warp cost, exactly, by address.

Shared memory has 32 banks of 4 bytes: a clock serves one word of each bank, to all threads that want it.
Device memory is moved in sectors of 32 bytes, of which the second-level cache brings a multiprocessor two
in a clock.
"""

from __future__ import annotations

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.kernels.accesses import Access, Flags, Ints, reading_of
from relational_tensat.mugraph.kernels.layouts import Layout

#: All costs are in halves of a clock.
CLOCK = 2
_BANKS, _WORD_BYTES, _SECTOR_BYTES = 32, 4, 32
_MOST_BYTES = _BANKS * _WORD_BYTES
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


def wavefronts(addresses: Ints, active: Flags, width_bytes: int) -> Ints:
    """Return how many clocks shared memory takes for each access of a warp.

    Args:
        addresses: in bytes, by access and thread.
        active: which threads take part.
        width_bytes: of what a thread moves.
    """
    threads = max(1, min(addresses.shape[-1], _MOST_BYTES // width_bytes))
    return np.array(
        [
            sum(
                _conflicts(row[start : start + threads], on[start : start + threads], width_bytes)
                for start in range(0, len(row), threads)
            )
            for row, on in zip(addresses, active, strict=True)
        ],
        np.int64,
    )


def _conflicts(addresses: Ints, active: Flags, width_bytes: int) -> int:
    """Return how many words the busiest bank is asked for."""
    words = {
        (address + byte) // _WORD_BYTES
        for address in addresses[active].tolist()
        for byte in range(0, width_bytes, _WORD_BYTES)
    }
    if not words:
        return 0
    return int(np.bincount([word % _BANKS for word in words]).max())


def sectors(addresses: Ints, active: Flags, width_bytes: int) -> Ints:
    """Return how many sectors of device memory each access of a warp touches; see ``wavefronts``."""
    return np.array(
        [
            len(
                {
                    (address + byte) // _SECTOR_BYTES
                    for address in row[on].tolist()
                    for byte in (0, width_bytes - 1)
                }
            )
            for row, on in zip(addresses, active, strict=True)
        ],
        np.int64,
    )
