"""Whether anybody disturbs the processor: a small matrix product that should take as long as always.

A thread's CPU time does not count while others have the processor. But it suffers from what they do to the
caches, and far more from a second thread on the same core. On a core of two hardware threads everything
takes 1.5 to 2 times as long. Virtual machines often do not report that their processors share a core. So
the processor is watched by some arithmetic and some memory, run as everything else is.

How fast the processor is undisturbed is remembered from one process to the next. A process that begins
while others keep the processor busy sees it disturbed only: it would take the disturbance for the
processor, and its times would be up to twice too long. A process that has seen it undisturbed writes down
what the reference took then.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import unless_full, write_aside
from relational_tensat.base.process import instruction_sets, processor_name
from relational_tensat.cost.cache import default_cache
from relational_tensat.cost.cpu.session import prepare
from relational_tensat.tensor import Node, TensorType, Weight, build_graph

#: So much slower than at its best, the reference says that the processor is disturbed.
DISTURBED = 1.08
#: Between two looks at a disturbed processor.
_WAIT_S = 0.0003
#: For so long the reference runs at first, to learn how long it takes undisturbed.
_LEARNING_S = 0.5
#: The best is a low percentile of the last readings: now and then a clock runs faster for a moment.
_BEST_PERCENTILE = 1
_READINGS = 20_000
#: The percentile is recomputed after so many readings.
_RENEWED_AFTER = 500


def thread_us(function: Callable[[], object]) -> float:
    """Return the CPU time of this thread that one call takes, in microseconds."""
    start = time.thread_time_ns()
    function()
    return (time.thread_time_ns() - start) / 1e3


def wall_us(function: Callable[[], object]) -> float:
    """Return the wall time that one call takes, in microseconds."""
    start = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - start) / 1e3


#: Times one call, in microseconds.
Clock: TypeAlias = Callable[[Callable[[], object]], float]


def clock_of(threads: int) -> Clock:
    """Return what times work of so many threads: one's CPU time does not have what others do."""
    return thread_us if threads == 1 else wall_us


class QuietWatch(Protocol):
    """Measures how disturbed the processor is: ``Quiet``, but for tests."""

    def slowdown(self) -> float:
        """Return how many times as long as undisturbed things take now."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One sample: microseconds, and how slow the processor was right before and right after."""

    time_us: float
    before: float
    after: float

    @property
    def is_undisturbed(self) -> bool:
        """Whether nobody disturbed it, as far as can be known."""
        return max(self.before, self.after) <= DISTURBED

    @property
    def is_steady(self) -> bool:
        """Whether the processor was as disturbed after as before, so that it can be corrected."""
        return max(self.before, self.after) <= DISTURBED * min(self.before, self.after)

    @property
    def corrected_us(self) -> float:
        """The time divided by how slow the processor was."""
        return self.time_us / max((self.before + self.after) / 2, 1.0)


def take(
    function: Callable[[], object],
    prepare: Callable[[], object],
    watch: QuietWatch,
    clock: Clock | None = None,
) -> Taken:
    """Time a function once, right after what prepares it; by the thread's CPU time unless given a clock."""
    before = watch.slowdown()
    prepare()
    time_us = (clock or thread_us)(function)
    return Taken(time_us, before, watch.slowdown())


def is_quiet(watch: QuietWatch, give_up: float) -> bool:
    """Wait until the processor is undisturbed; False at a time of ``time.perf_counter``."""
    while watch.slowdown() > DISTURBED:
        if time.perf_counter() >= give_up:
            return False
        time.sleep(_WAIT_S)
    return True


class Memory(Protocol):
    """A memory from one process to the next: ``cost.cpu.baseline``."""

    def best_us(self) -> float:
        """Return the best time of the reference that is known, infinity where none is."""

    def keep(self, best_us: float) -> None:
        """Remember a time if it is better."""


class Quiet:
    """Watches the processor by means of a reference.

    Args:
        reference: takes some tens of microseconds; run at once, for half a second.
        memory: notes of other processes, before and after this one.
    """

    def __init__(self, reference: Callable[[], object], memory: Memory) -> None:
        self._reference = reference
        self._memory = memory
        self._readings: deque[float] = deque(maxlen=_READINGS)
        self._best_us = memory.best_us()
        self._new = 0
        start_s = time.perf_counter()
        while time.perf_counter() - start_s < _LEARNING_S or not self._readings:
            self._readings.append(thread_us(reference))
        self._renew()

    def slowdown(self) -> float:
        """Return how many times as long as undisturbed the reference takes now."""
        self._reference()  # its own data back into the caches
        time_us = thread_us(self._reference)
        self._readings.append(time_us)
        self._new += 1
        if self._new >= _RENEWED_AFTER:
            self._renew()
        return time_us / self._best_us

    def _renew(self) -> None:
        best_us = float(np.percentile(self._readings, _BEST_PERCENTILE))
        self._memory.keep(best_us)
        self._best_us = min(best_us, self._memory.best_us())
        self._new = 0


#: A better time is written down from so much on, as a fraction: less is noise.
_BETTER = 0.005


class Baseline:
    """The best time of the reference under one name: a processor and what runs the reference.

    Args:
        name: everything that it depends on.
        path: a JSON object of microseconds by name; None for the file beside the user's cost cache.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        self._name = name
        self._path = path or default_cache().parent / "undisturbed.json"

    def best_us(self) -> float:
        """Return the best time that is known, infinity where none is.

        Raises:
            InputError: the file is not what was written.
        """
        return self._read().get(self._name, math.inf)

    def keep(self, best_us: float) -> None:
        """Write a time down if it is better than what is known.

        Raises:
            InputError: the file cannot be written, or is not what was written.
        """
        times_us = self._read()
        if best_us < (1 - _BETTER) * times_us.get(self._name, math.inf):
            text = json.dumps({**times_us, self._name: best_us}, indent=1)
            with unless_full():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with write_aside(self._path) as folder:
                    (folder / self._path.name).write_text(text, encoding="utf-8")

    def _read(self) -> dict[str, float]:
        if not self._path.is_file():
            return {}
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError:
            content = None
        if not isinstance(content, dict) or not all(map(_is_time, content.values())):
            raise InputError(f"{self._path}: expected a JSON object of microseconds; delete it")
        return content


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


#: A second thread on the core slows arithmetic more than memory: some 20 µs of each.
_LEFT = TensorType("float32", (64, 128))
_RIGHT = TensorType("float32", (128, 128))
_STREAM = TensorType("float32", (64, 1024))


@cache
def processor_watch() -> Quiet:
    """Return the watch over this machine's processor: one, for it learns; the first call takes 0.5 s.

    Raises:
        InputError: the notes of earlier processes cannot be read, or new ones cannot be written.
    """
    rng = np.random.default_rng(0)
    values = {kind: rng.random(kind.shape, dtype=np.float32) for kind in (_LEFT, _RIGHT, _STREAM)}
    graph = build_graph(
        "reference",
        {"left": _LEFT, "stream": _STREAM},
        {"right": Weight(_RIGHT, values[_RIGHT])},
        [Node("matmul", ("left", "right"), ("product",)), Node("relu", ("stream",), ("positive",))],
        ["product", "positive"],
    )
    name = f"{processor_name()}; {instruction_sets()}; onnxruntime {version('onnxruntime')}"
    run = prepare(graph, {"left": values[_LEFT], "stream": values[_STREAM]})
    return Quiet(run, Baseline(name))
