"""A device as the roofline sees it: a kernel is bound by arithmetic or by memory, plus its launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from relational_tensat.base.process import is_avx2_at_most
from relational_tensat.tensor import DTYPE_BYTES, Attrs, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import Operator, get_operator
from relational_tensat.tensor.operators.attributes import int_of, ints_of
from relational_tensat.tensor.operators.work_steps import PACKED, REREAD, REREAD_STRETCH

#: Steps that read from a cache once more; with packing, all steps that only move bytes.
_REREADS = frozenset({REREAD, REREAD_STRETCH})
_MOVED = _REREADS | {PACKED}


class Rates(Protocol):
    """The facts about a device that the roofline needs; ``cost.profile.Profile`` is one."""

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Of the device's main memory."""

    @property
    def cache_bytes(self) -> int:
        """The size of the cache in which one kernel finds the results of another."""

    @property
    def cache_bandwidth_bytes_per_s(self) -> float:
        """Of that cache."""

    @property
    def weight_bandwidth_bytes_per_s(self) -> float:
        """Of main memory where weights come before a kernel works on them; 0 where it does both at once."""

    @property
    def cached(self) -> float:
        """The part of weights, code and data that is in a cache since the last run, of 1."""

    @property
    def weight_cache_bandwidth_bytes_per_s(self) -> float:
        """Of that cache."""

    @property
    def launch_us(self) -> float:
        """The cost of a kernel before it does anything."""

    @property
    def cold_launch_us(self) -> float:
        """The further cost if no cache has its code and data."""

    @property
    def cold_weight_us(self) -> float:
        """The same for each of its weights of more than one element."""

    @property
    def view_us(self) -> float:
        """The cost of naming the same elements again."""

    @property
    def elements_per_s(self) -> Mapping[str, float]:
        """How many elements operators work through, by name, where that takes a time of its own."""

    @property
    def free(self) -> Set[str]:
        """Names of operators that launch no kernel."""

    @property
    def views(self) -> Set[str]:
        """Names of operators that launch no kernel where their results are parts of what is in memory."""

    def peak_for(self, dtype: str) -> float:
        """Return the operations per second on elements of type ``dtype``."""


def kernel_time_us(
    device: Rates, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> float:
    """Return ``max(flops / peak, bytes / bandwidth) + launch``, in microseconds; see ``roofline_us``.

    A launch costs more by what is its own and in no cache, as far as the device's profile says.

    Flops and bytes are those that the operator's description states; the peak is that of the
    element type that it computes. Operators for which nothing runs, and those that the profile says are
    free (views, in all that ship), launch no kernel and take 0, or what a view costs. So do those that it
    says are views where their results lie in the operand (``is_part``).

    Raises:
        UsageError: there is no operator of that name.
    """
    operator = get_operator(op)
    if operator.kernel == "nothing" or operator.is_left_to_readers(attrs):
        return 0.0
    absent = 1 - device.cached
    if op in device.free:
        is_view = operator.kernel == "view"
        return device.view_us + absent * device.cold_launch_us if is_view else 0.0
    if op in device.views and is_part(op, inputs, operator.canonical(inputs, attrs)):
        return device.view_us
    weights = sum(part.size > 1 for part in _weights(operator, inputs))
    cold_us = device.cold_launch_us + device.cold_weight_us * weights
    sides_us = roofline_us(device, op, inputs, output, attrs)
    return max(sides_us) + device.launch_us + absent * cold_us


#: Operators of which ``is_part`` knows.
PARTS = frozenset({"slice", "split", "transpose"})
#: Where a tensor of a GPU may begin: at addresses that this divides.
_PLACE_BYTES = 16


def is_part(op: str, inputs: tuple[ValueType, ...], attrs: Attrs) -> bool:
    """Whether the executor on a GPU has the results of a split, slice or transpose within the operand.

    Each begins where a tensor may, and the operand is one of its own. Rows may lie apart: products take
    them so (by leading dimensions), and functions of elements. An operator that takes tensors in one piece
    only copies them first; that is not counted here.

    Args:
        attrs: canonical.
    """
    x = inputs[0]
    if not isinstance(x, TensorType):
        return False
    steps = [math.prod(x.shape[axis + 1 :]) * DTYPE_BYTES[x.dtype] for axis in range(x.rank)]
    if op == "transpose":
        moved = [axis for axis in ints_of(attrs, "perm") if x.shape[axis] > 1]
        return moved == sorted(moved)
    if op == "split":
        sizes, step = ints_of(attrs, "sizes"), steps[int_of(attrs, "axis")]
        places = [start * step for start in accumulate(sizes[:-1])]
    else:
        columns = zip(ints_of(attrs, "axes"), ints_of(attrs, "starts"), strict=True)
        places = [sum(start * steps[axis] for axis, start in columns)]
        if min(ints_of(attrs, "steps"), default=1) < 0:
            return False
    return not any(place % _PLACE_BYTES for place in places)


def roofline_us(
    device: Rates, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> tuple[float, float]:
    """Return ``flops / peak`` and ``bytes / bandwidth`` of one kernel, in microseconds.

    To the former comes what operators take for each element (a division, an exponential) and step: peaks
    are those of sums of products. Elements that are read once more for each stretch of a result are moved.

    The part of activations that fits into a cache moves at its bandwidth, and only the rest at that of
    main memory. So a byte more never costs more than a byte. Weights come from main memory, but for the
    part that is in a cache. Where they come before anything is done with them, both are longer by that;
    from a cache, they come meanwhile.

    Raises:
        UsageError: there is no operator of that name.
    """
    operator = get_operator(op)
    complete = operator.canonical(inputs, attrs)
    peak = device.peak_for(operator.summed_dtype(inputs, output))
    compute_s = operator.flops(inputs, output, complete) / peak
    works = [
        (part, elements / device.elements_per_s[part])
        for part, elements in operator.works(inputs, output, complete)
        if part in device.elements_per_s
    ]
    compute_s += sum(seconds for part, seconds in works if part not in _MOVED)
    moved = operator.bytes_moved(inputs, output, complete)
    weight_bytes = min(moved, sum(part.nbytes for part in _weights(operator, inputs)))
    cached_bytes = min(moved - weight_bytes, device.cache_bytes)
    far_s = (moved - weight_bytes - cached_bytes) / device.bandwidth_bytes_per_s
    near_s = cached_bytes / device.cache_bandwidth_bytes_per_s if cached_bytes else 0.0
    near_s += sum(seconds for part, seconds in works if part in _REREADS)
    if not device.weight_bandwidth_bytes_per_s:
        far_s += weight_bytes / device.bandwidth_bytes_per_s
        return compute_s * 1e6, (far_s + near_s) * 1e6
    if device.cached:
        near_s += device.cached * weight_bytes / device.weight_cache_bandwidth_bytes_per_s
    weights_s = weight_bytes / device.weight_bandwidth_bytes_per_s
    weights_s += sum(seconds for part, seconds in works if part == PACKED)
    before_s = far_s + (1 - device.cached) * weights_s
    return (before_s + compute_s) * 1e6, (before_s + near_s) * 1e6


def _weights(operator: Operator, inputs: tuple[ValueType, ...]) -> list[TensorType]:
    """Return the tensors that are constants of a model."""
    return [part for n in operator.weight_operands(inputs) for part in tensors_of(inputs[n])]


#: Where the profiles that ship are.
PROFILE_DIR = Path(__file__).resolve().parent / "profiles"

#: The key of a per-type peak that holds for the element types which are not listed.
OTHER_DTYPES = "default"


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The cost of a run of a model beside its kernels, in microseconds.

    Attributes:
        us: of any run; ``cold_us`` more where nothing of it is in a cache since the last one.
        value_us: for each input and output; ``cold_value_us`` likewise.
        size_us: for each node that computes sizes; ``cold_size_us`` likewise.
    """

    us: float = 0.0
    value_us: float = 0.0
    cold_us: float = 0.0
    cold_value_us: float = 0.0
    size_us: float = 0.0
    cold_size_us: float = 0.0


@dataclass(frozen=True, slots=True)
class ThreadCosts:
    """The effect of several threads on a processor's costs (``cost.several_threads``).

    Attributes:
        speedup: by how much each further thread makes arithmetic and activations quicker, of 1.
        weight_speedup: the same of what comes from main memory.
        share_us: the cost of sharing out a kernel.
        alone_us: a kernel that goes through elements one by one is left to one thread if it takes less
            there.
        wake_us: the cost of waking the threads for a run that finds nothing in a cache; right after another
            they are awake.
    """

    speedup: float = 0.0
    weight_speedup: float = 0.0
    share_us: float = 0.0
    alone_us: float = 0.0
    wake_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """Peak rates of a device. A profile is a ``CostModel``: its costs are the roofline's.

    Attributes:
        name: the file's name without its suffix.
        peak_flops_per_s: arithmetic operations per second: one number, or one per element type,
            then with a ``default`` for the types that are not listed.
        bandwidth_bytes_per_s: of the device's main memory.
        launch_us: the cost of a kernel before it does anything.
        cold_launch_us: its further cost if its code and the descriptions of its operands have left the
            caches since its last run.
        cold_weight_us: the same for each of its weights of more than one element.
        graph_launch_us: the same if all launches of a model are recorded once and started as one CUDA
            graph; 0 for devices without these.
        free: names of operators that launch no kernel under this profile.
        views: names of those that launch none where their results lie in the operand.
        multiprocessors: how many the device has; 0 where it has none that blocks of a kernel run on.
        shared_bytes: of the shared memory that a block may have.
        memory_bytes: of the device's main memory; 0 where that is not known.
        cache_bytes: the size of the cache in which one kernel finds the results of another; 0 where that
            makes no difference.
        cache_bandwidth_bytes_per_s: of that cache.
        elements_per_s: by operator, how many elements it works through, and by step (``STEPS``) how many
            it takes; those that are not there take no time of their own beside their operations.
        weight_bandwidth_bytes_per_s: of main memory where weights come from it before a kernel works on
            them; 0 where it does both at once.
        weight_cache_us: of what a model reads that takes so long nothing is in a cache any more when it
            runs again, of one that takes half of it, half; 0: nothing at all.
        weight_cache_bandwidth_bytes_per_s: of that cache.
        cached: the part that is there, of 1, where a model is known: ``with_cache_state``.
        view_us: the cost of naming the same elements again.
        run: the cost of a run beside kernels.
        threads: the effect of several threads; with a speed-up of 0 if unknown.
        n_threads: how many there are.
    """

    name: str
    peak_flops_per_s: float | Mapping[str, float]
    bandwidth_bytes_per_s: float
    launch_us: float
    free: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    multiprocessors: int = 0
    shared_bytes: int = 0
    memory_bytes: int = 0
    cache_bytes: int = 0
    cache_bandwidth_bytes_per_s: float = 0.0
    elements_per_s: Mapping[str, float] = field(default_factory=dict)
    weight_bandwidth_bytes_per_s: float = 0.0
    weight_cache_us: float = 0.0
    weight_cache_bandwidth_bytes_per_s: float = 0.0
    view_us: float = 0.0
    graph_launch_us: float = 0.0
    cached: float = 0.0
    cold_launch_us: float = 0.0
    cold_weight_us: float = 0.0
    run: RunCosts = RunCosts()
    threads: ThreadCosts = ThreadCosts()
    n_threads: int = 1

    def peak_for(self, dtype: str) -> float:
        """Return the operations per second on elements of type ``dtype``."""
        peak = self.peak_flops_per_s
        if isinstance(peak, Mapping):
            return peak[dtype] if dtype in peak else peak[OTHER_DTYPES]
        return peak

    def run_us(self, values: int, size_nodes: int = 0) -> float:
        """Return what a run costs beside kernels, of inputs and outputs, and nodes that compute sizes."""
        run, absent = self.run, 1 - self.cached
        value_us = run.value_us + absent * run.cold_value_us
        size_us = run.size_us + absent * run.cold_size_us
        cold_us = run.cold_us + (self.threads.wake_us if self.n_threads > 1 else 0.0)
        return run.us + absent * cold_us + values * value_us + size_nodes * size_us

    def with_threads(self, count: int) -> Profile:
        """Return the profile of so many threads, as ``NAME:threads=N``."""
        return replace(self, name=f"{self.name}:threads={count}", n_threads=count)

    def without_launches(self) -> Profile:
        """Return the profile of work that is part of a kernel."""
        return replace(self, launch_us=0.0, view_us=0.0, cold_launch_us=0.0, cold_weight_us=0.0)

    def in_a_graph(self) -> Profile:
        """Return the profile of launches that are recorded in a CUDA graph, where the device has these."""
        return replace(self, launch_us=self.graph_launch_us) if self.graph_launch_us else self

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        """Return the microseconds of one kernel, see ``kernel_time_us``."""
        return kernel_time_us(self, op, inputs, output, attrs)


def cpu_profile(instruction_sets: str) -> str:
    """Return the name of the profile of processors with such instruction sets."""
    return "cpu-avx2" if is_avx2_at_most(instruction_sets) else "cpu"


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles that ship, sorted."""
    return tuple(sorted(path.stem for path in PROFILE_DIR.glob("*.toml")))
