"""Our kernels on the device: compiled when first called, launched through PyCUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Argument, Launch, Ref
from relational_tensat.gpu.catalogue import Signature, signature_of
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.library import Resolve
from relational_tensat.gpu.nvrtc import cached_unit

#: How launches are called in ``implementation``.
OWN = "kernels"


class Modules:
    """The kernels of one GPU, by their full names."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._units: dict[str, tuple[Any, Any]] = {}

    def function(self, kernel: str, signature: Signature) -> Callable[..., None]:
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


def packed(signature: Signature, launch: Launch, resolve: Resolve) -> tuple[int | float, ...]:
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
