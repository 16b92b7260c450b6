"""Where a model's own outputs are not defined: an extremum of several elements met NaN.

ONNX leaves open whether ReduceMax, ReduceMin and the largest of a window are NaN then. onnxruntime
spreads NaN or passes over it by its place in memory, which any rewriting may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify.evaluate import Weights, evaluate_as_typed
from relational_tensat.verify.outputs import flat_outputs, output_names

#: The outputs of several runs.
Runs: TypeAlias = Sequence[Sequence[Array]]


class DefinedElements:
    """Which elements of a model's outputs are the same whether extrema pass over NaN or not."""

    def __init__(
        self, graph: Graph, draws: Sequence[Mapping[str, Array]], weights: Weights
    ) -> None:
        """Compute the graph both ways.

        Args:
            draws: inputs of every run. Where the graph cannot be computed, all counts as defined.
        """
        self._names = output_names(graph)
        try:
            self._undefined = [_undefined(graph, inputs, weights) for inputs in draws]
        except InputError:
            self._undefined = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not compared, a sentence for each output."""
        counts = [
            sum(int(mask.sum()) for mask in masks) for masks in zip(*self._undefined, strict=True)
        ]
        return tuple(
            f"{count:,} elements of output {name!r} are not compared: they depend on a maximum or "
            "minimum that met NaN, which runtimes spread or pass over"
            for name, count in zip(self._names, counts, strict=False)
            if count
        )

    def only(self, runs: Runs) -> Runs:
        """Return outputs in which what is not defined is NaN, 0 among integers."""
        if not self._undefined:
            return runs
        return [
            [_blanked(array, mask) for array, mask in zip(outputs, masks, strict=True)]
            for outputs, masks in zip(runs, self._undefined, strict=True)
        ]


def _undefined(graph: Graph, inputs: Mapping[str, Array], weights: Weights) -> list[Array]:
    spread, skipped = (
        flat_outputs(graph, evaluate_as_typed(graph, inputs, weights, skips_nan=skips))
        for skips in (False, True)
    )
    return [_differ(a, b) for a, b in zip(spread, skipped, strict=True)]


def _differ(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "fiub":
        return np.zeros(a.shape, bool)
    both_nan = (a != a) & (b != b)
    return np.asarray((a != b) & ~both_nan)


def _blanked(array: Array, mask: Array) -> Array:
    if array.shape != mask.shape or not mask.any():
        return array
    return np.where(mask, array.dtype.type(np.nan if array.dtype.kind == "f" else 0), array)
