"""What runs calls: the interface between the executor and a device, or its double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from relational_tensat.gpu.calls import Call, Ref
from relational_tensat.tensor import Array

#: Gives the address at which a place in a buffer lies.
Resolve: TypeAlias = Callable[[Ref], int]


class BoundCall(Protocol):
    """A call with addresses in place of buffers, ready to be started any number of times."""

    @property
    def implementation(self) -> str:
        """Which library's kernel runs it: ``kernels`` for ours, else ``cublasLt`` or ``cudnn``."""

    @property
    def workspace_bytes(self) -> int:
        """Memory that it needs while it runs."""

    def start(self, workspace: int) -> None:
        """Enqueue it, behind what was enqueued before; ``workspace`` is an address."""

    def close(self) -> None:
        """Give back what it holds beside memory; it is not started again."""


class KernelLibrary(Protocol):
    """Memory and kernels of one device."""

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory, at a multiple of 256; its content is undefined."""

    def free(self, address: int) -> None:
        """Give back what ``allocate`` returned."""

    def clear(self, address: int, nbytes: int) -> None:
        """Fill memory with zeros."""

    def write(self, address: int, data: Array) -> None:
        """Copy bytes to the device."""

    def read(self, address: int, nbytes: int) -> Array:
        """Copy bytes from the device, once all that was enqueued is done."""

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        """Prepare a call.

        Raises:
            InputError: no kernel of this library does what it asks for.
        """

    def synchronize(self) -> None:
        """Wait for all that was enqueued."""
