"""Code on the device: our kernels, compiled when first called, and NVIDIA's shared libraries.

The libraries are called through ``ctypes``, not Python bindings: nvmath has no cuDNN, cudnn-frontend has no
cuBLAS, and the two with their dependencies are 20 MB of wheels. The calls used here are 30 C functions
whose signatures have not changed for years (cuBLASLt since CUDA 11, cuDNN's since version 8). The libraries
themselves (900 MB) are mostly there already, with PyTorch, JAX or CuPy. ``cuda.pathfinder`` finds them in
wheels, in conda environments, in a toolkit, or on the system. Where they are not, kernels of our own do the
work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Argument, Launch, Ref, Resolve
from relational_tensat.gpu.catalogue import KernelSignature, signature_of
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.nvrtc import cached_unit

#: How C types are written in the tables of functions.
POINTER, SIZE, INT, INT64, DOUBLE = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64, ctypes.c_double,
)  # fmt: skip


class SharedLibrary:
    """Functions of a C library that return a status; 0 is success.

    Args:
        handle: what ``ctypes.CDLL`` returns.
        functions: the types of each function's parameters, by name.
        describe: returns the text of a status.
    """

    def __init__(
        self,
        handle: Any,
        functions: Mapping[str, Sequence[Any]],
        describe: Callable[[int], str],
    ) -> None:
        self._functions = {}
        self._describe = describe
        for name, parameters in functions.items():
            function = getattr(handle, name)
            function.argtypes, function.restype = list(parameters), ctypes.c_int
            self._functions[name] = function

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            InputError: it returned another status than success.
        """
        status = self._functions[name](*arguments)
        if status:
            raise InputError(f"{name}: {self._describe(status)}")

    def create(self, name: str, *arguments: Any) -> int:
        """Call a function whose first parameter takes the address of a new object; return that."""
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made.value or 0


class Objects:
    """Objects of a library that are given back together."""

    def __init__(self, library: SharedLibrary) -> None:
        self._library = library
        self._made: list[tuple[str, int]] = []

    def create(self, name: str, *arguments: Any) -> int:
        """Create an object, see ``SharedLibrary.create``."""
        made = self._library.create(name, *arguments)
        self._made.append((name.replace("Create", "Destroy"), made))
        return made

    def close(self) -> None:
        """Give all of them back."""
        while self._made:
            self._library.call(*self._made.pop())


def find_library(name: str) -> Any | None:
    """Return one of NVIDIA's libraries, e.g. ``cublasLt``; None where it is not installed."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return None
    try:
        loaded = load_nvidia_dynamic_lib(name)
    except RuntimeError:  # pathfinder's own exceptions: not found, or not loadable
        return None
    return ctypes.CDLL(loaded.abs_path)


def int_array(values: Sequence[int]) -> Any:
    """Return a C array of ints."""
    return (ctypes.c_int * len(values))(*values)


#: How launches are called in ``implementation``.
OWN = "kernels"


class Modules:
    """The kernels of one GPU, by their full names."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._units: dict[str, tuple[Any, Any]] = {}

    def function(self, kernel: str, signature: KernelSignature) -> Callable[..., None]:
        """Return a kernel ready for ``prepared_async_call``.

        Raises:
            MissingDependencyError: NVRTC is not installed.
            InputError: its file does not compile.
        """
        if signature.unit not in self._units:
            compiled = cached_unit(signature.unit, self._gpu.arch)
            module = self._gpu.driver.module_from_buffer(compiled.cubin)
            self._units[signature.unit] = (module, compiled.names)
        module, names = self._units[signature.unit]
        function = module.get_function(names[kernel])
        function.prepare([signature.format])
        result: Callable[..., None] = function.prepared_async_call
        return result

    def bind(self, launch: Launch, resolve: Resolve) -> BoundLaunch:
        """Prepare a launch."""
        signature = signature_of(launch.kernel)
        return BoundLaunch(
            call=self.function(launch.kernel, signature),
            stream=self._gpu.stream,
            grid=launch.grid,
            block=launch.block,
            values=packed(signature, launch, resolve),
        )


def packed(signature: KernelSignature, launch: Launch, resolve: Resolve) -> tuple[int | float, ...]:
    """Return a launch's arguments in the order and number in which the kernel declares them.

    Raises:
        InputError: one is missing, too many, or of the wrong number of elements.
    """
    names = {parameter.name for parameter in signature.parameters}
    if names != set(launch.arguments):
        odd = ", ".join(sorted(names ^ set(launch.arguments)))
        raise InputError(f"{launch.kernel}: the arguments do not fit the parameters: {odd}")
    values: list[int | float] = []
    for parameter in signature.parameters:
        argument = launch.arguments[parameter.name]
        numbers = argument if isinstance(argument, tuple) else (argument,)
        if len(numbers) != (parameter.count or 1):
            raise InputError(f"{launch.kernel}: {parameter.name} has {len(numbers)} elements")
        values += [_number(number, resolve) for number in numbers]
    return tuple(values)


def _number(value: Argument, resolve: Resolve) -> int | float:
    if value is None:
        return 0
    if isinstance(value, Ref):
        return resolve(value)
    if isinstance(value, tuple):
        raise InputError(f"a kernel's argument {value!r}, expected a number or an address")
    return value


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch with its addresses."""

    call: Callable[..., None]
    stream: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: tuple[int | float, ...]
    implementation: str = OWN
    workspace_bytes: int = 0

    def start(self, workspace: int) -> None:
        """Enqueue it."""
        self.call(self.grid, self.block, self.stream, *self.values)

    def close(self) -> None:
        """Do nothing: it holds nothing."""
