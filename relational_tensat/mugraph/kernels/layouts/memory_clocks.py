"""What accesses of a warp's threads to memory cost, exactly, by their addresses.

Shared memory has 32 banks of 4 bytes: a clock serves one word of each bank, whoever wants it. Device memory
is moved in sectors of 32 bytes, of which the second-level cache brings a multiprocessor two in a clock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: All costs are in halves of a clock.
CLOCK = 2
_BANKS, _WORD_BYTES, _SECTOR_BYTES = 32, 4, 32
_MOST_BYTES = _BANKS * _WORD_BYTES


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
