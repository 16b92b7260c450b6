"""The double of the kernel library: runs calls in NumPy, from the very same descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.gpu.calls import Argument, BoundCall, Call, Ref, Resolve
from relational_tensat.gpu.catalogue import signature_of
from relational_tensat.gpu.library_calls import own_launch
from relational_tensat.tensor import Array
from tests.gpu.numpy_kernels import KERNELS
from tests.gpu.numpy_memory import NumpyMemory

_MOST_THREADS, _MOST_BLOCKS = 1024, (2**31 - 1, 65_535, 65_535)


@dataclass(frozen=True, slots=True)
class _Bound:
    library: NumpyLibrary
    kernel: str
    arguments: Mapping[str, Any]
    implementation: str = "kernels"
    workspace_bytes: int = 0

    def start(self, workspace: int) -> None:
        name, _, kind = self.kernel.partition("<")
        self.library.launched += 1
        KERNELS[name](self.library.memory, kind.rstrip(">"), dict(self.arguments))

    def close(self) -> None:
        pass


class NumpyLibrary:
    """Checks each launch against its kernel's signature and CUDA's limits, then computes it.

    Attributes:
        bound: how many launches were bound, by kernel.
        launched: how many have run.
    """

    def __init__(self) -> None:
        self.launched = 0
        self.memory = NumpyMemory()
        self.bound: Counter[str] = Counter()

    def allocate(self, nbytes: int) -> int:
        return self.memory.allocate(nbytes)

    def free(self, address: int) -> None:
        self.memory.free(address)

    def clear(self, address: int, nbytes: int) -> None:
        """Leave the poison: calls are not tried here, and what nothing wrote shows when it is read."""

    def write(self, address: int, data: Array) -> None:
        self.memory.bytes_at(address, data.size)[:] = data

    def read(self, address: int, nbytes: int) -> Array:
        copied: Array = self.memory.bytes_at(address, nbytes).copy()
        return copied

    def synchronize(self) -> None:
        pass

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        launch = own_launch(call)
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        assert 0 < threads <= _MOST_THREADS and threads % 32 == 0
        assert all(0 < n <= most for n, most in zip(launch.grid, _MOST_BLOCKS, strict=True))
        signature = signature_of(launch.kernel)
        assert set(launch.arguments) == {parameter.name for parameter in signature.parameters}
        values = {}
        for parameter in signature.parameters:
            argument = launch.arguments[parameter.name]
            numbers = argument if isinstance(argument, tuple) else (argument,)
            assert isinstance(argument, tuple) == (parameter.count is not None), parameter.name
            assert parameter.count is None or len(numbers) == parameter.count, parameter.name
            resolved = tuple(_number(number, parameter.format, resolve) for number in numbers)
            values[parameter.name] = resolved if parameter.count is not None else resolved[0]
        self.bound[launch.kernel] += 1
        return _Bound(self, launch.kernel, values)


def _number(value: Argument, format_: str, resolve: Resolve) -> int | float:
    if format_ == "Q" and (value is None or isinstance(value, Ref)):
        return 0 if value is None else resolve(value)
    assert isinstance(value, float if format_ == "d" else int)
    assert isinstance(value, int | float) and not isinstance(value, bool)
    return value
