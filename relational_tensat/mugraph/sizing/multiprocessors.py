"""A device of multiprocessors, as the model of a kernel's time sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from relational_tensat.cost.profile import Profile
from relational_tensat.cost.profile_file import load_profile


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """What the profiles of the cost model do not say, beside one of them.

    Attributes:
        profile: peak rates and launch.
        count: of multiprocessors; each runs a block at a time.
        shared_bytes: of shared memory that a block may have.
        cache_factor: bandwidth of the second-level cache by that of device memory.
        efficiency: what of the peak a block reaches.
    """

    profile: Profile
    count: int
    shared_bytes: int
    cache_factor: float = 2.5
    efficiency: float = 0.5


@cache
def a100() -> Multiprocessors:
    """Return NVIDIA's A100: 108 multiprocessors, 163 KB of shared memory for a block (its tuning guide)."""
    return Multiprocessors(load_profile("a100"), 108, 163 * 1024)
