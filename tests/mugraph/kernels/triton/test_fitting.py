"""Longer loops of Triton's kernels compute the same, and are refused where they would not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.emulation.comparing import drawn, exact
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    Iterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.kernels.triton import fitting
from relational_tensat.mugraph.kernels.triton.padding import multiplied
from tests.mugraph.kernels.mugraphs import (
    SMALL,
    attention,
    gated_mlp,
    rmsnorm_linear,
    split_attention,
)


@pytest.mark.parametrize("graph", [*SMALL, split_attention()], ids=lambda graph: graph.name)
def test_a_longer_loop_computes_the_same(graph: MuGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_MOST_ELEMENTS", 1)
    monkeypatch.setattr(fitting, "_SHORTEST", 1)
    device = kernel_tensors(graph)
    steps = tuple(
        fitting.fitted(step, device) if isinstance(step, Kernel) else step for step in graph.steps
    )
    inputs = drawn(graph)
    want, actual = exact(graph, inputs), exact(replace(graph, steps=steps), inputs)
    assert np.allclose(actual, want, rtol=1e-12, atol=1e-12)


def test_loops_are_as_long_as_tiles_of_4_warps_need() -> None:
    graph = attention(1, 32, 128, 4096, 128, (1, 1), 16)
    fitted = fitting.fitted(graph.kernels[0], graph.inputs)
    assert (fitted.block.loop, fitting.warps_of(fitted, graph.inputs)) == (64, 4)
    small = attention()
    assert fitting.fitted(small.kernels[0], small.inputs) == small.kernels[0]


def test_which_loops_may_be_longer() -> None:
    assert fitting.divisible_loop(attention().kernels[0]) == "k"
    assert fitting.divisible_loop(gated_mlp().kernels[0]) == "k"
    assert fitting.divisible_loop(rmsnorm_linear().kernels[0]) == ""  # no root of a mean is a sum


@pytest.mark.parametrize(
    "steps",
    [
        (Accumulate("x", "y"),),  # tiles added to each other
        (Operation("sum", ("x",), "s", {"over": ("k",)}), Operation("square", ("s",), "t"),
         Accumulate("t", "y")),
        (Operation("max", ("x",), "s", {"over": ("k",)}), Accumulate("s", "y")),
        (Operation("sum", ("x",), "s", {"over": ("k",)}), Accumulate("s", "y", "max")),
    ],
)  # fmt: skip
def test_what_depends_on_tiles_keeps_its_loop(
    steps: tuple[Operation | Accumulate, ...],
) -> None:
    saver = Saver("y", "Y", dims_of("m=4"), ())
    block = BlockGraph((), 2, (Iterator("X", "x", (), "k"),), steps, (saver,))
    assert fitting.divisible_loop(Kernel("kernel", block)) == ""


def test_variables_of_batches_alone_need_no_padding() -> None:
    dims = {"a": dims_of("h=2 q=4 d=8"), "b": dims_of("h=2 d=8 k=4")}
    product = Operation("matmul", ("a", "b"), "c", {"over": ("d",)})
    assert multiplied([product], dims) == {"q", "d", "k"}
    renamed = Operation("rename", ("c",), "e", {"variable": "h", "into": "g"})
    assert multiplied([product, renamed], dims) == {"h", "q", "d", "k"}
