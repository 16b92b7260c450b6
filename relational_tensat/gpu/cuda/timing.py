"""Microseconds between two events on the GPU's stream; clean caches; how fast the clock is."""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.gpu.calls import Product, Ref
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary
from relational_tensat.gpu.cuda.events import Events
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.fallback import own_launch

#: Edge of the product that tells how fast the clock is: about half a millisecond on a data-centre GPU.
_REFERENCE_EDGE = 1024
_REFERENCE_REPEATS = 4


class Timer:
    """Events, a buffer that fills the L2 cache, and the fixed product.

    The product runs on our own kernel: whichever libraries there are, it is the same.
    """

    def __init__(self, library: CudaLibrary) -> None:
        self._library = library
        self._gpu: Gpu = library.gpu
        self._events = Events(library.gpu)
        self._flush_words = max(2 * self._gpu.l2_bytes, 64 << 20) // 4
        self._flush = library.allocate(4 * self._flush_words)
        self._turn = 0
        self._reference = self._make_reference()

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        """Return how long ``work`` takes on the GPU, see ``Events``."""
        return self._events.time_us(before, work)

    def flush_cache(self) -> None:
        """Enqueue writes of twice the L2 cache: nothing else is left in it."""
        self._turn += 1  # another pattern each time, so that no write is none
        self._gpu.driver.memset_d32_async(
            self._flush, self._turn & 0xFFFF, self._flush_words, self._gpu.stream
        )

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product: less than usual, and the clock is faster."""
        return self.time_us(self._reference, self._repeat_reference) / _REFERENCE_REPEATS

    def _repeat_reference(self) -> None:
        for _ in range(_REFERENCE_REPEATS):
            self._reference()

    def _make_reference(self) -> Callable[[], None]:
        n = _REFERENCE_EDGE
        call = Product(
            c=Ref("c"), a=Ref("a"), b=Ref("b"), bias=None, dtype="float32", math="fp32",
            m=n, n=n, k=n, batches=(1, 1, 1), a_strides=(0, 0, 0), b_strides=(0, 0, 0),
            bias_strides=(0, 0, 0, 0, 0), act="none",
        )  # fmt: skip
        addresses = {name: self._library.allocate(4 * n * n) for name in "abc"}
        for address in addresses.values():
            self._gpu.driver.memset_d32(address, 0x3F000000, n * n)  # 0.5, everywhere
        bound = self._library.bind(own_launch(call), lambda ref: addresses[ref.buffer])
        return lambda: bound.start(0)
