"""Sizes: what fits shared memory, and what the model of waves likes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.found import FoundGraph
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.sizing.choosing_sizes import Sized, sized


@cache
def flash_attention() -> FoundGraph:
    searched = search_kernels(program("attention"))
    (found,) = (
        f for f in searched.found if (f.kernels[0].grid, f.kernels[0].loop) == (("h", "q"), "k")
    )
    return found


def best(k: int) -> Sized:
    made = sized(replace(flash_attention(), program=program("attention", k=k)))
    assert made is not None
    return made


def test_flash_attention_fills_the_device_without_waves_to_spare() -> None:
    """Of 512 rows, so that tiles of 16 give 32 blocks: the model of the prototype has 26.3 µs, too."""
    (kernel,) = best(4096).graph.kernels
    assert kernel.block.grid == (2, 32)
    assert round(best(4096).cost_us, 1) == 26.3


def test_twice_the_keys_take_nearly_twice_as_long() -> None:
    launch_us = 4.0
    assert 1.9 < (best(8192).cost_us - launch_us) / (best(4096).cost_us - launch_us) < 2.1
