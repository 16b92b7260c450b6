"""What accesses cost: conflicts of banks, sectors of device memory."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.mugraph.kernels.access_costs import sectors, wavefronts

LANES = np.arange(32)[None, :]
ALL = np.ones((1, 32), bool)


@pytest.mark.parametrize(
    ("addresses", "width_bytes", "clocks"),
    [
        (LANES * 4, 4, 1),  # a word of each bank
        (LANES * 0, 4, 1),  # one word for all
        (LANES * 128, 4, 32),  # a column of rows of 32 words
        (LANES * 132, 4, 1),  # the same, rows a word longer
        (LANES * 2, 2, 1),
        (LANES * 16, 16, 4),  # 512 bytes
        (LANES % 8 * 128 + LANES // 8 * 16, 16, 32),  # each 8 lanes want the same 4 banks
        (LANES % 8 * 144 + LANES // 8 * 16, 16, 4),
    ],
)  # fmt: skip
def test_a_clock_serves_a_word_of_each_bank(
    addresses: np.ndarray, width_bytes: int, clocks: int
) -> None:
    assert wavefronts(addresses, ALL, width_bytes).tolist() == [clocks]


def test_lanes_that_take_no_part_cost_nothing() -> None:
    first = np.arange(32)[None, :] < 3
    assert wavefronts(LANES * 128, first, 4).tolist() == [3]
    assert wavefronts(LANES * 128, ~ALL, 4).tolist() == [0]
    assert sectors(LANES * 128, first, 4).tolist() == [3]


def test_sectors_are_of_32_bytes() -> None:
    assert sectors(LANES * 2, ALL, 2).tolist() == [2]
    assert sectors(LANES * 16, ALL, 16).tolist() == [16]
    assert sectors(LANES * 64, ALL, 2).tolist() == [32]
    assert sectors(LANES * 0 + 24, ALL, 16).tolist() == [2]
