"""Longer loops of Triton's kernels compute the same, and are refused where they would not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.emulation.errors import drawn, exact
from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels import triton_tensors
from relational_tensat.mugraph.kernels.loop_rewrites import divisible_loop, multiplied, with_loop
from relational_tensat.mugraph.kernels.triton_tensors import (
    check_tiles,
    operand_bytes,
    stages_of,
)
from tests.mugraph.kernels.mugraphs import (
    SMALL,
    attention,
    gated_mlp,
    rmsnorm_linear,
    split_attention,
)


@pytest.mark.parametrize("graph", [*SMALL, split_attention()], ids=lambda graph: graph.name)
def test_a_longer_loop_computes_the_same(graph: MuGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_tensors, "_MOST_ELEMENTS", 1)
    monkeypatch.setattr(triton_tensors, "_SHORTEST", 1)
    device = kernel_tensors(graph)
    steps = tuple(
        triton_tensors.fitted(step, device) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    inputs = drawn(graph)
    want, actual = exact(graph, inputs), exact(replace(graph, steps=steps), inputs)
    assert np.allclose(actual, want, rtol=1e-12, atol=1e-12)


def test_loops_are_as_long_as_tiles_of_4_warps_need() -> None:
    graph = attention(1, 32, 128, 4096, 128, (1, 1), 16)
    fitted = triton_tensors.fitted(graph.kernels[0], graph.inputs)
    assert (fitted.block.loop, triton_tensors.warps_of(fitted, graph.inputs)) == (64, 4)
    small = attention()
    assert triton_tensors.fitted(small.kernels[0], small.inputs) == small.kernels[0]


def test_which_loops_may_be_longer() -> None:
    assert divisible_loop(attention().kernels[0]) == "k"
    assert divisible_loop(gated_mlp().kernels[0]) == "k"
    assert divisible_loop(rmsnorm_linear().kernels[0]) == "k"


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
    block = BlockGraph((), 2, (InputIterator("X", "x", (), "k"),), steps, (saver,))
    assert divisible_loop(Kernel("kernel", block)) == ""


def test_variables_of_batches_alone_need_no_padding() -> None:
    dims = {"a": dims_of("h=2 q=4 d=8"), "b": dims_of("h=2 d=8 k=4")}
    product = Operation("matmul", ("a", "b"), "c", {"over": ("d",)})
    assert multiplied([product], dims) == {"q", "d", "k"}
    renamed = Operation("rename", ("c",), "e", {"variable": "h", "into": "g"})
    assert multiplied([product, renamed], dims) == {"h", "q", "d", "k"}


def looped(graph: MuGraph) -> MuGraph:
    """Return a μGraph of one kernel with a loop where it had none."""
    begun = with_loop(graph.kernels[0], kernel_tensors(graph))
    assert begun is not None
    return replace(graph, steps=(begun,))


def without_a_loop(*inner: Operation, outputs: tuple[str, ...] = ("y",)) -> MuGraph:
    """Return a kernel of two blocks that multiplies X by W and does that; its loop is of one iteration."""
    iterators = (InputIterator("X", "x", ("",)), InputIterator("W", "w", ("n",)))
    savers = tuple(Saver(name, name, dims_of("m=16 n=32"), ("n",)) for name in outputs)
    block = BlockGraph((2,), 1, iterators, inner, savers)
    inputs = {"X": dims_of("m=16 k=64"), "W": dims_of("k=64 n=32")}
    return MuGraph("norm", inputs, (Kernel("norm", block),), outputs)


NORM = Operation("rms", ("x",), "norm", {"over": ("k",), "epsilon": 1e-5})
PRODUCT = Operation("matmul", ("x", "w"), "o", {"over": ("k",)})
DIVISION = Operation("div", ("o", "norm"), "y")


@pytest.mark.parametrize(
    "steps",
    [
        (NORM, PRODUCT, DIVISION),
        (NORM, ThreadGraph((PRODUCT, DIVISION), ("y",))),
        (Operation("square", ("x",), "x2"), replace(PRODUCT, operands=("x2", "w"), output="y")),
    ],
    ids=["steps", "thread graph", "function before"],
)
def test_a_begun_loop_computes_the_same(steps: tuple[Operation, ...]) -> None:
    graph = without_a_loop(*steps)
    begun = looped(graph)
    assert begun.kernels[0].block.loop == 2
    longer = divisible_loop(begun.kernels[0])
    assert longer == "k"
    inputs = drawn(graph)
    assert np.allclose(exact(begun, inputs), exact(graph, inputs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "steps",
    [
        (NORM, Operation("div", ("x", "norm"), "u"),  # what is divided is read again
         replace(PRODUCT, operands=("u", "w"), output="y")),
        (Operation("max", ("x",), "top", {"over": ("k",)}), PRODUCT, Operation("sub", ("o", "top"), "y")),
    ],
    ids=["norm first", "maximum"],
)  # fmt: skip
def test_no_loop_begins_where_parts_give_no_such_sum(steps: tuple[Operation, ...]) -> None:
    graph = without_a_loop(*steps)
    assert with_loop(graph.kernels[0], graph.inputs) is None


def test_a_loop_begins_where_operands_do_not_fit() -> None:
    """4,096 elements of 16 rows and 16 columns: 256 KiB without a loop."""
    block = without_a_loop(NORM, PRODUCT, DIVISION).kernels[0].block
    savers = (Saver("y", "y", dims_of("m=16 n=6144"), ("n",)),)
    kernel = Kernel("norm", replace(block, grid=(384,), savers=savers))
    device = {"X": dims_of("m=16 k=4096"), "W": dims_of("k=4096 n=6144")}
    assert operand_bytes(kernel, device) == 2 * 2 * 16 * 4096
    fitted = triton_tensors.fitted(kernel, device)
    assert fitted.block.loop == 8
    assert operand_bytes(fitted, device) == 2 * 2 * 2 * 16 * 512
    check_tiles(fitted, device, "float16", ())
    with pytest.raises(InputError, match="some 262,144 bytes of shared memory"):
        check_tiles(kernel, device, "float16", ())


def test_stages_are_as_many_as_fit() -> None:
    """Of A and B 64 KiB each: two stages' tiles do not fit; of 256 KiB, not one's."""
    for loop, stages in ((32, 3), (8, 2), (2, 1)):
        graph = gated_mlp(8, 4096, 4096, 64, loop)
        assert stages_of(graph.kernels[0], graph.inputs, "float16", ()) == stages
