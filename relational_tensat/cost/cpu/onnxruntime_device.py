"""The processor as a device: ONNX Runtime runs each configuration inside a graph of its own."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir

import onnx

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import PrivateFolder
from relational_tensat.base.process import instruction_sets, processor_name
from relational_tensat.cost.cpu.graph_times import MOST_WEIGHT_BYTES, run_heat, time_whole
from relational_tensat.cost.cpu.probe import (
    IN_L3,
    MOST_BYTES,
    Prepared,
    displacer,
    most_bytes,
    operand_bytes,
    place_of,
    prepare_node,
)
from relational_tensat.cost.cpu.quiet import processor_watch
from relational_tensat.cost.cpu.session import refusals
from relational_tensat.cost.device import (
    PROTOCOLS,
    Configuration,
    DeviceKey,
    TimingSample,
    Unmeasurable,
    WholeTiming,
    total,
)
from relational_tensat.cost.key import nodes_of
from relational_tensat.formats import to_onnx_model
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, tensors_of
from relational_tensat.tensor.uses import weight_bytes

KIND = "cpu"
_NAME_SUFFIX = {"off": "", "all": ", graph optimizations on"}
#: A time of 0 says nothing: so often is measured before an operator counts as lost in the noise.
_ATTEMPTS = 3
#: Wall seconds of waiting for undisturbed moments, which nobody does on a quiet machine: per batch of
#: configurations, and the most for one of them. With 1 s, a run measured 35 to 80 of several hundred.
PATIENCE_S = 120.0
MOST_PATIENCE_S = 0.05
#: Models of more load in half the time from two files (0.7 and 0.33 s with 318 MB).
_MANY_WEIGHT_BYTES = 1 << 26


class OnnxRuntimeDevice:
    """This machine's processor: one thread, by its CPU time, or several, by wall time.

    Args:
        optimizations: onnxruntime's graph optimizations: ``off``, or ``all``: then an operator is what
            onnxruntime makes of it alone, in another layout, with its activation, but not with its
            neighbours. It is another device: its times are never mixed with the others.
        weights_in: where weights are (cost/cpu/weights.py). Each place is another device, too.
        patience_s: wall seconds to wait for undisturbed moments, per batch of configurations.
        most_patience_s: the same, for one of them.
        threads: that each operator is run by; times of other numbers are another device's.
    """

    statistic = PROTOCOLS[KIND].statistic

    def __init__(
        self,
        optimizations: str = "off",
        patience_s: float = PATIENCE_S,
        most_patience_s: float = MOST_PATIENCE_S,
        weights_in: str = IN_L3,
        threads: int = 1,
    ) -> None:
        self._settings = (optimizations, patience_s, most_patience_s, weights_in, threads)
        self._optimizations = optimizations
        self._threads = threads
        several = f", {threads} threads" if threads > 1 else ""
        self.key = DeviceKey(
            kind=KIND,
            name=processor_name()
            + _NAME_SUFFIX[optimizations]
            + several
            + (f", weights {weights_in}" if weights_in else ""),
            driver=instruction_sets(),
            libraries={
                "onnx": version("onnx"),
                "onnxruntime": version("onnxruntime"),
                "optimizations": optimizations,
                **({"threads": str(threads)} if threads > 1 else {}),
                **({"weights": weights_in} if weights_in else {}),
            },
            protocol=PROTOCOLS[KIND].version,
        )
        self._patience_s = patience_s
        self._most_patience_s = most_patience_s
        self._displace = displacer(weights_in)
        self._most_bytes = most_bytes(weights_in)
        self._nodes: dict[Configuration, TimingSample | Unmeasurable] = {}
        self._refusals = refusals()
        #: Of races: graphs as ONNX writes them, once for all heats.
        self._models: dict[Graph, bytes | Path] = {}

    def __reduce__(self) -> tuple[type[OnnxRuntimeDevice], tuple[object, ...]]:
        """Pickle how it is measured: elsewhere that is another machine's processor, with its own key."""
        return OnnxRuntimeDevice, self._settings

    def adapted(self, weights_bytes: int) -> OnnxRuntimeDevice:
        """Return the processor as a graph finds it whose weights are so many bytes.

        Weights of a small graph stay in the L2 cache from one run to the next. A single operator that had
        to fetch them there took up to a third longer than in the graph. Those of a large one are fetched
        from main memory.
        """
        return OnnxRuntimeDevice(
            self._optimizations,
            self._patience_s,
            self._most_patience_s,
            weights_in=place_of(weights_bytes),
            threads=self._threads,
        )

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        """Measure each configuration when its result is asked for."""
        patience_s = min(self._most_patience_s, self._patience_s / max(len(configurations), 1))
        for configuration in configurations:
            yield configuration, self.measure_one(configuration, patience_s)

    def measure_one(
        self, configuration: Configuration, patience_s: float = 0.0
    ) -> TimingSample | Unmeasurable:
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

    def make_ready(self, graphs: Sequence[Graph]) -> None:
        """Write graphs; a heat says it where one cannot be."""
        with suppress(InputError, *self._refusals):
            self._models_of(graphs)

    def heat(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int
    ) -> list[float] | Unmeasurable:
        """Run graphs in onnxruntime by its defaults; the way single operators are measured does not matter
        here."""
        errors: tuple[type[Exception], ...] = (InputError, *self._refusals)
        try:
            return run_heat(self._models_of(graphs), inputs, seed, self._threads)
        except errors as error:
            return Unmeasurable(f"onnxruntime cannot run {graphs[0].name}: {first_line(error)}")

    def _models_of(self, graphs: Sequence[Graph]) -> list[bytes | Path]:
        """Return graphs as ONNX.

        Raises:
            InputError: one has too many weights.
        """
        for graph in graphs:
            if weight_bytes(graph) > MOST_WEIGHT_BYTES:
                raise InputError(f"more than {MOST_WEIGHT_BYTES:,} bytes of weights")
            if graph not in self._models:
                self._models[graph] = self._model_of(graph)
        return [self._models[graph] for graph in graphs]

    def _model_of(self, graph: Graph) -> bytes | Path:
        """Return a graph as ONNX; many weights are in a file of their own, for sessions to map."""
        model = to_onnx_model(graph)
        if weight_bytes(graph) < _MANY_WEIGHT_BYTES:
            content: bytes = model.SerializeToString()
            return content
        folder = PrivateFolder(Path(gettempdir()))
        weakref.finalize(self, folder.close)
        path = folder.path / "model.onnx"
        onnx.save_model(model, path, save_as_external_data=True, location="weights")
        return path

    def heat_of_files(
        self, files: Sequence[Path], inputs: Mapping[str, Array], seed: int
    ) -> list[float] | Unmeasurable:
        """Run ONNX files in onnxruntime by its defaults, as ``heat`` does graphs."""
        try:
            return run_heat(files, inputs, seed, self._threads)
        except self._refusals as error:
            return Unmeasurable(f"onnxruntime cannot run it: {first_line(error)}")

    def time_whole(
        self, graphs: tuple[Graph, Graph], inputs: Mapping[str, Array], seconds: float
    ) -> WholeTiming | Unmeasurable:
        """Run two graphs in onnxruntime, with the same optimizations of its own as single operators."""
        return time_whole(graphs, inputs, self._optimizations, seconds, self._threads)

    def prepare(self, configuration: Configuration) -> Prepared:
        """Return a configuration that is one ONNX node, ready to be timed.

        Raises:
            Exception: onnxruntime cannot run it, one of ``session.refusals``.
        """
        return prepare_node(
            configuration, self._optimizations, self._displace, self._most_bytes, self._threads
        )

    def _measure_node(
        self, configuration: Configuration, patience_s: float
    ) -> TimingSample | Unmeasurable:
        """Return what the whole configuration takes, measured at once."""
        reason = _obstacle(configuration)
        if reason:
            return Unmeasurable(reason)
        from relational_tensat.cost.cpu.samples import difference  # races do without

        try:
            prepared = self.prepare(configuration)
            for _ in range(_ATTEMPTS):
                sample = difference(prepared.pair, prepared.copies, processor_watch(), patience_s)
                if sample.p10_us > 0:
                    return sample
            return Unmeasurable(f"{configuration.op}: takes less than the noise of its operands")
        except self._refusals as error:
            return Unmeasurable(f"onnxruntime cannot run {configuration.op}: {first_line(error)}")


def _obstacle(configuration: Configuration) -> str:
    """Return why a configuration cannot even be tried, "" where it can."""
    if PROTOCOLS[KIND].is_free(configuration):
        return f"{configuration.op} runs no kernel"
    kinds = [
        part for kind in (*configuration.inputs, configuration.output) for part in tensors_of(kind)
    ]
    for kind in kinds:
        if kind.dtype not in DTYPE_BYTES:
            return f"{configuration.op}: no random values of type {kind}"
        if kind.dtype == "bfloat16":
            return f"{configuration.op}: NumPy has no {kind.dtype} to feed onnxruntime with"
    needed_bytes = operand_bytes(configuration)
    if needed_bytes > MOST_BYTES:
        return f"{configuration.op}: {needed_bytes:,} bytes of operands, more than {MOST_BYTES:,}"
    return ""
