"""Words that all measured costs share: the subject, the device, the result.

A device measures operator configurations one by one, and two graphs whole; it knows nothing of e-graphs
or caches.

How a device plugs in: ``relational_tensat.cost.cpu`` and ``relational_tensat.cost.cuda`` each have a
function ``open_device() -> Device``, imported when ``--cost cpu`` or ``--cost cuda`` is asked for. It
raises ``MissingDependencyError`` where a package or a driver is missing, and says what to install.
``MeasuredSource`` (cost/measured_source.py) does the rest. It asks a device only for configurations that
the cache does not have, each once, and stores every result before it takes the next.

Two graphs are timed whole, one after the other in turn; that says gain, tie or loss. The sum of single
operators' times is a model; this measurement checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from relational_tensat.tensor import Array, AttrValue, Graph, ValueType
from relational_tensat.tensor.operators import get_operator

#: Fewer rounds say nothing: of 11, ten are slower by chance once in 170 times (of 5, five once in 32).
ENOUGH_ROUNDS = 11


@dataclass(frozen=True, slots=True)
class WholeTiming:
    """Original and optimized graph on a device.

    Attributes:
        before_us, after_us: of one run, by the device's own statistic: on a processor, the 10th
            percentile of the thread's CPU time; on a GPU, the median.
        speedup: median over the rounds of original / optimized, both of the same round.
        speedup_p10, speedup_p90: its spread.
        rounds: how many count.
    """

    before_us: float
    after_us: float
    speedup: float
    speedup_p10: float
    speedup_p90: float
    rounds: int

    @classmethod
    def of_rounds(cls, before_us: float, after_us: float, ratios: Sequence[float]) -> WholeTiming:
        """Return what the ratios original / optimized say, one a round."""
        p10, median, p90 = np.percentile(ratios, (10, 50, 90)).tolist()
        return cls(before_us, after_us, median, p10, p90, len(ratios))


@dataclass(frozen=True, slots=True)
class Configuration:
    """One application of an operator as a device sees it: the facts that decide its kernel's time.

    Make them with ``cost.key.configuration_of``: equal applications give equal configurations.

    Attributes:
        op: the operator's name.
        inputs: the types of its operands, all row-major and contiguous.
        output: the type of its result; a tuple for an operator of several outputs.
        attrs: its canonical attributes in declared order; a fused activation is one of them.
        computed: the operands that are computed at inference, of those that kernels otherwise arrange
            before (``Operator.prepared_operands``); ascending.
    """

    op: str
    inputs: tuple[ValueType, ...]
    output: ValueType
    attrs: tuple[tuple[str, AttrValue], ...]
    computed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TimingSample:
    """The measurement of one configuration: microseconds of one kernel, over ``samples`` runs.

    All three times are 0 where the device runs no kernel.
    """

    median_us: float
    p10_us: float
    p90_us: float
    samples: int


@dataclass(frozen=True, slots=True)
class Unmeasurable:
    """A device cannot run a configuration or a graph; ``reason`` says why, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class MeasuringProtocol:
    """How one kind of device is measured.

    Attributes:
        version: raised whenever times of before can no longer be compared with those of now.
        statistic: which of a sample's figures is the cost: ``median_us`` or ``p10_us``.
        free: the kernels (``tensor.operators.traits.KERNELS``) that take no time and are never asked for.
        calls_all: whether operators are run all the same that a runtime calls (``Operator.is_called``).
        prepares: whether kernels arrange constant operands before inference.
    """

    version: int
    statistic: str
    free: frozenset[str]
    calls_all: bool = False
    prepares: bool = False

    def is_free(self, configuration: Configuration) -> bool:
        """Whether an operator takes no time."""
        operator = get_operator(configuration.op)
        if operator.is_left_to_readers(dict(configuration.attrs)):
            return True
        return operator.kernel in self.free and not (self.calls_all and operator.is_called)


#: By kind of device. CPUs: thread CPU time, whose noise only adds; a view is a call like any other, and
#: onnxruntime calls identities, too (it copies in Dropout); it packs constant matrices and filters. GPUs:
#: events around launches, and a view launches nothing.
PROTOCOLS: Mapping[str, MeasuringProtocol] = MappingProxyType(
    {
        "cpu": MeasuringProtocol(
            5, "p10_us", frozenset({"nothing"}), calls_all=True, prepares=True
        ),
        "cuda": MeasuringProtocol(4, "median_us", frozenset({"nothing", "view"})),
    }
)


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """The facts that must be the same for a time to be used again.

    Attributes:
        kind: ``cpu`` or ``cuda``, a key of ``PROTOCOLS``.
        name: the maker's name of the device.
        driver: its version; for a CPU, the instruction sets that matter.
        libraries: the versions of what ran the kernels, by name; also the modes that change times
            (e.g. ``{"onnxruntime": "1.31.1", "optimizations": "off"}``).
        protocol: how was measured; with another version, older times do not count.
    """

    kind: str
    name: str
    driver: str
    libraries: Mapping[str, str]
    protocol: int


class Device(Protocol):
    """Measures configurations on one machine."""

    @property
    def key(self) -> DeviceKey:
        """The key of its times."""

    @property
    def statistic(self) -> str:
        """Which of a sample's figures is the cost: ``median_us`` or ``p10_us``."""

    def adapted(self, weights_bytes: int) -> Device:
        """Return the device as a graph finds it whose weights are so many bytes; itself or another.

        Weights that all fit into a cache may stay there from one run to the next.
        """

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        """Measure each configuration; yield each result as soon as it is there.

        The caller stores a result before asking for the next: killing it loses one at most.
        Operators whose kernel is free under the kind's protocol are never asked for.
        """

    def make_ready(self, graphs: Sequence[Graph]) -> None:
        """Do for graphs what is done once for all heats, so that no heat takes longer for it."""

    def heat(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int
    ) -> Sequence[float] | Unmeasurable:
        """Run graphs whole, each loaded again, in turn: one heat of a race (``cost.race``).

        Args:
            seed: of the order in which they are loaded and run.

        Returns:
            Per graph, how many times as fast as the first it is; or why they are not raced here.
        """

    def time_whole(
        self, graphs: tuple[Graph, Graph], inputs: Mapping[str, Array], seconds: float
    ) -> WholeTiming | Unmeasurable:
        """Run two graphs whole, in turn; return how long they take, or why that cannot be known.

        Args:
            graphs: the original and the optimized one; their weights have data.
            inputs: a value for each graph input, which both have.
            seconds: wall seconds that it should take at most, preparations aside.
        """


class FileDevice(Device, Protocol):
    """A device whose runtime reads ONNX files: a processor (``kind`` ``cpu``)."""

    def heat_of_files(
        self, files: Sequence[Path], inputs: Mapping[str, Array], seed: int
    ) -> Sequence[float] | Unmeasurable:
        """Run files of one model, as ``heat`` runs graphs.

        Args:
            inputs: a value for each input.
        """


def total(samples: list[TimingSample]) -> TimingSample:
    """Return the sum of times; as many samples as the fewest."""
    return TimingSample(
        median_us=sum(sample.median_us for sample in samples),
        p10_us=sum(sample.p10_us for sample in samples),
        p90_us=sum(sample.p90_us for sample in samples),
        samples=min(sample.samples for sample in samples),
    )
