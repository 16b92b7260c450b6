"""What is measured, on what, and with which result: the words that all measured costs share.

A device measures operator configurations one by one; it knows nothing of graphs, e-graphs or caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from relational_tensat.graph import AttrValue, ValueType


@dataclass(frozen=True, slots=True)
class Configuration:
    """One application of an operator as a device sees it: what decides how long its kernel takes.

    Attributes:
        op: the operator's name.
        inputs: the types of its operands, all row-major and contiguous.
        output: the type of its result; a tuple for an operator of several outputs.
        attrs: its canonical attributes in declared order; a fused activation is one of them.
    """

    op: str
    inputs: tuple[ValueType, ...]
    output: ValueType
    attrs: tuple[tuple[str, AttrValue], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """What measuring one configuration gave: microseconds of one kernel, over ``samples`` runs."""

    median_us: float
    p10_us: float
    p90_us: float
    samples: int


@dataclass(frozen=True, slots=True)
class Unmeasurable:
    """A device cannot run a configuration; ``reason`` says why, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """What must be the same for a time to be used again.

    Attributes:
        kind: ``cpu`` or ``cuda``.
        name: what the maker calls the device.
        driver: its version; for a CPU, the instruction sets that matter.
        libraries: the versions of what ran the kernels, by name.
        protocol: how was measured; another number, and older times do not count.
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
        """What its times hold for."""

    @property
    def statistic(self) -> str:
        """Which of a sample's figures is the cost: ``median_us`` or ``p10_us``."""

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, Sample | Unmeasurable]]:
        """Measure each configuration; hand each result over as soon as it is there.

        Whoever asks stores a result before asking for the next: killing it loses one at most.
        """
