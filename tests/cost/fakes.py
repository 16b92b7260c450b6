"""A device that is made up: its times are a formula, and it records its requests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.cost import Configuration, DeviceKey, TimingSample, Unmeasurable
from relational_tensat.cost.device import PROTOCOLS, WholeTiming
from relational_tensat.cost.key import configuration_of
from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.tensor import Array, AttrValue, Graph, ValueType
from relational_tensat.tensor.operators import get_operator
from tests.graphs import f32

if TYPE_CHECKING:
    import pytest

CPU = DeviceKey(
    "cpu",
    "Fake 9000",
    "avx512",
    {"onnxruntime": "1.31.1", "numpy": "2.4"},
    PROTOCOLS["cpu"].version,
)


def configuration(op: str, *inputs: ValueType, **attrs: AttrValue) -> Configuration:
    """Return the configuration of an operator on operands."""
    operator = get_operator(op)
    output = operator.infer(inputs, operator.canonical(inputs, attrs))
    return configuration_of(op, inputs, output, attrs)


def products(count: int) -> list[Configuration]:
    """Return so many different matrix products."""
    return [configuration("matmul", f32(8, 16), f32(16, n)) for n in range(1, count + 1)]


def flat_us(configuration: Configuration) -> float:
    """One microsecond, and one more per million bytes of the operands."""
    return 1.0 + sum(part.nbytes for kind in configuration.inputs for part in _parts(kind)) / 1e6


#: What whole graphs take on a device that is not set otherwise.
GAIN = WholeTiming(100.0, 80.0, 1.25, 1.2, 1.3, 40)


@dataclass
class FakeDevice:
    """Takes ``time_us`` for a configuration's p10, and cannot run the operators in ``unable``.

    Attributes:
        requests: every batch that it was asked for.
        whole: what timing two graphs whole gives, or raises.
        speed: how fast a graph is in a race.
        timed: all that was timed whole: the graphs and the inputs.
        small_bytes: a graph with fewer bytes of weights finds it in another state.
        suited_to: the bytes of all graphs that it was asked for.
        interrupt_after: so many results are handed over before Ctrl-C; None for all.
    """

    key: DeviceKey = CPU
    statistic: str = "p10_us"
    time_us: Callable[[Configuration], float] = flat_us
    unable: frozenset[str] = frozenset()
    interrupt_after: int | None = None
    small_bytes: int = 0
    suited_to: list[int] = field(default_factory=list)
    requests: list[list[Configuration]] = field(default_factory=list)
    whole: WholeTiming | Unmeasurable | type[KeyboardInterrupt] = GAIN
    speed: Callable[[Graph], float] | None = None
    timed: list[tuple[tuple[Graph, Graph], Mapping[str, Array]]] = field(default_factory=list)

    def adapted(self, weights_bytes: int) -> FakeDevice:
        """Return another device for graphs whose weights are fewer than ``small_bytes``."""
        self.suited_to.append(weights_bytes)
        if weights_bytes >= self.small_bytes:
            return self
        return replace(self, key=in_mode(self.key, "small"))

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        """Hand over the formula's times."""
        self.requests.append(list(configurations))
        for count, configuration in enumerate(configurations):
            if count == self.interrupt_after:
                raise KeyboardInterrupt
            if configuration.op in self.unable:
                yield configuration, Unmeasurable(f"no kernel for {configuration.op}")
                continue
            time_us = self.time_us(configuration)
            yield configuration, TimingSample(time_us * 1.1, time_us, time_us * 1.5, 30)

    def make_ready(self, graphs: Sequence[Graph]) -> None:
        """Do nothing."""

    def heat(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int
    ) -> Sequence[float] | Unmeasurable:
        """Hand over what the formula says of each graph; without one, nothing is raced."""
        if self.speed is None:
            return Unmeasurable("nothing is raced here")
        first = self.speed(graphs[0])
        return [self.speed(graph) / first for graph in graphs]

    def time_whole(
        self, graphs: tuple[Graph, Graph], inputs: Mapping[str, Array], seconds: float
    ) -> WholeTiming | Unmeasurable:
        """Hand over what was given, whatever the graphs are."""
        assert 0 < seconds < 60
        self.timed.append((graphs, inputs))
        if isinstance(self.whole, type):
            raise self.whole
        return self.whole


def _parts(kind: ValueType) -> tuple[ValueType, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def plug_in(monkeypatch: pytest.MonkeyPatch, device: FakeDevice) -> FakeDevice:
    """Make a device this machine's, as ``--cost cpu`` or ``--cost cuda`` opens it; it has no other."""
    know_kernels()  # they import parts of the modules that are replaced
    for kind in PROTOCOLS:
        module = ModuleType(f"relational_tensat.cost.{kind}")
        opened = device if kind == device.key.kind else None
        monkeypatch.setattr(module, "open_device", partial(_open, kind, opened), raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return device


def _open(kind: str, device: FakeDevice | None, mode: str = "") -> FakeDevice:
    if device is None:
        raise MissingDependencyError(f"no {kind} device here; install one")
    return replace(device, key=in_mode(device.key, mode)) if mode else device


def in_mode(key: DeviceKey, mode: str) -> DeviceKey:
    """Return the key of a device in another mode: it is called otherwise."""
    return replace(key, name=f"{key.name}, {mode}")
