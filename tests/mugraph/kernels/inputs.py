"""Inputs and graphs that tests of kernels make of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.tensor import Array


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


def numbered(graphs: Sequence[MuGraph]) -> list[MuGraph]:
    """Return graphs of kernels, whose names all differ."""
    return [
        replace(
            graph,
            steps=tuple(
                replace(step, name=f"{step.name}_{place}") if isinstance(step, Kernel) else step
                for step in graph.steps
            ),
        )
        for place, graph in enumerate(graphs)
    ]
