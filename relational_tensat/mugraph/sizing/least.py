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
from relational_tensat.mugraph.graph.mugraph import CONDITION_BYTES, WIDE_BYTES, MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that a kernel loads or stores.

    Attributes:
        is_wide: whether it is float32, whatever the elements are.
        is_condition: whether its elements are bools.
    """

    dims: Dims
    is_wide: bool = False
    is_condition: bool = False

    def bytes(self, element_bytes: int) -> int:
        """Return how many there are, of elements of so many."""
        item_bytes = WIDE_BYTES if self.is_wide else element_bytes
        return count(self.dims) * (CONDITION_BYTES if self.is_condition else item_bytes)


def least_kernel_us(tensors: Iterable[Traffic], device: Multiprocessors) -> float:
    """Return what no kernel that loads and stores some tensors takes less than.

    Args:
        tensors: these, perhaps not all.
        device: what it runs on.
    """
    moved = sum(tensor.bytes(device.element_bytes) for tensor in tensors)
    return device.profile.launch_us + 1e6 * moved / device.profile.bandwidth_bytes_per_s


def least_us(program: MuGraph, device: Multiprocessors) -> float:
    """Return what no kernel for a program takes less than.

    Args:
        program: of operators of libraries only.
        device: what it runs on.
    """
    program = core(program)
    dims = kernel_tensors(program)
    moved = (*program.inputs, *program.outputs)
    conditions = program.conditions
    return least_kernel_us(
        (Traffic(dims[name], is_condition=name in conditions) for name in moved), device
    )
