"""The analytic roofline: a kernel is bound by arithmetic or by memory, plus its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.graph import Attrs, ValueType, tensors_of
from relational_tensat.ops import get_operator

if TYPE_CHECKING:
    from relational_tensat.cost.profile import Profile


def kernel_time_us(
    profile: Profile, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> float:
    """Return ``max(flops / peak, bytes / bandwidth) + launch``, in microseconds.

    Flops and bytes are those that the operator's description states; the peak is that of the
    result's element type. Operators for which nothing runs, and those that the profile says are free
    (views, in all that ship), launch no kernel and take 0.

    Raises:
        UsageError: there is no operator of that name.
    """
    if get_operator(op).kernel == "nothing" or op in profile.free:
        return 0.0
    return max(roofline_us(profile, op, inputs, output, attrs)) + profile.launch_us


def roofline_us(
    profile: Profile, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
) -> tuple[float, float]:
    """Return ``flops / peak`` and ``bytes / bandwidth`` of one kernel, in microseconds.

    Raises:
        UsageError: there is no operator of that name.
    """
    operator = get_operator(op)
    complete = operator.canonical(inputs, attrs)
    parts = tensors_of(output)
    peak = profile.peak_for(parts[0].dtype if parts else "")
    compute_s = operator.flops(inputs, output, complete) / peak
    memory_s = operator.bytes_moved(inputs, output, complete) / profile.bandwidth_bytes_per_s
    return compute_s * 1e6, memory_s * 1e6
