"""Real inputs for verification, from NumPy files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, numpy_dtype


def load_inputs(graph: Graph, files: Mapping[str, Path]) -> dict[str, Array]:
    """Return the arrays of ``.npy`` files by graph input.

    Raises:
        UsageError: the graph has no such input; names the nearest.
        InputError: a file is missing or malformed, or holds another shape or element type.
    """
    return {name: _load(graph, name, path) for name, path in files.items()}


def _load(graph: Graph, name: str, path: Path) -> Array:
    if name not in graph.inputs:
        names = ", ".join(graph.inputs) or "none"
        hint = nearest(name, graph.inputs)
        raise UsageError(f"the model has no input {name!r}, its inputs are {names}{hint}")
    kind = graph.inputs[name]
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: not a .npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: an archive of arrays, expected a .npy file of one")
    is_number = kind.dtype in DTYPE_BYTES  # strings come in many widths
    if array.shape != kind.shape or (is_number and array.dtype != numpy_dtype(kind.dtype)):
        actual = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        raise InputError(f"{path}: holds {actual}, the input {name!r} is {kind}")
    return array
