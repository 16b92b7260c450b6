"""A part, or its kernel, as a session of its own in onnxruntime, with all of its optimizations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost.cpu.graph_times import repeated
from relational_tensat.cost.cpu.quiet import clock_of
from relational_tensat.cost.cpu.session import prepare_model, refusals
from relational_tensat.custom_ops.calls import op_of, ops_of_file
from relational_tensat.custom_ops.function_check import compared_library, functions_of
from relational_tensat.custom_ops.library import kernels_of
from relational_tensat.custom_ops.part_times import SessionSetting
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.tensor import Array, Attrs, Graph, Node, TensorType, build_graph

#: Samples of both, in turn; and of a part without its kernel, before there is one.
_ROUNDS, _FEW = 11, 3
#: Samples of which a tenth is so many times as long as another tenth say little: the machine is busy. Then
#: there are so many times as many.
_WIDE, _MOST_TURNS = 1.3, 3
_SEED = 6_000_000
#: Of a part in a session of several threads, and the most bytes of one that are there so often.
_COPIES, _MOST_COPIED_BYTES = 8, 32 << 20


def graph_of(
    place: KernelCandidate, nodes: Sequence[Node], copies: int = 1, *, among: bool = False
) -> Graph:
    """Return a part as a graph of its own, with weights as they are in the model.

    Args:
        place: the part.
        nodes: those that compute it: its own, or a kernel's.
        copies: how often it is there, each time of inputs of its own.
        among: whether what it reads as integers is quantized before, and what it gives so is dequantized:
            only there onnxruntime makes kernels of pairs, and unsigned integers of signed ones.
    """
    types, given = place.graph.types, place.graph.weights
    before, after = _around(place) if among else ([], [])
    nodes = (*before, *nodes, *after)
    read = {name for node in nodes for name in node.inputs}
    weights = {name: given[name] for name in given if name in read}
    inputs: dict[str, TensorType] = {}
    made: list[Node] = []
    outputs: list[str] = []
    for copy in range(copies):

        def own(names: Sequence[str], copy: int = copy) -> tuple[str, ...]:
            return tuple(n if n in weights or not copy else f"{n} copy {copy}" for n in names)

        for name in place.inputs:
            if name not in weights and isinstance(kind := types[name], TensorType):
                real = [node.inputs[0] for node in before if node.outputs[0] == name]
                inputs[own(real or [name])[0]] = replace(kind, dtype="float32") if real else kind
        made += [replace(n, inputs=own(n.inputs), outputs=own(n.outputs)) for n in nodes]
        last = {node.inputs[0]: node.outputs[0] for node in after}
        outputs += own([last.get(name, name) for name in place.outputs])
    return build_graph("call", inputs, weights, made, outputs)


def _around(place: KernelCandidate) -> tuple[list[Node], list[Node]]:
    """Return what quantizes a part's operands, and what dequantizes its results."""
    before, after = [], []
    for node in filter(place.is_scaled, place.nodes):
        (made,), (read, *scale) = node.outputs, node.inputs
        if node.op == "quantize":
            attrs: Attrs = {"axis": 0, "stored": False}
            after.append(Node("dequantize", (made, *scale), (f"{made} real",), attrs))
        elif read not in place.graph.weights:
            kind = place.graph.types[read]
            assert isinstance(kind, TensorType)
            attrs = {"axis": 0, "dtype": kind.dtype}
            before.append(Node("quantize", (f"{read} real", *scale), (read,), attrs))
    return before, after


class PartCall:
    """A part as a session of its own: of several threads, several times in it.

    Threads sleep between runs and are woken by the first node that has work for them. In a model that is
    one of hundreds.

    Args:
        place: the part.
        nodes: those that compute it: its own, or a kernel's.
        setting: as the file is run.
        kernel: the kernel of the node.

    Raises:
        RelationalTensatError: there is no C of a kernel, it computes something else, or onnxruntime does
            not run it.
    """

    def __init__(
        self,
        place: KernelCandidate,
        nodes: Sequence[Node],
        setting: SessionSetting,
        kernel: OwnKernel | None = None,
    ) -> None:
        is_copied = setting.threads > 1 and part_bytes(place) < _MOST_COPIED_BYTES
        self._copies = _COPIES if is_copied else 1
        call = graph_of(place, nodes, self._copies, among=True)
        random = np.random.default_rng(_SEED)
        feeds: dict[str, Array] = {}
        for name, kind in call.inputs.items():
            drawn = random.standard_normal(kind.shape)
            is_bool = kind.dtype == "bool"
            feeds[name] = np.less(drawn, 0) if is_bool else drawn.astype(np.float32)
        libraries = []
        self._clock = clock_of(setting.threads)
        with temporary_folder() as folder:
            file = folder / "call.onnx"
            save_model(call, file, setting.opset)
            if kernel is not None:
                kernels_of(op_of(kernel))  # or it raises why there is no C
                ops = ops_of_file(file, call, [kernel])
                libraries = [compared_library(ops, functions_of(file))]
            try:
                run = prepare_model(file, feeds, "all", setting.threads, libraries)
                self._run = repeated(run, self._clock)
            except refusals() as error:
                raise RelationalTensatError(f"onnxruntime refuses it: {error}") from error

    def time_us(self) -> float:
        """Return the microseconds of a run, roughly."""
        least_us = min(self._clock(self._run.run) for _ in range(_FEW))
        return least_us / self._run.times / self._copies

    def beside_us(self, other: PartCall) -> tuple[list[float], list[float]]:
        """Return the microseconds of a run of another and of this, sampled in turn."""
        mine, its = self._run, other._run.as_often_as(self._run)
        samples: list[tuple[float, float]] = []
        for _ in range(_MOST_TURNS):
            samples += [(self._clock(its.run), self._clock(mine.run)) for _ in range(_ROUNDS)]
            low, high = np.percentile([one / two for one, two in samples], [10, 90])
            if high <= _WIDE * low:
                break
        number = mine.times * self._copies
        other_us, own_us = zip(*samples, strict=True)
        return [each / number for each in other_us], [each / number for each in own_us]


def part_bytes(place: KernelCandidate) -> int:
    """Return the bytes of what a part reads and gives."""
    kinds = (place.graph.types[name] for name in (*place.inputs, *place.outputs))
    return sum(kind.nbytes for kind in kinds if isinstance(kind, TensorType))
