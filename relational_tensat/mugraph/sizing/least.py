"""What kernels cannot be modelled to take less than: a launch, and what they move, each element once.

A kernel's time is a launch and at least what device memory takes to bring what it loads and to take what it
stores, each once (``waves.kernel_us``), whatever its sizes are; an operator of a library likewise
(``libraries.operation_us``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relational_tensat.mugraph.graph.cores import core
from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mugraph import WIDE_BYTES, MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that a kernel loads or stores, and whether it is float32 whatever the elements are."""

    dims: Dims
    is_wide: bool = False


def least_kernel_us(tensors: Iterable[Traffic], device: Multiprocessors) -> float:
    """Return what no kernel that loads and stores some tensors takes less than.

    Args:
        tensors: these, perhaps not all.
        device: what it runs on.
    """
    moved = sum(
        count(tensor.dims) * (WIDE_BYTES if tensor.is_wide else device.element_bytes)
        for tensor in tensors
    )
    return device.profile.launch_us + 1e6 * moved / device.profile.bandwidth_bytes_per_s


def least_us(program: MuGraph, device: Multiprocessors) -> float:
    """Return what no kernel for a program takes less than.

    Args:
        program: of operators of libraries only.
        device: what it runs on.
    """
    program = core(program)
    dims = kernel_tensors(program)
    return least_kernel_us(
        (Traffic(dims[name]) for name in (*program.inputs, *program.outputs)), device
    )
