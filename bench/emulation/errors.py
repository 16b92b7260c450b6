"""What kernels compute beside what their μGraph means, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.tensor import Array

#: Runs a kernel, given the dims of its operands, these, and its results, which are NaN before.
RunKernel: TypeAlias = Callable[[Kernel, Mapping[str, Dims], list[Array], list[Array]], None]

#: Relative errors of the norm that rounding explains, by element type.
TOLERANCES = {"float16": 1e-3, "float32": 2e-6, "bfloat16": 8e-3}


def drawn(graph: MuGraph, dtype: str = "float16", scale: float = 0.5) -> dict[str, Array]:
    """Return random inputs."""
    random = np.random.default_rng(0)
    values = {
        name: (random.standard_normal([dim.size for dim in dims]) * scale).astype(dtype)
        for name, dims in graph.inputs.items()
    }
    return values | {name: values[name] > 0 for name in graph.conditions}


def exact(graph: MuGraph, inputs: Mapping[str, Array]) -> Array:
    """Return the only output, computed in float64."""
    return exact_outputs(graph, inputs)[graph.outputs[0]]


def exact_outputs(graph: MuGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs by name, computed in float64."""
    wide = {name: value.astype(np.float64) for name, value in inputs.items()}
    return cast(dict[str, Array], evaluate(graph, wide, Numbers("float64")))


def run_all(graph: MuGraph, inputs: Mapping[str, Array], run: RunKernel) -> Array:
    """Return the only output of kernels run one after the other; see ``run_each``."""
    dtype = next(str(value.dtype) for value in inputs.values() if value.dtype != bool)
    return run_each(graph, inputs, dtype, run)[graph.outputs[0]]


def run_each(
    graph: MuGraph, inputs: Mapping[str, Array], dtype: str, run: RunKernel
) -> dict[str, Array]:
    """Return the inputs, and what kernels compute of them one after the other, by name.

    Args:
        graph: of kernels, and of operators of libraries, which NumPy computes.
        inputs: by name.
        dtype: of all results that are not wide.
        run: runs one.
    """
    values, dims = dict(inputs), kernel_tensors(graph)
    for kernel in graph.steps:
        device = {name: dims[name] for name in kernel.operands}
        if isinstance(kernel, Operation):
            alone = MuGraph(kernel.op, device, (kernel,), kernel.outputs)
            given = {name: values[name] for name in kernel.operands}
            values[kernel.output] = exact(alone, given).astype(dtype)
            continue
        for saver in kernel.block.savers:
            shape = [dim.size for dim in saver.dims]
            values[saver.output] = np.full(shape, np.nan, "float32" if saver.is_wide else dtype)
        operands = [values[name] for name in kernel.operands]
        run(kernel, device, operands, [values[name] for name in kernel.outputs])
    return values


def norm_error(actual: Array, want: Array) -> float:
    """Return the norm of the difference, relative to that of what is wanted."""
    difference = np.linalg.norm(np.subtract(actual, want, dtype=np.float64))
    return float(difference / np.linalg.norm(want))
