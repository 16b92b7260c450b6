"""As a program, with TRITON_INTERPRET=1: prints errors of kernels whose last tile is smaller, as JSON.

First each kernel's, then those of one without each of its masks: infinite where it reads or writes outside
of its tensors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np

from bench.emulation.errors import drawn, exact, norm_error
from bench.emulation.triton_interpreter import run_interpreted
from relational_tensat.mugraph.graph.dims import Dim
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.triton_tensors import Axes
from relational_tensat.tensor import Array
from tests.mugraph.kernels.inputs import with_level_logits
from tests.mugraph.kernels.mugraphs import attention
from tests.mugraph.kernels.partial import PARTIAL


def _error(graph: MuGraph, inputs: dict[str, Array]) -> float:
    (kernel,) = graph.kernels
    dtype = str(next(iter(inputs.values())).dtype)
    result = np.full([d.size for d in kernel.block.savers[0].dims], np.nan, dtype)
    emitted = emit_triton(kernel, graph.inputs, dtype)
    try:
        with np.errstate(all="ignore"):  # what padding holds
            run_interpreted(emitted, [inputs[name] for name in kernel.operands], [result])
    except IndexError:
        return math.inf
    return norm_error(result, exact(graph, inputs))


def _low(graph: MuGraph, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return inputs whose logits are about -80: a key that is not there, of logit 0, would be all."""
    level = with_level_logits(graph, inputs, 80)
    return {**level, "Q": -level["Q"]}


def _errors() -> list[tuple[str, str, float]]:
    found = []
    for graph in PARTIAL[1:]:
        given = [(dtype, drawn(graph, dtype)) for dtype in ("float16", "float32")]
        if graph.name == "attention":
            given.append(("float16", _low(graph, drawn(graph))))
        found += [(dtype, graph.kernels[0].name, _error(graph, inputs)) for dtype, inputs in given]
    return found


def _errors_without_masks() -> list[float]:
    """Return the error without each mask of a last tile, one after the other."""
    graph = attention(q=31, k=61)
    inputs, plain = _low(graph, drawn(graph)), Axes.mask
    count, place = 0, 0

    def left_out(self: Axes, axes: Sequence[Dim], only: Sequence[str] = ()) -> str:
        nonlocal count
        mask = plain(self, axes, only)
        if "end_" not in mask:
            return mask
        count += 1
        return re.sub(r"end_\w+", "1000", mask) if count == place else mask

    errors, masks = [], 1
    Axes.mask = left_out  # type: ignore[method-assign]
    while place <= masks:
        count = 0
        errors.append(_error(graph, inputs))
        masks, place = count, place + 1
    return errors


if __name__ == "__main__":
    print(json.dumps((_errors(), _errors_without_masks())))  # noqa: T201
