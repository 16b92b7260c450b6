"""The fastest of several ways to start the same work, by a few runs of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.cuda.events import Events
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.cuda.graphs import record_launches

#: Runs that are timed together, and how many times; the shortest of these counts.
_TOGETHER, _TIMES = 10, 3
#: What is faster by less is as fast: the first one is taken, whatever the clock says today.
_TIE = 0.02


def quickest(gpu: Gpu, starts: Sequence[Callable[[], None]]) -> int:
    """Return the number of the way that takes the least time; of one alone, it is not run.

    Args:
        starts: each enqueues the work on the GPU's stream.

    Raises:
        InputError: none of them runs; gives the last one's reason.
    """
    if len(starts) == 1:
        return 0
    times_us: dict[int, float] = {}
    reason = InputError("there is no way to start it")
    for number, start in enumerate(starts):
        try:
            times_us[number] = _time_us(gpu, start)
        except InputError as error:
            reason = error
    if not times_us:
        raise reason
    enough_us = (1 + _TIE) * min(times_us.values())
    return next(number for number, time_us in times_us.items() if time_us <= enough_us)


def _time_us(gpu: Gpu, start: Callable[[], None]) -> float:
    """Return the microseconds of a run, as part of a CUDA graph.

    Raises:
        InputError: it does not run.
    """

    def together() -> None:
        for _ in range(_TOGETHER):
            start()

    try:
        start()  # once before it is recorded: nothing may be loaded then
        gpu.stream.synchronize()
        recorded = record_launches(gpu, together)
        try:
            events = Events(gpu)
            times_us = [events.time_us(recorded.start, recorded.start) for _ in range(_TIMES)]
        finally:
            recorded.close()
    except gpu.driver.Error as error:
        raise InputError(f"the GPU: {error}") from error
    return min(times_us) / _TOGETHER
