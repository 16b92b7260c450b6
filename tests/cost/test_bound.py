"""Bounds on what nobody has measured: 0 where nothing is known, and below nearly all recorded times."""

from __future__ import annotations

import pytest

from relational_tensat.cost.bound import FEWEST, MARGIN, NEAREST, LeastCosts
from relational_tensat.cost.calibration import base_profile
from relational_tensat.cost.opener import load_table
from relational_tensat.cost.profile import kernel_time_us
from tests.cost.fakes import CPU, Configuration, configuration, products
from tests.graphs import f32

PROFILE = base_profile(CPU)


def work_us(of: Configuration) -> float:
    return kernel_time_us(PROFILE, of.op, of.inputs, of.output, dict(of.attrs))


def test_of_few_times_nothing_is_concluded() -> None:
    least, some = LeastCosts(PROFILE), products(FEWEST + 1)
    for each in some[: FEWEST - 1]:
        least.learn(each, 2 * work_us(each))
    least.learn(some[0], 0.0)  # no kernel ran
    assert least.least_us(some[-1]) == 0.0
    least.learn(some[FEWEST - 1], 2 * work_us(some[FEWEST - 1]))
    assert least.least_us(some[-1]) == pytest.approx(2 * work_us(some[-1]) / MARGIN)
    assert least.least_us(configuration("relu", f32(4))) == 0.0


def test_a_quicker_kernel_lowers_the_bounds() -> None:
    least, some = LeastCosts(PROFILE), products(FEWEST + 2)
    for each in some[:FEWEST]:
        least.learn(each, 2 * work_us(each))
    before_us = least.least_us(some[-1])
    least.learn(some[FEWEST], 0.5 * work_us(some[FEWEST]))
    assert least.least_us(some[-1]) == pytest.approx(before_us / 4)


def test_only_the_nearest_count() -> None:
    least = LeastCosts(PROFILE)
    far = configuration("matmul", f32(512, 512), f32(512, 512))
    least.learn(far, 0.1 * work_us(far))
    near = products(NEAREST + 1)
    for each in near[:NEAREST]:
        least.learn(each, work_us(each))
    assert least.least_us(near[-1]) == pytest.approx(work_us(near[-1]) / MARGIN)
    assert least.least_us(far) == pytest.approx(0.1 * work_us(far) / MARGIN)


def test_recorded_times_are_hardly_ever_quicker() -> None:
    """Every eighth product of this table is left out in turn: its time is above what the others say."""
    times_us = {
        each: time_us
        for each, time_us in load_table("xeon-2.5ghz-avx512").times_us().items()
        if each.op == "matmul"
    }
    quicker = 0
    for left_out, time_us in [*times_us.items()][::8]:
        least = LeastCosts(PROFILE)
        for each, other_us in times_us.items():
            if each != left_out:
                least.learn(each, other_us)
        quicker += least.least_us(left_out) > time_us
    assert (quicker, len(times_us)) == (0, 224)  # of all, one
