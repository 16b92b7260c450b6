"""Registers that products need, as the sizes and as emitted CUDA have them; memory of a device."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import ready
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.statements import Multiply
from relational_tensat.mugraph.sizes.cost_model import graph_us, kernel_registers
from relational_tensat.mugraph.sizes.waves import a100, device_bytes
from tests.mugraph.kernels.mugraphs import SMALL, attention
from tests.mugraph.mugraphs import flash_attention


def counted(graph: MuGraph) -> int:
    """Return the registers of a thread, tile by tile: 4 warps take turns at strips of 16 rows."""
    (kernel,) = graph.kernels
    program = lower(kernel, kernel_tensors(graph))
    total = 0
    for statements in program.statements.values():
        for product in (s for s in statements if isinstance(s, Multiply)):
            frame = program.stored[product.output].frame
            assert frame is not None
            matrices, rows, columns = frame.sizes
            strips = math.ceil(rows / 16)
            teams = {1: 1, 2: 2, 3: 3}.get(strips, 4)
            share = {1: 4, 2: 2}.get(strips, 1)  # warps of a team
            own = max(len(range(team, strips, teams)) for team in range(teams))
            total += matrices * own * len(range(0, math.ceil(columns / 8), share)) * 4
    return total


def test_registers_are_those_of_the_products_that_a_kernel_has() -> None:
    graphs = (
        *SMALL,
        attention(1, 71, 64, 256, 64, (1, 1), 1),
        attention(4, 40, 8, 64, 8, (1, 1), 2),
    )
    for graph in graphs:
        (kernel,) = graph.kernels
        assert kernel_registers(kernel, kernel_tensors(graph)) == counted(graph), graph.name


def test_a_block_whose_products_do_not_fit_registers_is_refused() -> None:
    """Of 71 queries and 256 keys at a time, a thread would have 256 logits and 64 sums."""
    large, small = (attention(1, 71, 64, 512, 64, (1, 1), loop) for loop in (2, 8))
    assert counted(large) == 256 + 64
    assert math.isinf(graph_us(large, a100()))
    assert counted(small) == 64 + 64
    assert math.isfinite(graph_us(small, a100()))


def test_what_does_not_fit_the_device_is_refused() -> None:
    graph, device = flash_attention(h=2, q=16, d=16, k=64, e=16), a100()
    in_all = 2 * (16 * 16 + 16 * 64 + 64 * 16 + 16 * 16) * 2  # Q, K, V and the result, of two bytes
    assert device_bytes(graph, device.element_bytes) == in_all
    for memory_bytes, fits in ((0, True), (in_all, True), (in_all - 1, False)):
        small = replace(device, profile=replace(device.profile, memory_bytes=memory_bytes))
        if fits:
            ready(graph, small)
            continue
        with pytest.raises(VerificationError, match="do not fit a100's memory"):
            ready(graph, small)
