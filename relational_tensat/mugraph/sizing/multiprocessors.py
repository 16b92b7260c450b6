"""A device of multiprocessors, as the model of a kernel's time sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from relational_tensat.cost.profile import Profile
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.tensor import DTYPE_BYTES


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """A profile, and what is modelled of a kernel's blocks beside it.

    Attributes:
        profile: peak rates, launch, multiprocessors (each runs a block at a time), shared memory.
        dtype: of elements.
        cache_factor: bandwidth of the second-level cache by that of device memory.
        efficiency: what of the peak a block reaches.
    """

    profile: Profile
    dtype: str = "float16"
    cache_factor: float = 2.5
    efficiency: float = 0.5

    @property
    def count(self) -> int:
        """Of multiprocessors."""
        return self.profile.multiprocessors

    @property
    def shared_bytes(self) -> int:
        """Of shared memory that a block may have."""
        return self.profile.shared_bytes

    @property
    def element_bytes(self) -> int:
        """Of an element."""
        return DTYPE_BYTES[self.dtype]

    @property
    def peak_flops_per_s(self) -> float:
        """Of products."""
        return self.profile.peak_for(self.dtype)

    @property
    def slowness(self) -> float:
        """How much faster products are than other operations, which ordinary cores do in float32."""
        return max(1.0, self.peak_flops_per_s / self.profile.peak_for("float32"))


@cache
def a100() -> Multiprocessors:
    """Return NVIDIA's A100 on elements of float16."""
    return Multiprocessors(load_profile("a100"))
