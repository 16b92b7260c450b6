"""What kernels compute beside what their μGraph means, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
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
