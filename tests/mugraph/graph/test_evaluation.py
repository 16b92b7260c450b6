"""What a μGraph computes: against its program, and against block after block of arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.rewrites import with_thread_graphs
from relational_tensat.mugraph.programs import program
from tests.mugraph.mugraphs import flash_attention
from tests.mugraph.slow_evaluation import run


def drawn(graph: MuGraph, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        name: random.standard_normal([dim.size for dim in dims])
        for name, dims in graph.inputs.items()
    }


def test_flash_attention_computes_attention() -> None:
    graph = flash_attention()
    values = drawn(graph)
    (expected,) = evaluate(
        program("attention", h=2, q=4, d=4, k=8, e=2), values, Numbers()
    ).values()
    (computed,) = evaluate(graph, values, Numbers()).values()
    np.testing.assert_allclose(computed, expected, rtol=1e-12)


def test_all_blocks_at_once_are_block_after_block() -> None:
    """Also where maps are unusual: two axes split one dim, blocks and iterations are concatenated."""
    unusual = MuGraph(
        "unusual",
        {"X": dims_of("m=8 k=8"), "W": dims_of("k=8 n=4")},
        (
            Kernel(
                "one",
                BlockGraph(
                    (2, 2, 2),
                    2,
                    (
                        InputIterator("X", "x", ("m", "m", "k"), "k"),
                        InputIterator("W", "w", ("", "", "k"), "k"),
                    ),
                    (
                        Operation("matmul", ("x", "w"), "p", {"over": ("k",)}),
                        Accumulate("p", "a"),
                        Accumulate("x", "c", "concat", ("k",)),
                        Operation("exp", ("w",), "v"),
                        Accumulate("v", "d"),
                    ),
                    (
                        Saver("a", "A", dims_of("part=2 m=8 n=4"), ("m", "m", "part")),
                        Saver("c", "C", dims_of("k=8 m=8"), ("m", "m", "k")),
                        Saver("d", "D", dims_of("k=4 n=16"), ("n", "n", "k")),
                    ),
                ),
            ),
        ),
        ("A", "C", "D"),
    )
    for graph in (flash_attention(), unusual):
        values = drawn(graph)
        expected = run(graph, values)
        for name, computed in evaluate(graph, values, Numbers()).items():
            np.testing.assert_allclose(computed, expected[name], rtol=1e-12, err_msg=name)


def test_a_running_maximum_changes_nothing_but_the_sizes() -> None:
    """exp(s - m), rescaled by m, divided by its own sum: large logits stay finite in float16."""
    raw = flash_attention(k=16)
    (kernel,) = raw.kernels
    block = kernel.block
    online = replace(
        block,
        steps=(
            block.steps[0],
            RunningMax("s", "m", ("k",)),
            Operation("sub", ("s", "m"), "z"),
            Operation("exp", ("z",), "p"),
            block.steps[2],
            Accumulate("r", "l", rescale="m"),
            block.steps[4],
            Accumulate("o", "a", rescale="m"),
            block.steps[6],
        ),
    )
    stable = replace(raw, steps=(replace(kernel, block=online),))
    values = drawn(raw)
    (expected,) = evaluate(raw, values, Numbers()).values()
    (computed,) = evaluate(stable, values, Numbers()).values()
    np.testing.assert_allclose(computed, expected, rtol=1e-12)

    large = {
        name: (value * (14.0 if name != "V" else 1.0)).astype(np.float16)
        for name, value in values.items()
    }
    (overflow,) = evaluate(raw, large, Numbers("float16")).values()
    (finite,) = evaluate(stable, large, Numbers("float16")).values()
    assert not np.isfinite(overflow).all()
    assert np.isfinite(finite).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_keep_their_width(dtype: str) -> None:
    graph = flash_attention()
    values = {name: value.astype(dtype) for name, value in drawn(graph).items()}
    (computed,) = evaluate(graph, values, Numbers(dtype)).values()
    assert computed.dtype == dtype


def test_chains_become_thread_graphs_and_compute_the_same() -> None:
    raw = flash_attention()
    (kernel,) = raw.kernels
    flat = [s.steps[0] if isinstance(s, ThreadGraph) else s for s in kernel.block.steps]
    plain = replace(raw, steps=(replace(kernel, block=replace(kernel.block, steps=tuple(flat))),))
    threaded = with_thread_graphs(plain)
    chains = [s for s in threaded.kernels[0].block.steps if isinstance(s, ThreadGraph)]
    assert [[operation.op for operation in chain.steps] for chain in chains] == [["matmul", "exp"]]
    values = drawn(raw)
    (expected,) = evaluate(plain, values, Numbers()).values()
    (computed,) = evaluate(threaded, values, Numbers()).values()
    np.testing.assert_array_equal(computed, expected)


def test_a_number_is_added_within_a_thread_graph() -> None:
    steps = (
        Operation("exp", ("x",), "e"),
        Operation("shift", ("e",), "f", {"value": 1.0}),
        Operation("log", ("f",), "y"),
    )
    savers = (Saver("y", "Y", dims_of("m=4"), ("m",)),)
    block = BlockGraph((2,), 1, (InputIterator("X", "x", ("m",)),), steps, savers)
    graph = MuGraph("softplus", {"X": dims_of("m=4")}, (Kernel("k", block),), ("Y",))
    threaded = with_thread_graphs(graph)
    assert threaded.kernels[0].block.steps == (ThreadGraph(steps, ("y",)),)
    values = drawn(graph)
    np.testing.assert_array_equal(
        evaluate(threaded, values, Numbers())["Y"], evaluate(graph, values, Numbers())["Y"]
    )
