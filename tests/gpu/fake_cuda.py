"""Stand-ins for what is not here: shared libraries that check their arguments, PyCUDA, a driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

#: What a stand-in does with the arguments that it is given; returns its status.
Behaviour = Callable[..., Any]


class FakeFunction:
    """A C function: refuses arguments of another number or type than were declared."""

    def __init__(self, name: str, log: list[tuple[str, tuple[Any, ...]]], act: Behaviour) -> None:
        self.name = name
        self.argtypes: list[Any] | None = None
        self.restype: Any = ctypes.c_int
        self._log = log
        self._act = act

    def __call__(self, *arguments: Any) -> Any:
        if self.argtypes is not None:
            assert len(arguments) == len(self.argtypes), self.name
            for argument, kind in zip(arguments, self.argtypes, strict=True):
                kind.from_param(argument)
        self._log.append((self.name, arguments))
        return self._act(*arguments)


class FakeHandle:
    """What ``ctypes.CDLL`` would return: every function there is, none of which does a thing.

    Attributes:
        log: the calls, in order.
        behaviours: what some functions do, by name.
    """

    def __init__(self, **behaviours: Behaviour) -> None:
        self.log: list[tuple[str, tuple[Any, ...]]] = []
        self.behaviours = behaviours
        self._next = 0x1000

    def __getattr__(self, name: str) -> FakeFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        act = self.behaviours.get(name, self._create if "Create" in name else lambda *_: 0)
        function = FakeFunction(name, self.log, act)
        setattr(self, name, function)
        return function

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """Return the arguments of every call of a function."""
        return [arguments for function, arguments in self.log if function == name]

    @property
    def alive(self) -> int:
        """How many objects were created and not destroyed."""
        names = [name for name, _ in self.log]
        return sum("Create" in name for name in names) - sum("Destroy" in name for name in names)

    def _create(self, target: Any, *_: Any) -> int:
        self._next += 0x10
        target._obj.value = self._next
        return 0


class FakeModules:
    """Our kernels: writes down what is launched."""

    def __init__(self) -> None:
        self.started: list[tuple[str, dict[str, Any]]] = []

    def bind(self, launch: Any, resolve: Any) -> Any:
        from relational_tensat.gpu.catalogue import signature_of
        from relational_tensat.gpu.cuda.modules import packed

        signature = signature_of(launch.kernel)
        packed(signature, launch, resolve)
        resolved = {
            name: resolve(value) if hasattr(value, "buffer") else value
            for name, value in launch.arguments.items()
        }
        return SimpleNamespace(
            start=lambda workspace: self.started.append((launch.kernel, resolved)),
            implementation="kernels",
            workspace_bytes=0,
            close=lambda: None,
        )


class DriverError(Exception):
    """Stands for ``pycuda.driver.Error``."""


def fake_gpu(**driver: Any) -> Any:
    """Return a GPU whose driver has only what is given."""
    return SimpleNamespace(
        driver=SimpleNamespace(**{"Error": DriverError, **driver}),
        stream=SimpleNamespace(handle=77, synchronize=lambda: None),
        name="NVIDIA Test",
        arch="sm_90",
        driver_version="580.1",
        l2_bytes=60 << 20,
    )
