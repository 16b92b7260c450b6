"""Timing whole graphs, original and optimized, on the device that costs are of, within a limit of time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.base.runner import undisturbed
from relational_tensat.cost import Device, Unmeasurable
from relational_tensat.cost.device import DeviceKey, WholeTiming
from relational_tensat.cost.key import check_is_same
from relational_tensat.tensor import Array, Graph, Weight
from relational_tensat.verify.fold import assume_folded, fold_weights
from relational_tensat.verify.inputs import RandomWeights, draw_inputs


class RaceClock:
    """Wall seconds from now on.

    Attributes:
        budget_s: how many.

    Args:
        passed_s: so many are over.
        within: the clock that it is a part of: time skipped here is skipped there, too.
    """

    def __init__(
        self, budget_s: float, passed_s: float = 0.0, within: RaceClock | None = None
    ) -> None:
        self.budget_s = budget_s
        self._start_s = time.perf_counter() - passed_s
        self._within = within

    def skip(self, seconds: float) -> None:
        """Let seconds that have passed not count."""
        self._start_s += seconds
        if self._within is not None:
            self._within.skip(seconds)

    def is_over(self, share: float) -> bool:
        """Whether so much of the time has passed, as a fraction."""
        return self.passed_s > share * self.budget_s

    @property
    def passed_s(self) -> float:
        """The time that has passed of it, and beyond."""
        return time.perf_counter() - self._start_s

    @property
    def left_s(self) -> float:
        """The time left of it."""
        return max(0.0, self.budget_s - self.passed_s)


#: So long two graphs are timed, preparations aside.
WHOLE_S = 5.0


def time_on_device(
    device: Device,
    original: Graph,
    optimized: Graph,
    real_inputs: Mapping[str, Array],
    seed: int,
) -> WholeTiming | Unmeasurable:
    """Return how long both graphs take, in turn, or why that cannot be known.

    Args:
        real_inputs: inputs by name; the others are drawn.

    Raises:
        OtherMachineError: a quiet core that is lent is of another machine.
    """
    try:
        inputs = inputs_to_time(original, real_inputs, seed)
    except InputError as error:
        return Unmeasurable(str(error))
    task = TimedTask(device, device.key, (original, optimized), inputs, seed)
    return undisturbed(_time_whole, task)[0]


@dataclass(frozen=True, slots=True)
class TimedTask:
    """Graphs to run whole, here or by a quiet core.

    Attributes:
        device: it runs them; ``key`` is its key when they were found.
        graphs: the original first.
        inputs: a value for each.
        known: graphs with weights that were drawn before, here; they grow.
    """

    device: Device
    key: DeviceKey
    graphs: tuple[Graph, ...]
    inputs: Mapping[str, Array]
    seed: int
    known: dict[Graph, Graph] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[TimedTask], tuple[object, ...]]:
        """Pickle what weights are drawn from, which is little."""
        return TimedTask, (self.device, self.key, self.graphs, self.inputs, self.seed)

    def drawn(self) -> list[Graph]:
        """Return the graphs with weights that are drawn.

        Raises:
            InputError: none can be drawn.
            OtherMachineError: the device is another one than where they were found.
        """
        check_is_same(self.device, self.key)
        for graph in self.graphs:
            if graph not in self.known:
                self.known[graph] = with_drawn_weights(graph, self.seed)
        return [self.known[graph] for graph in self.graphs]


def _time_whole(task: TimedTask) -> WholeTiming | Unmeasurable:
    try:
        original, optimized = task.drawn()
    except InputError as error:
        return Unmeasurable(str(error))
    return task.device.time_whole((original, optimized), task.inputs, WHOLE_S)


def inputs_to_time(
    original: Graph, real_inputs: Mapping[str, Array], seed: int
) -> dict[str, Array]:
    """Return a value for each input: the real one, or one that is drawn.

    Raises:
        InputError: none can be drawn.
    """
    return {**unmasked(draw_inputs(original, seed, 0, real_inputs)), **real_inputs}


def with_drawn_weights(graph: Graph, seed: int) -> Graph:
    """Return a graph with what depends on weights only folded, and random weights where it has none.

    Models of shapes only have no weights, and light ones have constant ones: onnxruntime makes these from a
    number at each run. If weights have no data, those that would be folded are drawn as well.
    """
    folded = assume_folded(fold_weights(graph))
    data = {name: weight.data for name, weight in folded.weights.items()}
    unknown = [
        n for n, own in data.items() if own is None or (own.size > 1 and not any(own.strides))
    ]
    if not unknown:
        return replace(folded, origin=None)
    drawn = RandomWeights(folded, seed, keep=False)
    weights = {name: Weight(folded.weights[name].type, drawn[name]) for name in unknown}
    return replace(folded, weights={**folded.weights, **weights}, origin=None)


def unmasked(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return inputs whose truth values are all false: masks that mask nothing.

    The exponentials of masked scores are denormal numbers, with which processors take far longer: softmax
    of encoder_block's scores 23 µs instead of 6 where half of them are masked. That is a property of
    the data, which no sum over operators knows.
    """
    return {
        name: np.zeros_like(value) if value.dtype == np.bool_ else value
        for name, value in inputs.items()
    }
