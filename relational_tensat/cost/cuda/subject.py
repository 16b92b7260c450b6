"""One configuration on the GPU, with copies of its operands, ready to be checked and timed.

Before a configuration is timed, its kernel's result is compared with its operator's meaning, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cuda.single import draw, graph_of, weight_inputs
from relational_tensat.cost.device import Configuration
from relational_tensat.gpu.calls import BoundCall, Ref
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary
from relational_tensat.gpu.memory import encode
from relational_tensat.gpu.plan import GpuPlan, plan_graph, read_tensor
from relational_tensat.tensor import Array, Graph, TensorType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.outputs import compute_outputs

#: ‖result - exact‖ / ‖exact‖ that rounding explains, by element type; of tf32 by that name. Sums are
#: in float32 throughout; results are rounded once.
TOLERANCES = {
    "float64": 1e-12, "float32": 1e-4, "tf32": 2e-3, "float16": 5e-3, "bfloat16": 3e-2,
}  # fmt: skip


def fault(
    results: Sequence[Array], exact: Sequence[Array], kinds: Sequence[TensorType], math: str
) -> str:
    """Return what is wrong with a kernel's results, in one line; "" where nothing is.

    Args:
        results: the results that the device computed.
        exact: the same in float64.
        math: how float32 was multiplied.
    """
    for index, (result, exact_result, kind) in enumerate(zip(results, exact, kinds, strict=True)):
        label = f"result {index}" if len(kinds) > 1 else "the result"
        if not kind.is_float:
            if not np.array_equal(result, exact_result):
                bad = int(np.count_nonzero(result != exact_result))
                return f"{label} differs from the exact one in {bad} elements"
            continue
        if not np.isfinite(result).all() and np.isfinite(exact_result).all():
            bad = int(np.count_nonzero(~np.isfinite(result)))
            return f"{label} has {bad} elements that are not finite: not written, or wrong"
        error = norm_error(result, exact_result)
        limit = TOLERANCES["tf32" if kind.dtype == "float32" and math == "tf32" else kind.dtype]
        if not error <= limit:
            return f"{label} is off by {error:.1e} relative to float64, more than {limit:.0e}"
    return ""


def norm_error(result: Array, exact: Array) -> float:
    """Return ‖result - exact‖ / ‖exact‖ over what is finite in ``exact``; NaN where ``result`` is."""
    is_finite = np.isfinite(exact)
    reference = np.asarray(exact, np.float64)[is_finite]
    difference = np.asarray(result, np.float64)[is_finite] - reference
    scale = float(np.linalg.norm(reference)) or 1.0
    return float(np.linalg.norm(difference)) / scale


#: All copies of a configuration's operands take no more; then there are fewer of them.
_MOST_BYTES = 16 << 30


@dataclass(slots=True)
class Subject:
    """A configuration's calls, bound to several copies of its memory.

    Copy 0 holds the activations of warm runs. Every launch of a sample has weights of its own, which
    are not in the cache; in cold runs, everything of its own.

    Attributes:
        weights: buffers of operands that are parameters of a network.
        copies: addresses of whole copies of the plan's memory.
        first: the calls on copy 0; empty where no kernel runs.
        warm, cold: per further copy, the calls of one launch.
        choices: per call, which candidate of the library it is.
    """

    library: CudaLibrary
    plan: GpuPlan
    weights: frozenset[str]
    copies: list[int] = field(default_factory=list)
    first: list[BoundCall] = field(default_factory=list)
    warm: list[list[BoundCall]] = field(default_factory=list)
    cold: list[list[BoundCall]] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    workspace: int = 0

    @property
    def implementations(self) -> tuple[str, ...]:
        """The library that runs each of its calls."""
        return tuple(call.implementation for call in self.first)

    def start(self, calls: list[BoundCall]) -> None:
        """Enqueue one launch."""
        for call in calls:
            call.start(self.workspace)

    def close(self) -> None:
        """Give all memory back."""
        for calls in (self.first, *self.warm, *self.cold):
            for call in calls:
                call.close()
        for address in (*self.copies, *((self.workspace,) if self.workspace else ())):
            self.library.free(address)
        self.copies, self.workspace = [], 0


def make_subject(
    library: CudaLibrary, configuration: Configuration, math: str, launches: int
) -> Subject:
    """Put a configuration on the GPU, computed once and found right.

    Args:
        launches: at most so many make a sample, each with a copy of its own.

    Raises:
        InputError: there is no kernel for it, it does not fit, or what it computes is wrong.
    """
    graph = graph_of(configuration)
    plan = plan_graph(graph, math)
    weights = frozenset(f"in:{name}" for name in weight_inputs(configuration))
    subject = Subject(library, plan, weights)
    if not plan.steps:
        return subject
    count = min(launches + 1, _MOST_BYTES // max(plan.total_bytes, 1))
    if count < 2:
        raise InputError(f"{configuration.op}: two copies of its operands take too much memory")
    try:
        _check(subject, graph, math)
        _copy(subject, count)
    except BaseException:
        subject.close()
        raise
    return subject


def _check(subject: Subject, graph: Graph, math: str) -> None:
    """Run the configuration once, in poisoned memory.

    Raises:
        InputError: the result is not what float64 gives.
    """
    library, plan = subject.library, subject.plan
    inputs = draw(graph, seed=0)
    exact = compute_outputs(graph, inputs, {})
    address = _allocate(subject)
    library.clear(address, plan.total_bytes)  # calls are tried: nothing else is an index
    for step in plan.steps:
        choice, bound = library.choose(step.call, _resolver(plan, lambda _: address))
        subject.choices.append(choice)
        subject.first.append(bound)
    workspace_bytes = max(call.workspace_bytes for call in subject.first)
    subject.workspace = library.allocate(workspace_bytes) if workspace_bytes else 0
    library.poison(address, plan.total_bytes)
    library.synchronize()
    for name, tensor in plan.inputs.items():
        place = address + plan.offsets[tensor.ref.buffer]
        library.write(place, encode(inputs[name], tensor.type.dtype))
    subject.start(subject.first)
    results = [_read(library, plan, address, index) for index in range(len(plan.outputs))]
    has_products = get_operator(graph.nodes[-1].op).family.has_products
    rounding = math if has_products else "fp32"  # nothing else uses tensor cores
    wrong = fault(results, exact, graph.output_types(), rounding)
    if wrong:
        names = "+".join(subject.implementations)
        raise InputError(f"{graph.name} on {names}: {wrong}")


def _read(library: CudaLibrary, plan: GpuPlan, address: int, index: int) -> Array:
    tensor = plan.outputs[index]
    place = address + plan.offsets[tensor.ref.buffer] + tensor.ref.offset_bytes
    return read_tensor(library, tensor, place)


def _copy(subject: Subject, count: int) -> None:
    """Copy the memory, inputs and all, and bind the calls to each copy."""
    library, plan, first = subject.library, subject.plan, subject.copies[0]
    while len(subject.copies) < count:
        copy_address = _allocate(subject)
        library.gpu.driver.memcpy_dtod(copy_address, first, plan.total_bytes)
        bases = {
            "warm": lambda buffer, copy_address=copy_address: (
                copy_address if buffer in subject.weights else first
            ),
            "cold": lambda buffer, copy_address=copy_address: copy_address,
        }
        subject.warm.append(_bind_again(subject, bases["warm"]))
        subject.cold.append(_bind_again(subject, bases["cold"]))


def _allocate(subject: Subject) -> int:
    address = subject.library.allocate(subject.plan.total_bytes)
    subject.copies.append(address)
    return address


def _bind_again(subject: Subject, base: Callable[[str], int]) -> list[BoundCall]:
    resolve = _resolver(subject.plan, base)
    return [
        subject.library.bind_again(step.call, resolve, choice)
        for step, choice in zip(subject.plan.steps, subject.choices, strict=True)
    ]


def _resolver(plan: GpuPlan, base: Callable[[str], int]) -> Callable[[Ref], int]:
    """Return what gives a place its address, where ``base`` says where a buffer's copy begins."""

    def resolve(ref: Ref) -> int:
        return base(ref.buffer) + plan.offsets[ref.buffer] + ref.offset_bytes

    return resolve
