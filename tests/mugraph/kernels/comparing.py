"""What kernels compute beside what their μGraph means, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor import Array

#: Relative errors of the norm that rounding explains, by element type.
TOLERANCES = {"float16": 1e-3, "float32": 2e-6, "bfloat16": 8e-3}


def drawn(graph: MuGraph, dtype: str = "float16", scale: float = 0.5) -> dict[str, Array]:
    """Return random inputs."""
    random = np.random.default_rng(0)
    return {
        name: (random.standard_normal([dim.size for dim in dims]) * scale).astype(dtype)
        for name, dims in graph.inputs.items()
    }


def exact(graph: MuGraph, inputs: dict[str, Array]) -> Array:
    """Return the only output, computed in float64."""
    wide = {name: value.astype(np.float64) for name, value in inputs.items()}
    return cast(Array, evaluate(graph, wide, Numbers("float64"))[graph.outputs[0]])


def with_level_logits(graph: MuGraph, inputs: dict[str, Array], logit: float) -> dict[str, Array]:
    """Return inputs of attention whose logits lie around a large one: no key outweighs the others."""
    random = np.random.default_rng(1)
    width = inputs["Q"].shape[-1]
    noise = {name: random.uniform(-1, 1, inputs[name].shape) for name in ("Q", "K")}
    side = np.sqrt(logit / width)
    level = {name: (side * (1 + 1e-3 * noise[name])).astype(inputs[name].dtype) for name in noise}
    return {**inputs, **level}


def with_level_keys(inputs: dict[str, Array], value: float) -> dict[str, Array]:
    """Return inputs of attention whose keys all count the same, and whose values are about a number."""
    random = np.random.default_rng(2)
    values = value * random.uniform(0.5, 1, inputs["V"].shape)
    return {**inputs, "Q": 0 * inputs["Q"], "V": values.astype(inputs["V"].dtype)}


def run_all(
    graph: MuGraph,
    inputs: dict[str, Array],
    run: Callable[[Kernel, Mapping[str, Dims], list[Array], list[Array]], None],
) -> Array:
    """Return the only output of kernels run one after the other.

    Args:
        graph: of kernels only.
        inputs: by name.
        run: a kernel, the dims of its operands, these, and its results, which are NaN before.
    """
    values, dims = dict(inputs), kernel_tensors(graph)
    dtype = next(iter(inputs.values())).dtype
    for kernel in graph.kernels:
        device = {name: dims[name] for name in kernel.operands}
        for saver in kernel.block.savers:
            shape = [dim.size for dim in saver.dims]
            values[saver.output] = np.full(shape, np.nan, "float32" if saver.is_wide else dtype)
        operands = [values[name] for name in kernel.operands]
        run(kernel, device, operands, [values[name] for name in kernel.outputs])
    return values[graph.outputs[0]]


def norm_error(actual: Array, want: Array) -> float:
    """Return the norm of the difference, relative to that of what is wanted."""
    difference = np.linalg.norm(actual.astype(np.float64) - want)
    return float(difference / np.linalg.norm(want))


def numbered(graphs: tuple[MuGraph, ...]) -> list[MuGraph]:
    """Return graphs of one kernel each, whose names all differ."""
    result = []
    for place, graph in enumerate(graphs):
        (kernel,) = graph.kernels
        step = Kernel(f"{kernel.name}_{place}", kernel.block)
        result.append(replace(graph, steps=(step,)))
    return result
