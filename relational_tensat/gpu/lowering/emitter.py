"""What lowering writes with: calls in order, and the buffers that they need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Argument, Call, Launch, Ref, Tensor, Triple
from relational_tensat.gpu.codes import FLOAT_TYPES
from relational_tensat.tensor import TensorType

#: Threads of a block where nothing asks for another number.
THREADS = 256
#: More blocks than this queue up: kernels step through the rest. A GPU has 100 to 200
#: multiprocessors, of 8 such blocks each.
_MOST_BLOCKS = 4096
#: Kernels count elements in 32 bits.
_MOST_ELEMENTS = 2**31 - 1


@dataclass(slots=True)
class Emitter:
    """Collects the calls of one plan.

    Attributes:
        math: how float32 is multiplied, one of ``MATH_MODES``.
        calls: so far, in the order in which they run.
        sizes_bytes: of every buffer that was made here, by name.
    """

    math: str = "fp32"
    calls: list[Call] = field(default_factory=list)
    sizes_bytes: dict[str, int] = field(default_factory=dict)

    def tensor(self, kind: TensorType) -> Tensor:
        """Return a tensor in a buffer of its own, with nothing in it yet.

        Raises:
            InputError: it has more elements than kernels count.
        """
        check_size(kind)
        name = f"t{len(self.sizes_bytes)}"
        self.sizes_bytes[name] = kind.nbytes
        return Tensor(kind, Ref(name))

    def launch(self, kernel: str, grid: Triple, block: Triple, /, **arguments: Argument) -> None:
        """Add a launch of one of our kernels."""
        self.calls.append(Launch(kernel, grid, block, arguments))

    def launch_over(self, kernel: str, count: int, /, **arguments: Argument) -> None:
        """Add a launch of a kernel in which a thread takes one of ``count`` things after another."""
        self.launch(kernel, blocks_for(count), (THREADS, 1, 1), **arguments)


def check_size(kind: TensorType) -> None:
    """Refuse a tensor of more elements than kernels count.

    Raises:
        InputError: it is one.
    """
    if kind.size > _MOST_ELEMENTS:
        raise InputError(f"GPU kernels take tensors of under 2^31 elements, not {kind}")


def blocks_for(count: int, per_block: int = THREADS) -> Triple:
    """Return a grid of so many blocks that each has about ``per_block`` things to do."""
    return max(1, min(math.ceil(count / per_block), _MOST_BLOCKS)), 1, 1


def float_type(op: str, kind: TensorType) -> str:
    """Return what kernels call a tensor's element type.

    Raises:
        InputError: there are no kernels for it.
    """
    if kind.dtype not in FLOAT_TYPES:
        known = ", ".join(FLOAT_TYPES)
        raise InputError(f"no GPU kernel for {op} of {kind.dtype}, only of {known}")
    return FLOAT_TYPES[kind.dtype]
