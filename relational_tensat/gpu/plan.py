"""A graph as a plan: which kernels run, in which order, on which memory; and what runs it, many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.base.folders import Closing
from relational_tensat.gpu.calls import (
    BoundCall,
    Call,
    CallEmitter,
    DeviceTensor,
    KernelLibrary,
    Ref,
    check_size,
    strides_of,
)
from relational_tensat.gpu.catalogue import MATH_MODES
from relational_tensat.gpu.kernel_calls import lower
from relational_tensat.gpu.memory import (
    Lifetime,
    Placement,
    aligned,
    decode_view,
    encode,
    least_bytes,
    place,
    span_bytes,
)
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    tensors_of,
)
from relational_tensat.tensor.graph import describe
from relational_tensat.tensor.operators.attributes import float_of


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One call, and the node of the graph that it is a part of."""

    call: Call
    node: str


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The plan that an executor runs.

    Attributes:
        inputs: the graph's inputs by name.
        weights: the tensors known before inference, by name; fills are among them.
        steps: in order.
        outputs: the tensors that the graph returns; a tuple as its parts.
        offsets: where every buffer begins in the one piece of memory.
        total_bytes: of that memory.
        least_bytes: the most that is needed at once, which no plan of this order goes below.
    """

    graph: Graph
    inputs: Mapping[str, DeviceTensor]
    weights: Mapping[str, DeviceTensor]
    steps: tuple[PlanStep, ...]
    outputs: tuple[DeviceTensor, ...]
    offsets: Mapping[str, int]
    total_bytes: int
    least_bytes: int

    def weight_data(self, name: str) -> Array:
        """Return the data of a tensor that is known before inference.

        Raises:
            InputError: the graph has none for it.
        """
        kind = self.weights[name].type
        if name in self.graph.weights:
            data = self.graph.weights[name].data
            if data is None:
                raise InputError(f"the weight {name!r} has no data: it cannot run")
            return data
        (node,) = (node for node in self.graph.nodes if name in node.outputs)
        return np.broadcast_to(np.float64(float_of(node.attrs, "value")), kind.shape)


def plan_graph(graph: Graph, math: str = "fp32") -> GpuPlan:
    """Plan a graph; parts that depend on weights only should have been folded before (``fold_weights``).

    Args:
        math: how float32 is multiplied, one of ``MATH_MODES``.

    Raises:
        InputError: there is no kernel for one of the nodes; says which and why.
        UsageError: the math mode does not exist.
    """
    if math not in MATH_MODES:
        known = ", ".join(MATH_MODES)
        raise UsageError(f"unknown math mode {math!r}, expected {known}{nearest(math, MATH_MODES)}")
    return _Planner(graph, math).plan()


class _Planner:
    """Walks through a graph once; knows the tensors of every value so far."""

    def __init__(self, graph: Graph, math: str) -> None:
        self.graph = graph
        self.emitter = CallEmitter(math)
        self.values: dict[str, tuple[DeviceTensor, ...]] = {}
        self.weights: dict[str, DeviceTensor] = {}
        self.nodes: list[str] = []  # per call, the node that it is of
        self.permanent: dict[str, int] = {}  # buffers of inputs and weights, with their bytes

    def plan(self) -> GpuPlan:
        read = {name for node in self.graph.nodes for name in node.inputs} | {*self.graph.outputs}
        for name, kind in self.graph.inputs.items():
            self._external(name, kind)
        for name, weight in self.graph.weights.items():
            if name in read:
                self.weights[name] = self._external(name, weight.type)
        for node in self.graph.nodes:
            self._add(node)
        outputs = tuple(tensor for name in self.graph.outputs for tensor in self.values[name])
        placement, least = self._place(outputs)
        steps = tuple(
            PlanStep(call, node) for call, node in zip(self.emitter.calls, self.nodes, strict=True)
        )
        inputs = {name: self.values[name][0] for name in self.graph.inputs}
        return GpuPlan(
            self.graph, inputs, self.weights, steps, outputs,
            placement.offsets, placement.total_bytes, least,
        )  # fmt: skip

    def _external(self, name: str, kind: TensorType) -> DeviceTensor:
        """Give an input or weight a buffer that lives as long as the plan."""
        if kind.dtype not in DTYPE_BYTES:
            raise InputError(f"{name!r} is {kind}, which no GPU kernel takes")
        check_size(kind)
        buffer = f"in:{name}"
        self.permanent[buffer] = kind.nbytes
        tensor = DeviceTensor(kind, Ref(buffer))
        self.values[name] = (tensor,)
        return tensor

    def _add(self, node: Node) -> None:
        if node.op == "fill":
            (name,) = node.outputs
            kind = tensors_of(self.graph.types[name])[0]
            self.weights[name] = self._external(name, kind)
            return
        inputs = tuple(tensor for name in node.inputs for tensor in self.values[name])
        try:
            results = lower(self.emitter, node.op, inputs, self._output(node), node.attrs)
        except InputError as error:
            raise InputError(f"{describe(node)}: {error}") from error
        label = node.name or node.outputs[0]
        self.nodes += [label] * (len(self.emitter.calls) - len(self.nodes))
        if len(node.outputs) == 1:
            self.values[node.outputs[0]] = results
        else:
            self.values |= {n: (t,) for n, t in zip(node.outputs, results, strict=True)}

    def _output(self, node: Node) -> ValueType:
        kinds = [self.graph.types[name] for name in node.outputs]
        if len(kinds) == 1 and node.op != "split":
            return kinds[0]
        return tuple(part for kind in kinds for part in tensors_of(kind))

    def _place(self, outputs: tuple[DeviceTensor, ...]) -> tuple[Placement, int]:
        """Place permanent buffers one after the other, the others behind them by lifetime.

        Results stay until the end: they can be read once all steps have run.
        """
        offsets, start = {}, 0
        for name, nbytes in self.permanent.items():
            offsets[name], start = start, start + aligned(nbytes)
        lifetimes = self._lifetimes(outputs)
        rest = place(lifetimes)
        offsets |= {name: start + offset for name, offset in rest.offsets.items()}
        least = start + least_bytes(lifetimes)
        return Placement(offsets, start + rest.total_bytes), least

    def _lifetimes(self, outputs: tuple[DeviceTensor, ...]) -> list[Lifetime]:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for step, call in enumerate(self.emitter.calls):
            for ref in call.refs():
                first.setdefault(ref.buffer, step)
                last[ref.buffer] = step
        last |= {tensor.ref.buffer: len(self.emitter.calls) for tensor in outputs}
        sizes = self.emitter.sizes_bytes
        return [Lifetime(name, sizes[name], first[name], last[name]) for name in first
                if name in sizes]  # fmt: skip


def read_tensor(library: KernelLibrary, tensor: DeviceTensor, address: int) -> Array:
    """Wait, and return a tensor at an address (bfloat16 as float32); its rows may lie apart."""
    strides = strides_of(tensor)
    data = library.read(address, span_bytes(tensor.type, strides))
    return decode_view(data, tensor.type, strides)


class Executor(Closing):
    """A plan in a device's memory: weights uploaded, every call bound to its addresses.

    Use it as a context manager: memory is given back at the end.
    """

    def __init__(self, plan: GpuPlan, library: KernelLibrary) -> None:
        """Take the memory and fill in the weights.

        Raises:
            InputError: a weight has no data, or the library has no kernel for a call.
        """
        self._plan = plan
        self._library = library
        self._memory: list[int] = []
        self._calls: list[BoundCall] = []
        try:
            self._base = self._allocate(plan.total_bytes)
            # calls are tried when they are bound: the memory here must not be taken for indices
            library.clear(self._base, plan.total_bytes)
            for name, tensor in plan.weights.items():
                data = encode(plan.weight_data(name), tensor.type.dtype)
                library.write(self._address(tensor.ref), data)
            for step in plan.steps:
                self._calls.append(library.bind(step.call, self._address))
            needed = max((call.workspace_bytes for call in self._calls), default=0)
            self._workspace = self._allocate(needed) if needed else 0
        except BaseException:
            self.close()
            raise

    def write_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Upload the graph's inputs.

        Raises:
            InputError: one is missing or of the wrong shape.
        """
        for name, tensor in self._plan.inputs.items():
            if name not in inputs:
                raise InputError(f"the input {name!r} is not given{nearest(name, inputs)}")
            array = np.asarray(inputs[name])
            if array.shape != tensor.type.shape:
                shape = list(array.shape)
                raise InputError(f"{name!r} has shape {shape}, expected {tensor.type}")
            self._library.write(self._address(tensor.ref), encode(array, tensor.type.dtype))

    def start(self) -> None:
        """Enqueue all calls, in order; wait for nothing."""
        for call in self._calls:
            call.start(self._workspace)

    def read_outputs(self) -> list[Array]:
        """Wait, and return the tensors that the graph returns (bfloat16 as float32)."""
        return [
            read_tensor(self._library, output, self._address(output.ref))
            for output in self._plan.outputs
        ]

    def run(self, inputs: Mapping[str, Any]) -> list[Array]:
        """Upload inputs, run all calls once, return the outputs; a tuple output as its parts.

        Raises:
            InputError: an input is missing or of the wrong shape.
        """
        self.write_inputs(inputs)
        self.start()
        return self.read_outputs()

    def implementations(self) -> dict[str, int]:
        """Return how many calls each library runs, by its name."""
        return dict(sorted(Counter(call.implementation for call in self._calls).items()))

    def close(self) -> None:
        """Give the memory back."""
        while self._calls:
            self._calls.pop().close()
        while self._memory:
            self._library.free(self._memory.pop())

    def _allocate(self, nbytes: int) -> int:
        address = self._library.allocate(max(nbytes, 1))
        self._memory.append(address)
        return address

    def _address(self, ref: Ref) -> int:
        return self._base + self._plan.offsets[ref.buffer] + ref.offset_bytes
