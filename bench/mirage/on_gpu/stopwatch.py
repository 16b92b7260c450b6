"""The stopwatch of ``relational_tensat.cost.cuda.protocol``, by PyTorch's events and CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from relational_tensat.cost.cuda.protocol import WARM

#: Edge of the product that tells how fast the clock is: about half a millisecond on a data-centre GPU.
_REFERENCE_EDGE = 2048
#: What is written to leave nothing else in the second-level cache.
_FLUSH_BYTES = 256 << 20

#: Enqueues the same work each time.
Work = Callable[[], object]


class TorchStopwatch:
    """Times work that is enqueued on PyTorch's stream; batches are CUDA graphs."""

    def __init__(self) -> None:
        edge = _REFERENCE_EDGE
        self._a, self._b = (torch.randn(edge, edge, device="cuda") for _ in range(2))
        self._product = torch.empty_like(self._a)
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self._recorded: dict[tuple[Work, int], Any] = {}

    def time_us(self, subject: Work, mode: str, batch: int) -> float:
        """Return the microseconds of ``batch`` calls; cold: each with nothing of its own in the cache."""
        if mode == WARM:
            recorded = self._of(subject, batch)
            return self._between(recorded.replay, recorded.replay)
        recorded = self._of(subject, 1)
        return sum(self._between(self._write_cache, recorded.replay) for _ in range(batch))

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product."""

        def multiply() -> None:
            torch.mm(self._a, self._b, out=self._product)

        return self._between(multiply, multiply)

    def forget(self) -> None:
        """Drop what was recorded, and its memory."""
        self._recorded.clear()
        torch.cuda.empty_cache()

    def _write_cache(self) -> None:
        self._flush.fill_(1)

    def _between(self, before: Work, work: Work) -> float:
        """Time work; what is enqueued before it runs meanwhile: the GPU does not wait for this process."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3

    def _of(self, subject: Work, batch: int) -> Any:
        """Return a batch as one CUDA graph, recorded when it is first asked for."""
        if (subject, batch) not in self._recorded:
            subject()  # compiled and allocated before it is recorded
            torch.cuda.synchronize()
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded):
                for _ in range(batch):
                    subject()
            self._recorded[subject, batch] = recorded
        return self._recorded[subject, batch]
