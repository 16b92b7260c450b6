"""What a program takes when each operator is a kernel of a library: the roofline, tensor cores at 70 %."""

from __future__ import annotations

from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100

_EFFICIENCY = 0.7


def library_us(
    program: MuGraph, device: Multiprocessors | None = None, element_bytes: int = 2
) -> float:
    """Return the modelled microseconds of a program without fused kernels.

    Args:
        program: of operators of libraries only.
        device: what it runs on; an A100 by default.
        element_bytes: of an element.
    """
    profile = (device or a100()).profile
    peak = profile.peak_for("float16") * _EFFICIENCY
    dims = kernel_tensors(program)
    total = 0.0
    for step in program.steps:
        if not isinstance(step, Operation):
            continue
        operands = [dims[name] for name in step.operands]
        result = dims[step.output]
        flops = mu_operator(step.op).flops(operands, result)
        moved = element_bytes * sum(map(count, (*operands, result)))
        seconds = max(flops / peak, moved / profile.bandwidth_bytes_per_s)
        total += profile.launch_us + 1e6 * seconds
    return total
