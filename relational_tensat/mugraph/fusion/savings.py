"""The most that a kernel can save: a part's cost by operators, less the least of a kernel for it.

As C on this processor a kernel's time is measured: thread CPU time, as operators are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost import CostSource
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.device import TimingSample
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.profile import Profile
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import count, variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import (
    FLAGS,
    CFunction,
    compiled_kernels,
    compiler,
    compiler_version,
    emitted_kernels,
)
from relational_tensat.mugraph.sizes.cost_model import graph_us, least_us
from relational_tensat.mugraph.sizes.waves import Multiprocessors
from relational_tensat.tensor import Array, Graph, Node


def profile_of(costs: CostSource) -> Profile | None:
    """Return the profile of a GPU that costs are from; None for others."""
    model = costs.model if isinstance(costs, AnalyticSource) else None
    return model if isinstance(model, Profile) and model.multiprocessors else None


class SavingsModel:
    """The savings that kernels for parts of a model may bring.

    Attributes:
        profile: of the GPU that costs are from; None for other costs.
        is_measured: whether costs are measured on this processor, and kernels are, too, as C.
    """

    def __init__(self, costs: CostSource) -> None:
        self.profile = profile_of(costs)
        self.is_measured = isinstance(costs, MeasuredSource)
        self._costs = costs

    def device(self, candidate: KernelCandidate) -> Multiprocessors | None:
        """Return what a candidate's kernel would run on; None where costs are no profile of a GPU."""
        return None if self.profile is None else Multiprocessors(self.profile, candidate.dtype)

    def operators_us(self, candidate: KernelCandidate) -> float:
        """Return what a candidate's operators cost."""
        return sum(self.operator_us(node, candidate.graph) for node in candidate.nodes)

    def operator_us(self, node: Node, graph: Graph) -> float:
        """Return what an operator of a graph costs."""
        types = graph.types
        inputs = tuple(types[name] for name in node.inputs)
        return self._costs.cost_us(node.op, inputs, types[node.outputs[0]], node.attrs)

    def kernel_us(self, candidate: KernelCandidate, graph: MuGraph) -> float | None:
        """Return what a candidate's kernel takes: modelled; or measured as C, or as the cost cache has it;
        None where neither can be.

        Raises:
            RelationalTensatError: see ``measured``.
        """
        device = self.device(candidate)
        if device is not None:
            return graph_us(graph, device)
        if not isinstance(self._costs, MeasuredSource):
            return None
        code = content_of(candidate, graph)
        return self._costs.compiled_us(code, compiled_as(), lambda: measured(candidate, graph))

    def least_us(self, candidate: KernelCandidate, kernels: int = 1) -> float:
        """Return what no μGraph of so many kernels for a candidate can be modelled to take less than."""
        device = self.device(candidate)
        if device is None:
            return 0.0
        return least_us(candidate.program, device) + (kernels - 1) * device.profile.launch_us


#: Of C in float32 from the program in float64, relative to the whole result.
_TOLERANCE = 1e-4
_SEED = 3_000_000
#: The least of so many runs says how often a kernel runs in a sample.
_ESTIMATES = 5
_ITEM_BYTES = 4


def content_of(candidate: KernelCandidate, graph: MuGraph) -> str:
    """Return the hash of a candidate's kernel in C, and of the program that it is compared with.

    Raises:
        InputError: C cannot say it.
    """
    if candidate.dtype != "float32":
        raise InputError(f"kernels in C have elements of float32, not {candidate.dtype}")
    texts = [content_hash(candidate.program), content_hash(graph)]
    texts += [kernel.source for kernel in emitted_kernels(graph).values()]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def compiled_as() -> str:
    """Return the compiler's version, and its flags.

    Raises:
        MissingDependencyError: no compiler is installed.
    """
    return f"{compiler_version(compiler())} {' '.join(FLAGS)}"


def measured(candidate: KernelCandidate, graph: MuGraph) -> TimingSample:
    """Return the microseconds of thread CPU time of a candidate's kernel, compiled as C.

    They are measured as those of onnxruntime's operators: undisturbed samples, each of as many runs as fill
    it, on operands of their own; the calls' own time is in it. Its results are compared first with the
    program in float64, on random inputs.

    Args:
        candidate: the part that the kernel stands for.
        graph: the kernel; of float32.

    Raises:
        InputError: it does not compile.
        VerificationError: it computes something else.
        MissingDependencyError: there is no C compiler.
    """
    from relational_tensat.cost.cpu.onnxruntime_device import MOST_PATIENCE_S
    from relational_tensat.cost.cpu.probe import leave_caches, wanted_copies
    from relational_tensat.cost.cpu.quiet import processor_watch, thread_us
    from relational_tensat.cost.cpu.samples import Pair, difference

    with temporary_folder() as folder:
        functions = compiled_kernels(graph, folder)
    given = _drawn(graph)
    _check(candidate, graph, functions, given)
    once = _runs(graph, functions, given, 1)
    estimate_us = min(thread_us(once) for _ in range(_ESTIMATES))
    needed = sum(_ITEM_BYTES * count(dims) for dims in kernel_tensors(graph).values())
    copies = wanted_copies(estimate_us, needed)
    pair = Pair(_runs(graph, functions, given, copies), leave_caches, leave_caches)
    return difference(pair, copies, processor_watch(), MOST_PATIENCE_S)


def _drawn(graph: MuGraph) -> dict[str, Array]:
    """Return inputs that roots and logarithms can be had of; of bools, half are true."""
    random = np.random.default_rng(_SEED)
    drawn: dict[str, Array] = {}
    for name, dims in graph.inputs.items():
        shape = [dim.size for dim in dims]
        if name in graph.conditions:
            drawn[name] = random.random(shape) < 0.5
        else:
            drawn[name] = random.uniform(0.5, 1.5, shape).astype(np.float32)
    return drawn


def _check(
    candidate: KernelCandidate,
    graph: MuGraph,
    functions: Mapping[str, CFunction],
    given: Mapping[str, Array],
) -> None:
    """Compare a kernel's results with the program's in float64."""
    program, tensors = candidate.program, _allocated(graph, given)
    _bound(graph, functions, tensors)()
    wide = {name: value.astype(np.float64) for name, value in given.items()}
    expected, dims = evaluate(program, wide, Numbers()), kernel_tensors(program)
    for name in graph.outputs:
        order = [dim.variable for dim in kernel_tensors(graph)[name]]
        mine = variables(dims[name])
        value = expected[name].transpose([mine.index(variable) for variable in order]).ravel()
        computed = tensors[name].ravel()
        is_same = (computed == value) | (np.isnan(computed) & np.isnan(value))  # infinite ones, too
        difference = np.zeros_like(value)
        np.subtract(computed, value, out=difference, where=~is_same)
        size = np.linalg.norm(value[np.isfinite(value)])
        if not np.linalg.norm(difference) <= _TOLERANCE * size:
            raise VerificationError("the kernel's C computes something else")


def _runs(
    graph: MuGraph, functions: Mapping[str, CFunction], given: Mapping[str, Array], copies: int
) -> Callable[[], None]:
    """Return what runs a kernel so many times, each on tensors of its own."""
    given_copies = ({name: value.copy() for name, value in given.items()} for _ in range(copies))
    return _in_turn([_bound(graph, functions, _allocated(graph, own)) for own in given_copies])


def _allocated(graph: MuGraph, given: Mapping[str, Array]) -> dict[str, Array]:
    device = kernel_tensors(graph)
    made = [name for kernel in graph.kernels for name in kernel.outputs]
    return {**given, **{name: np.empty(count(device[name]), np.float32) for name in made}}


def _bound(
    graph: MuGraph, functions: Mapping[str, CFunction], tensors: Mapping[str, Array]
) -> Callable[[], None]:
    return _in_turn(
        [
            functions[kernel.name].bound(
                [tensors[name] for name in kernel.operands],
                [tensors[name] for name in kernel.outputs],
            )
            for kernel in graph.kernels
        ]
    )


def _in_turn(calls: Sequence[Callable[[], object]]) -> Callable[[], None]:

    def run() -> None:
        for call in calls:
            call()

    return run
