"""What is estimated from measured times is in the same units as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.cost import Configuration
from relational_tensat.cost.calibration import (
    MOST,
    base_profile,
    calibrate,
    profile_us,
)
from relational_tensat.tensor.operators import Family, get_operator, operators
from tests.cost.fakes import CPU, configuration
from tests.graphs import f32

PROFILE = replace(base_profile(CPU), elements_per_s={})
SIZES = (4, 16, 48, 128, 300, 512)
#: Times as long as the profile says.
RATIOS = {"matmul": 3.0, "transpose": 0.5}


def kernels() -> list[Configuration]:
    """Return products and transposes of all sizes."""
    products = [configuration("matmul", f32(m, 64), f32(64, n)) for m in SIZES for n in SIZES]
    copies = [configuration("transpose", f32(m, n), perm=(1, 0)) for m in SIZES for n in SIZES]
    return [*products, *copies]


def table(noise: float = 0.0, seed: int = 0) -> dict[Configuration, float]:
    """Return times of products and transposes, each with a ratio of its own."""
    rng = np.random.default_rng(seed)
    return {
        each: profile_us(PROFILE, each) * RATIOS[each.op] * (1 + noise * rng.uniform(-1, 1))
        for each in kernels()
    }


def test_each_operator_is_off_as_its_own_times_are() -> None:
    calibration = calibrate(PROFILE, table())
    for unseen in (
        configuration("matmul", f32(77, 200), f32(200, 33)),
        configuration("transpose", f32(33, 77), perm=(1, 0)),
    ):
        expected = profile_us(PROFILE, unseen) * RATIOS[unseen.op]
        assert calibration.cost_us(unseen) == pytest.approx(expected, rel=0.1)
    assert calibration.median_error == pytest.approx(0.0, abs=0.05)
    assert list(calibration.families) == ["copy", "matrix product"]
    assert calibration.families["copy"].ratio == pytest.approx(0.5)


def test_kernels_of_about_the_size_decide() -> None:
    """Small products take five times as long as their arithmetic says, large ones as long."""
    times = {}
    for each in kernels()[: len(SIZES) ** 2]:
        price_us = profile_us(PROFILE, each)
        times[each] = price_us * (5.0 if price_us < 1.0 else 1.0)
    calibration = calibrate(PROFILE, times)
    small = configuration("matmul", f32(5, 64), f32(64, 5))
    large = configuration("matmul", f32(400, 64), f32(64, 400))
    assert calibration.cost_us(small) == pytest.approx(5 * profile_us(PROFILE, small), rel=0.3)
    assert calibration.cost_us(large) == pytest.approx(profile_us(PROFILE, large), rel=0.3)


@pytest.mark.parametrize("count", [12, 24, 48])
def test_what_is_not_measured_is_no_cheaper_as_a_rule(count: int) -> None:
    """Whichever are measured: beside measured times, a kind that is cheaper as a rule would be chosen for
    that. Products take 2 µs more than their arithmetic, copies less than the profile says."""
    times = {
        each: us * 0.7 if each.op == "transpose" else us * 1.1 + 2.0
        for each, us in ((each, profile_us(PROFILE, each)) for each in kernels())
    }
    names, off = [*times], []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(names)).tolist()
        calibration = calibrate(PROFILE, {names[n]: times[names[n]] for n in order[:count]})
        others = [names[n] for n in order[count:]]
        estimated_us = sum(calibration.cost_us(each) for each in others)
        off.append(estimated_us / sum(times[each] for each in others) - 1)
    assert abs(float(np.mean(off))) < 0.1


def test_a_few_wild_times_do_not_decide() -> None:
    times = table(noise=0.02)
    for wild in list(times)[::9]:
        times[wild] *= 1e6
    calibration = calibrate(PROFILE, times)
    unseen = configuration("transpose", f32(33, 77), perm=(1, 0))
    ratio = calibration.cost_us(unseen) / (profile_us(PROFILE, unseen) * RATIOS["transpose"])
    assert 0.9 < ratio < np.exp(MOST / 3)


def test_the_error_that_is_stated_is_that_of_times_not_seen() -> None:
    calibration = calibrate(PROFILE, table(noise=0.2))
    # estimates are right, so what is off is the noise: |u| / (1 + u), u uniform in -0.2..0.2
    assert calibration.median_error == pytest.approx(0.1, abs=0.04)
    assert calibration.families["copy"].p90_error == pytest.approx(0.2, abs=0.1)
    assert f"{calibration.times} measured times" in calibration.describe()


def test_what_has_no_times_is_off_as_its_family_then_as_all() -> None:
    calibration = calibrate(PROFILE, table())
    copy = configuration("concat", f32(64, 64), f32(64, 64), axis=0)
    assert get_operator("concat").family == "copy"
    assert calibration.cost_us(copy) == pytest.approx(profile_us(PROFILE, copy) * 0.5, rel=0.2)
    relu = configuration("relu", f32(64, 64))
    over_all = np.exp(np.median(np.log([RATIOS[each.op] for each in kernels()])))
    assert calibration.cost_us(relu) == pytest.approx(profile_us(PROFILE, relu) * over_all)


def test_somebody_may_know_more_of_a_price() -> None:
    """Of a kernel that takes twice as long there: its time says nothing about its operator's others."""
    slow = configuration("matmul", f32(16, 64), f32(64, 16))
    times = {each: profile_us(PROFILE, each) for each in kernels()}
    times[slow] *= 2

    def prices(profile: object, each: Configuration) -> float:
        return profile_us(PROFILE, each) * (2 if each == slow else 1)

    calibration = calibrate(PROFILE, times, prices)
    for each in kernels():
        assert calibration.cost_us(each) == pytest.approx(times[each])


def test_too_few_times_leave_the_profile_as_it_is() -> None:
    relu = configuration("relu", f32(64, 64))
    calibration = calibrate(PROFILE, {relu: 99.0})
    assert calibration.cost_us(relu) == profile_us(PROFILE, relu)
    assert calibration.median_error is None and "as it is" in calibration.describe()


def test_what_runs_no_kernel_stays_free_unless_times_say_otherwise() -> None:
    view = configuration("reshape", f32(4), shape=(2, 2))
    assert calibrate(PROFILE, table()).cost_us(view) == 0.0
    timed = {
        configuration("reshape", f32(4, n), shape=(4 * n,)): us
        for n, us in zip((2, 3, 5), (0.9, 1.0, 8.0), strict=True)
    }
    assert calibrate(PROFILE, {**table(), **timed}).cost_us(view) == 1.0


def test_times_of_0_say_nothing_about_kernels() -> None:
    some = table()
    zero = configuration("transpose", f32(1, 7), perm=(1, 0))
    assert calibrate(PROFILE, {**some, zero: 0.0}) == calibrate(PROFILE, some)


def test_every_operator_is_of_one_family() -> None:
    families = {name: operator.family for name, operator in operators().items()}
    assert families["gelu"] is families["add"] is Family.ELEMENT_WISE
    assert families["conv"] is Family.CONVOLUTION and families["opaque"] is Family.UNKNOWN
    assert set(families.values()) == set(Family)
    for name, operator in operators().items():
        assert (operator.family == "copy") == (operator.kernel == "copy"), name


def test_the_profile_is_the_devices() -> None:
    assert base_profile(CPU).name == "cpu"
    for name, profile in (
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("GB300", "h200"),
    ):
        assert base_profile(replace(CPU, kind="cuda", name=name)).name == profile
