"""The analytic roofline: a kernel is bound by arithmetic or by memory, plus its launch."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Protocol

from relational_tensat.tensor import Attrs, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import Operator, get_operator
from relational_tensat.tensor.operators.work_steps import PACKED, REREAD, REREAD_STRETCH

#: What a cache gives once more; with weights that come slower than others, the steps without arithmetic.
_REREADS = frozenset({REREAD, REREAD_STRETCH})
_MOVED = _REREADS | {PACKED}


class Rates(Protocol):
    """What the roofline needs to know of a device; ``cost.profile.Profile`` is one."""

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Of the device's main memory."""

    @property
    def cache_bytes(self) -> int:
        """What fits into the cache in which one kernel finds the results of another."""

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
        """What one kernel costs before it does anything."""

    @property
    def cold_launch_us(self) -> float:
        """What it costs more where no cache has its code and data."""

    @property
    def cold_weight_us(self) -> float:
        """The same for each of its weights of more than one element."""

    @property
    def view_us(self) -> float:
        """What it costs to name the same elements anew."""

    @property
    def elements_per_s(self) -> Mapping[str, float]:
        """How many elements operators work through, by name, where that takes a time of its own."""

    @property
    def free(self) -> Set[str]:
        """Names of operators that launch no kernel."""

    def peak_for(self, dtype: str) -> float:
        """Return the operations per second on elements of type ``dtype``."""


def kernel_time_us(
    device: Rates, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> float:
    """Return ``max(flops / peak, bytes / bandwidth) + launch``, in microseconds; see ``roofline_us``.

    A launch costs more by what is its own and in no cache, as far as the device's profile says.

    Flops and bytes are those that the operator's description states; the peak is that of the
    element type that it computes. Operators for which nothing runs, and those that the profile says are
    free (views, in all that ship), launch no kernel and take 0, or what a view costs.

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
    weights = sum(part.size > 1 for part in _weights(operator, inputs))
    cold_us = device.cold_launch_us + device.cold_weight_us * weights
    sides_us = roofline_us(device, op, inputs, output, attrs)
    return max(sides_us) + device.launch_us + absent * cold_us


def roofline_us(
    device: Rates, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> tuple[float, float]:
    """Return ``flops / peak`` and ``bytes / bandwidth`` of one kernel, in microseconds.

    To the former comes what operators take for each element (a division, an exponential) and step: peaks
    are those of sums of products. What is read once more for each stretch of a result is moved.

    Of activations, what fits into a cache moves at its bandwidth, and only the rest at that of main memory,
    so that a byte more never costs more than a byte; weights come from main memory, but for the part that
    is in a cache. Where they come before anything is done with them, both are longer by that; from a cache,
    they come meanwhile.

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
