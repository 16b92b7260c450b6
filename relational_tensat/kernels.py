"""Kernels of a folder that a run has written, as functions of NumPy's arrays.

They are compiled by the system's C compiler; ``kernels emit`` prints the same kernels for GPUs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.kernel_files import INDEX
from relational_tensat.mugraph.graph.mugraph_files import load_mugraph
from relational_tensat.mugraph.kernels.c.compile_c import compile_c
from relational_tensat.mugraph.kernels.c.emit_c import emit_c

#: A kernel: its operands, of float32 and of the sizes that it was made for, give its result.
KernelFunction = Callable[..., NDArray[Any]]


def load(folder: str | Path) -> dict[str, KernelFunction]:
    """Return the kernels of a folder, by their hashes, which ONNX's local functions are named for.

    A dimension of size 1 is none to a kernel: operands may have any, results have none.

    Raises:
        InputError: the folder has no kernels, or one is malformed.
        MissingDependencyError: there is no C compiler.
    """
    path = Path(folder) / INDEX
    try:
        keys = [str(key) for key in json.loads(path.read_text(encoding="utf-8"))["kernels"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no list of kernels: {error}") from error
    return {key: _load_one(Path(folder) / f"{key}.json") for key in keys}


def _load_one(path: Path) -> KernelFunction:
    graph = load_mugraph(path)
    (kernel,) = graph.kernels
    (saver,) = kernel.block.savers
    shapes = {name: tuple(dim.size for dim in dims) for name, dims in graph.inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        function = compile_c(emit_c(kernel, graph.inputs), Path(folder))

    def call(*operands: NDArray[Any]) -> NDArray[Any]:
        if len(operands) != len(shapes):
            raise InputError(f"{path.stem}: {len(operands)} operands, expected {len(shapes)}")
        given = {}
        for (name, shape), operand in zip(shapes.items(), operands, strict=True):
            if tuple(size for size in operand.shape if size > 1) != shape:
                raise InputError(f"{path.stem}: an operand of {operand.shape}, expected {shape}")
            given[name] = np.ascontiguousarray(operand)
        result = np.empty([dim.size for dim in saver.dims], np.float32)
        function([given[name] for name in kernel.operands], [result])
        return result

    return call
