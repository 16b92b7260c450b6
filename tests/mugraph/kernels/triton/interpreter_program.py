"""As a program, with TRITON_INTERPRET=1: prints the relative error of each small kernel as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from bench.emulation.errors import drawn, exact, norm_error, run_all
from bench.emulation.triton_interpreter import run_interpreted
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.layout_choice import chosen_layouts
from relational_tensat.tensor import Array
from tests.mugraph.kernels.inputs import with_level_keys, with_level_logits
from tests.mugraph.kernels.mugraphs import SMALL, split_attention

SPLIT = split_attention()


def _errors() -> list[tuple[str, str, float]]:
    errors = [
        (dtype, graph.name, _error(graph, drawn(graph, dtype)))
        for dtype in ("float16", "float32")
        for graph in SMALL
    ]
    plain, level = drawn(SPLIT), with_level_logits(SPLIT, drawn(SPLIT), 600)
    split = (plain, level, with_level_keys(plain, 6000))
    errors += [("float16", SPLIT.name, _error(SPLIT, inputs)) for inputs in split]
    return errors


def _error(graph: MuGraph, inputs: dict[str, Array]) -> float:
    dtype = str(next(iter(inputs.values())).dtype)
    chosen = zip(graph.kernels, chosen_layouts(graph, dtype).kernels, strict=True)
    lying = {kernel.name: layouts.device for kernel, layouts in chosen}

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        emitted = emit_triton(kernel, device, dtype, graph.wide, lying[kernel.name])
        with np.errstate(all="ignore"):  # what padding holds
            run_interpreted(emitted, operands, results)

    return norm_error(run_all(graph, inputs, run), exact(graph, inputs))


if __name__ == "__main__":
    print(json.dumps(_errors()))  # noqa: T201
