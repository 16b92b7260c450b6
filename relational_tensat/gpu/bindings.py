"""What comes from ``cuda.bindings``: functions of the driver that PyCUDA has not, and what calls answer."""

from __future__ import annotations

from typing import Any

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.gpu.install import INSTALL


def cuda_driver(purpose: str) -> Any:
    """Return the module of the driver's functions.

    Args:
        purpose: what needs them, in the plural, for the message where they are not there.

    Raises:
        MissingDependencyError: cuda-bindings is not installed.
    """
    try:
        from cuda.bindings import driver
    except ImportError:
        raise MissingDependencyError(f"{purpose} need cuda-bindings: {INSTALL}") from None
    return driver


def checked(answer: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return a call's results.

    Raises:
        InputError: it failed.
    """
    status, *results = answer
    if status.value:
        raise InputError(f"{what}: {status.name}")
    return tuple(results)
