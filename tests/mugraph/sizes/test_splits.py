"""Sizes: what fits shared memory, and what the model of waves likes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relational_tensat.mugraph.graph.mugraph import Accumulate
from relational_tensat.mugraph.graph.partial_tiles import tile_size
from relational_tensat.mugraph.graph.validity import block_tensors
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.routes import Route
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes import splits
from relational_tensat.mugraph.sizes.splits import (
    SHORTEST_TILE,
    Sized,
    more_parts_of,
    sized,
)
from relational_tensat.mugraph.sizes.waves import Floats, Sizes, a100, emitted_bytes
from tests.mugraph.searches import searched


def routes() -> tuple[Route, ...]:
    return searched("attention", 2).routes


def flash_attention(k: int, q: int = 256) -> Sized:
    """Return it at the best sizes."""
    flash = [kernel for kernel in routes()[0].alternatives[0] if kernel.grid == ("h", "q")]
    kernels = tuple(kernel for kernel in flash if kernel.loop == "k")
    (made,) = sized(Route(program("attention", q=q, k=k), (kernels,), routes()[0].outputs))
    return made


def test_flash_attention_is_as_fast_as_the_model_of_waves_says() -> None:
    """Two heads of 256 rows make 64 blocks of 8, of which tensor cores do 16: 26.3 µs."""
    assert flash_attention(4096).graph.kernels[0].block.grid == (2, 32)
    assert round(flash_attention(4096).cost_us, 1) == 26.3


def test_twice_the_keys_take_nearly_twice_as_long() -> None:
    launch_us = 4.0
    one, two = flash_attention(4096).cost_us - launch_us, flash_attention(8192).cost_us - launch_us
    assert 1.9 < two / one < 2.1


def test_waves_prefer_flash_decoding_where_blocks_are_few() -> None:
    """Figure 8: keys are split among blocks, too; the second kernel adds up what they have."""
    best = min((made for route in routes() for made in sized(route)), key=lambda made: made.cost_us)
    assert [saver.output for saver in best.graph.kernels[0].block.savers] == ["part5", "part6"]
    assert round(best.cost_us, 1) == 14.0  # sums of parts are float32
    blocks = [math.prod(kernel.block.grid) for kernel in best.graph.kernels]
    assert blocks[0] > 108  # multiprocessors


def test_what_is_chosen_fits_as_it_is_emitted() -> None:
    """A row of 4 elements has 16 bytes of padding in shared memory, and what is reduced is float32."""
    for name in ("gated_mlp", "rmsnorm_linear"):
        for made in sorted(
            (made for route in searched(name).routes for made in sized(route)),
            key=lambda made: made.cost_us,
        )[:2]:
            assert 0 < emitted_bytes(made.graph, "float16") <= a100().shared_bytes


def test_sizes_without_powers_of_two_are_split_by_other_divisors() -> None:
    """4095 keys: 45 iterations of 91, say."""
    best = flash_attention(4095)
    (kernel,) = best.graph.kernels
    assert kernel.block.loop > 1 and 4095 % kernel.block.loop == 0
    assert best.cost_us < 1.1 * flash_attention(4096).cost_us


def test_what_nothing_divides_has_a_smaller_last_tile() -> None:
    """257 and 4,099 are primes; they cost little more than 256 and 4,096."""
    for size, beside in ((257, 256), (4099, 4096)):
        best = flash_attention(size)
        (kernel,) = best.graph.kernels
        partial = block_tensors(kernel, best.graph.inputs).partial
        assert kernel.block.loop > 1 and set(partial) == {"k"}
        assert partial["k"].count * partial["k"].tile < 1.15 * size
        assert (
            flash_attention(beside).cost_us < best.cost_us < 1.15 * flash_attention(beside).cost_us
        )


def test_smaller_last_tiles_are_chosen_only_where_they_are_cheaper() -> None:
    """Of what divides, all splits by powers of two are as they were, and equal costs are no reason."""
    assert not more_parts_of(4096) and not more_parts_of(96)
    for size in (48, 257, 1000, 4095, 4097):
        for parts in more_parts_of(size):
            assert size % parts and tile_size(size, parts) >= SHORTEST_TILE // 2


def test_of_equal_costs_that_without_a_smaller_last_tile_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def costs(_: object, __: object, sizes: Sizes, *others: object) -> tuple[Floats, Floats]:
        """Three parts of 20 keys are as cheap as two of them with queries in shorter tiles."""
        smaller = (sizes.loop == 3) & (sizes.tile["q"] == 10)
        cost = np.where(smaller | (sizes.loop == 2) & (sizes.tile["q"] == 5), 1.0, 2.0)
        return cost, cost

    monkeypatch.setattr(splits, "kernel_times", costs)
    (kernel,) = flash_attention(20, q=20).graph.kernels
    assert (kernel.block.grid, kernel.block.loop) == ((2, 4), 2)


def test_keys_are_not_gathered_in_a_block_where_each_iteration_can_be_done_with_its_own() -> None:
    """QKNorm in one kernel: whole rows of exponentials and normalized values would not fit."""
    options = SearchOptions(max_operators=11, max_kernels=1)
    (route,) = search_kernels(program("qknorm"), options).routes
    (best, *_) = sized(route)
    (kernel,) = best.graph.kernels
    kinds = [step.kind for step in kernel.block.steps if isinstance(step, Accumulate)]
    assert kinds == ["sum", "sum"] and len(kernel.block.steps) == 11
    assert math.isfinite(best.cost_us)
