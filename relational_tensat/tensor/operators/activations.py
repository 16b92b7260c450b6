"""The activations that conv, matmul and pool operators can have fused."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError, nearest
from relational_tensat.tensor.operators.traits import NO_ACTIVATION as NO_ACTIVATION

#: Their names: those of operators.
ACTIVATIONS = (NO_ACTIVATION, "relu", "sigmoid", "tanh")


def activate(name: str, array: Any) -> Any:
    """Apply a fused activation to an array."""
    match name:
        case "none":
            return array
        case "relu":
            return np.maximum(array, 0)
        case "sigmoid":
            decay = np.exp(-np.abs(array))  # never overflows
            return np.where(array >= 0, 1.0, decay) / (1.0 + decay)
        case "tanh":
            return np.tanh(array)
        case _:
            raise ShapeError(f"unknown activation {name!r}{nearest(name, ACTIVATIONS)}")
