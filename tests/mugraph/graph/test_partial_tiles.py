"""Tiles whose size does not divide: the last one is smaller, and what is beyond the end does not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
)
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.graph.partial_tiles import tile_size
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.graph.rewrites import with_thread_graphs
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.programs import program
from tests.mugraph.mugraphs import flash_attention
from tests.mugraph.slow_evaluation import run

_OVER_K = {"over": ("k",)}


def test_tiles_are_as_many_as_there_are_parts_or_there_is_no_such_split() -> None:
    for size in range(1, 40):
        for parts in range(1, size + 3):
            starts = range(0, size, max(1, -(-size // parts)))
            tile = tile_size(size, parts)
            assert (tile > 0) == (len(starts) == parts)
            assert not tile or (parts - 1) * tile < size <= parts * tile


def unusual(m: int, k: int, n: int) -> MuGraph:
    """Two axes and the loop split k; what a block adds up has positions of a tile; results are cut."""
    steps: tuple[BlockStep, ...] = (
        Operation("exp", ("x",), "e"),
        Operation("matmul", ("e", "w"), "p", _OVER_K),
        Accumulate("p", "a"),
        Accumulate("e", "c"),  # position by position
        Operation("sum", ("c",), "d", _OVER_K),
    )
    savers = (
        Saver("a", "A", dims_of(f"y=2 z=2 m={m} n={n}"), ("m", "y", "z")),
        Saver("d", "D", dims_of(f"y=2 z=2 m={m}"), ("m", "y", "z")),
    )
    iterators = (
        InputIterator("X", "x", ("m", "k", "k"), "k"),
        InputIterator("W", "w", ("", "k", "k"), "k"),
    )
    inputs = {"X": dims_of(f"m={m} k={k}"), "W": dims_of(f"k={k} n={n}")}
    block = BlockGraph((2, 2, 2), 2, iterators, steps, savers)
    return MuGraph("unusual", inputs, (Kernel("one", block),), ("A", "D"))


def gathered(m: int, k: int) -> MuGraph:
    """Iterations are put one after the other, and cut; rows are a grid's."""
    block = BlockGraph(
        (2,),
        3,
        (InputIterator("X", "x", ("m",), "k"),),
        (
            Operation("exp", ("x",), "e"),
            Accumulate("e", "c", "concat", ("k",)),
            Operation("sum", ("c",), "s", _OVER_K),
            Operation("div", ("c", "s"), "y"),
        ),
        (Saver("y", "Y", dims_of(f"m={m} k={k}"), ("m",)),),
    )
    return MuGraph("gathered", {"X": dims_of(f"m={m} k={k}")}, (Kernel("g", block),), ("Y",))


def graphs() -> Iterator[MuGraph]:
    yield from (flash_attention(q=q, k=k) for q, k in ((3, 7), (5, 11), (4, 13), (2, 4)))
    yield from (unusual(*sizes) for sizes in ((3, 15, 2), (5, 29, 1), (8, 31, 3), (2, 8, 4)))
    yield from (gathered(*sizes) for sizes in ((3, 7), (5, 8), (2, 11)))


def drawn(graph: MuGraph) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        name: random.standard_normal([d.size for d in dims]) for name, dims in graph.inputs.items()
    }


def test_all_blocks_at_once_are_block_after_block_of_what_exists() -> None:
    for graph in graphs():
        values = drawn(graph)
        for name, result in run(graph, values).items():
            for one in (graph, with_thread_graphs(graph)):
                np.testing.assert_allclose(
                    evaluate(one, values, Numbers())[name], result, rtol=1e-12
                )


def test_what_is_beyond_the_end_counts_nowhere() -> None:
    """Sums, quotients and the online maximum of attention, where sizes are primes."""
    for q, k in ((3, 7), (5, 13), (7, 17)):
        graph, original = flash_attention(q=q, k=k), program("attention", h=2, q=q, d=4, k=k, e=2)
        for arithmetic, values in (
            (Numbers(), drawn(graph)),
            (
                Residues(3),
                {
                    name: Residues(3).draw([d.size for d in dims], place)
                    for place, (name, dims) in enumerate(graph.inputs.items())
                },
            ),
        ):
            (expected,) = evaluate(original, values, arithmetic).values()
            (computed,) = evaluate(graph, values, arithmetic).values()
            np.testing.assert_allclose(computed, expected, rtol=1e-12)


def test_root_mean_squares_count_the_elements_that_there_are() -> None:
    inputs = {"X": dims_of("m=3 k=11")}
    steps = (Accumulate("x", "y", "rms", ("k",), epsilon=1e-3),)
    savers = (Saver("y", "Y", dims_of("m=3"), ("m",)),)
    block = BlockGraph((2,), 4, (InputIterator("X", "x", ("m",), "k"),), steps, savers)
    graph = MuGraph("rms", inputs, (Kernel("rms", block),), ("Y",))
    values = drawn(graph)
    expected = np.sqrt((values["X"] ** 2).mean(1) + 1e-3)
    np.testing.assert_allclose(evaluate(graph, values, Numbers())["Y"], expected, rtol=1e-12)


def test_text_says_how_large_the_last_tile_is_and_json_keeps_it() -> None:
    graph = flash_attention(q=3, k=7)
    text = mugraph_text(graph)
    assert "k[h=1 d=4 k≤2] = load K {x→h y→φ loop→k}" in text
    assert "last of 4 tiles of k=7: k=1" in text and "last of 2 tiles of q=3: q=1" in text
    assert decoded(json.loads(json.dumps(encoded(graph))), "file") == graph


def _block(
    *steps: BlockStep, tensors: str = "X", grid: tuple[int, ...] = (), maps: tuple[str, ...] = ()
) -> Kernel:
    iterators = tuple(InputIterator(name, name.lower(), maps, "k") for name in tensors)
    return Kernel("k", BlockGraph(grid, 3, iterators, steps, ()))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (
            _block(Operation("rename", ("x",), "y", {"variable": "k", "into": "j"})),
            "no rename of k",
        ),
        (_block(Operation("rms", ("x",), "y", {**_OVER_K, "epsilon": 0.0})), "no rms of k"),
        (_block(RunningMax("x", "y", ("m",))), "no max of x, as the last tile of k is smaller"),
        (_block(Accumulate("x", "y", "max")), "no max of x, as the last tile of k is smaller"),
        (
            _block(Accumulate("x", "y", "rms", ("m",))),
            "no rms of x, as the last tile of k is smaller",
        ),
        (
            _block(Accumulate("x", "y", "concat", ("k",)), grid=(2,), maps=("k",)),
            "no concat of x, as the last tile of k is smaller",
        ),
        (
            _block(
                Operation("sum", ("x",), "s", _OVER_K),
                Operation("repeat", ("s",), "y", {"variable": "k", "size": 4}),
            ),
            "y has all of k, of which others are tiles",
        ),
        (_block(grid=(4,), maps=("k",)), "of 12 parts of k=11 some have no element"),
    ],
)
def test_what_has_no_meaning_in_a_smaller_tile_is_refused(kernel: Kernel, reason: str) -> None:
    graph = MuGraph("wrong", {"X": dims_of("m=4 k=11")}, (kernel,), ())
    with pytest.raises(InputError, match=reason):
        kernel_tensors(graph)
    divided = MuGraph("right", {"X": dims_of("m=4 k=12")}, (kernel,), ())
    kernel_tensors(divided)


def test_a_result_is_put_together_as_it_was_split() -> None:
    iterators = (InputIterator("X", "x", ("k", "m")),)
    for omap, dims in ((("m", "k"), "k=7 m=8"), (("k", "m"), "k=8 m=8")):
        block = BlockGraph((2, 2), 1, iterators, (), (Saver("x", "Y", dims_of(dims), omap),))
        graph = MuGraph("turned", {"X": dims_of("k=7 m=8")}, (Kernel("k", block),), ("Y",))
        with pytest.raises(InputError, match=r"k is smaller, and other axes|but blocks"):
            kernel_tensors(graph)
