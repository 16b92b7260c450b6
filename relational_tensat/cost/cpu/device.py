"""The processor as a device: ONNX Runtime runs each configuration inside a graph of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

import numpy as np

from relational_tensat.cost.cpu.composition import nodes_of, total
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.cpu.processor import instruction_sets, l2_bytes, processor_name
from relational_tensat.cost.cpu.quiet import thread_us
from relational_tensat.cost.cpu.reference import processor_watch
from relational_tensat.cost.cpu.sampling import Evictor, Pair, difference
from relational_tensat.cost.cpu.session import prepare, refusals
from relational_tensat.cost.cpu.whole import time_whole
from relational_tensat.cost.device import (
    PROTOCOLS,
    Configuration,
    DeviceKey,
    Sample,
    Unmeasurable,
)
from relational_tensat.cost.whole import WholeTiming
from relational_tensat.errors import first_line
from relational_tensat.graph import DTYPE_BYTES, Array, Graph, tensors_of

KIND = "cpu"
_NAME_SUFFIX = {"off": "", "all": ", graph optimizations on"}
#: So many copies of an operator are run that one sample takes about so long.
_SAMPLE_US = 200.0
_MOST_COPIES = 32
#: A time of 0 is none: so often is measured before an operator counts as lost in the noise.
_ATTEMPTS = 3
#: Tensors of one application together: its weights travel through a protobuf file of 2 GiB at most.
_MOST_BYTES = 512 << 20
#: Wall seconds of waiting for undisturbed moments, which nobody does on a quiet machine: per batch of
#: configurations, and the most for one of them.
PATIENCE_S = 120.0
MOST_PATIENCE_S = 1.0


class OnnxRuntimeDevice:
    """This machine's processor: one thread, thread CPU time.

    Args:
        optimizations: onnxruntime's graph optimizations: ``off``, or ``all``: then an operator is what
            onnxruntime makes of it alone, in another layout, with its activation, but not with its
            neighbours. It is another device: its times are never mixed with the others.
        patience_s: wall seconds to wait for undisturbed moments, per batch of configurations.
        most_patience_s: the same, for one of them.
    """

    statistic = PROTOCOLS[KIND].statistic

    def __init__(
        self,
        optimizations: str = "off",
        patience_s: float = PATIENCE_S,
        most_patience_s: float = MOST_PATIENCE_S,
    ) -> None:
        self._optimizations = optimizations
        self.key = DeviceKey(
            kind=KIND,
            name=processor_name() + _NAME_SUFFIX[optimizations],
            driver=instruction_sets(),
            libraries={
                "onnx": version("onnx"),
                "onnxruntime": version("onnxruntime"),
                "optimizations": optimizations,
            },
            protocol=PROTOCOLS[KIND].version,
        )
        self._patience_s = patience_s
        self._most_patience_s = most_patience_s
        self._evictor = Evictor(l2_bytes())
        self._nodes: dict[Configuration, Sample | Unmeasurable] = {}
        self._refusals = refusals()

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, Sample | Unmeasurable]]:
        """Measure each configuration when its result is asked for."""
        patience_s = min(self._most_patience_s, self._patience_s / max(len(configurations), 1))
        for configuration in configurations:
            yield configuration, self.measure_one(configuration, patience_s)

    def measure_one(
        self, configuration: Configuration, patience_s: float = 0.0
    ) -> Sample | Unmeasurable:
        """Return what one application takes inside a graph, or why that cannot be known.

        Args:
            patience_s: wall seconds to wait for undisturbed moments, if need be.
        """
        if self._optimizations != "off":  # onnxruntime itself makes one kernel of several nodes
            return self._measure_node(configuration, patience_s)
        samples = []
        for node in nodes_of(configuration):
            if node not in self._nodes:
                self._nodes[node] = self._measure_node(node, patience_s)
            result = self._nodes[node]
            if isinstance(result, Unmeasurable):
                return result
            samples.append(result)
        return total(samples)

    def time_whole(
        self, graphs: tuple[Graph, Graph], inputs: Mapping[str, Array], seconds: float
    ) -> WholeTiming | Unmeasurable:
        """Run two graphs in onnxruntime, with the same optimizations of its own as single operators."""
        return time_whole(graphs, inputs, self._optimizations, seconds)

    def _measure_node(
        self, configuration: Configuration, patience_s: float
    ) -> Sample | Unmeasurable:
        """Return what the whole configuration takes, measured at once."""
        reason = _obstacle(configuration)
        if reason:
            return Unmeasurable(reason)
        try:
            pair, copies = self._pair(configuration, 1), 1
            wanted = _wanted_copies(_estimate_us(pair), configuration)
            if wanted > 1:
                pair, copies = self._pair(configuration, wanted), wanted
            for _ in range(_ATTEMPTS):
                sample = difference(pair, copies, processor_watch(), patience_s)
                if sample.p10_us > 0:
                    return sample
            return Unmeasurable(f"{configuration.op}: takes less than the noise of its operands")
        except self._refusals as error:
            return Unmeasurable(f"onnxruntime cannot run {configuration.op}: {first_line(error)}")

    def _pair(self, configuration: Configuration, copies: int) -> Pair:
        probe = make_probe(configuration, copies)
        return Pair(
            prepare(probe.with_operator, probe.feeds, self._optimizations),
            prepare(probe.without, probe.feeds, self._optimizations),
            self._evictor if probe.with_operator.weights else _leave_caches,
        )


def _obstacle(configuration: Configuration) -> str:
    """Return why a configuration cannot even be tried, "" where it can."""
    if PROTOCOLS[KIND].is_free(configuration.op):
        return f"{configuration.op} runs no kernel"
    kinds = [
        part for kind in (*configuration.inputs, configuration.output) for part in tensors_of(kind)
    ]
    for kind in kinds:
        if kind.dtype not in DTYPE_BYTES:
            return f"{configuration.op}: no random values of type {kind}"
        if kind.dtype == "bfloat16":
            return f"{configuration.op}: NumPy has no {kind.dtype} to feed onnxruntime with"
    total = _total_bytes(configuration)
    if total > _MOST_BYTES:
        return f"{configuration.op}: {total:,} bytes of operands, more than {_MOST_BYTES:,}"
    return ""


def _leave_caches() -> None:
    """Change nothing: only weights are cold in a graph, activations have just been computed."""


def _estimate_us(pair: Pair) -> float:
    """Return about how much longer one function takes."""
    pair.longer()
    pair.shorter()
    return thread_us(pair.longer) - thread_us(pair.shorter)


def _wanted_copies(estimate_us: float, configuration: Configuration) -> int:
    """Return how many applications fill a sample, as far as their weights fit."""
    most = max(1, min(_MOST_COPIES, _MOST_BYTES // max(_total_bytes(configuration), 1)))
    return int(np.clip(_SAMPLE_US / max(estimate_us, _SAMPLE_US / most), 1, most))


def _total_bytes(configuration: Configuration) -> int:
    kinds = (*configuration.inputs, configuration.output)
    return sum(part.nbytes for kind in kinds for part in tensors_of(kind))
