"""What a program takes as kernels of a library, one for each operator."""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.view_operators import View
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100

#: What of the peak a library reaches.
_EFFICIENCY = 0.7


def library_us(program: MuGraph, device: Multiprocessors | None = None) -> float:
    """Return the modelled microseconds of a program without fused kernels.

    Args:
        program: of operators of libraries only.
        device: what it runs on; an A100 by default.
    """
    device, dims = device or a100(), kernel_tensors(program)
    return sum(
        operation_us(step, dims, device) for step in program.steps if isinstance(step, Operation)
    )


def operation_us(step: Operation, dims: Mapping[str, Dims], device: Multiprocessors) -> float:
    """Return the modelled microseconds of one operator as a kernel of a library, 0 if it moves nothing.

    Args:
        step: the operator.
        dims: of the tensors in device memory.
        device: what it runs on.
    """
    profile, peak = device.profile, device.peak_flops_per_s * _EFFICIENCY
    if isinstance(mu_operator(step.op), View):
        return 0.0
    operands, result = [dims[name] for name in step.operands], dims[step.output]
    flops = mu_operator(step.op).flops(operands, result)
    moved = device.element_bytes * sum(map(count, (*operands, result)))
    return profile.launch_us + 1e6 * max(flops / peak, moved / profile.bandwidth_bytes_per_s)
