"""The fit of an analytic profile to measured times finds the factors that made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from relational_tensat.cost import Configuration, load_profile
from relational_tensat.cost.calibration import base_profile, calibrate
from relational_tensat.cost.fitting import Factors, fit
from relational_tensat.cost.roofline import kernel_time_us, roofline_us
from relational_tensat.tensor.operators import Family, operators
from tests.cost.fakes import CPU, configuration
from tests.graphs import f32

PROFILE = replace(load_profile("cpu"), elements_per_s={})
PRODUCTS = Factors(3.0, 2.5, 1.25)
COPIES = Factors(0.5, 1.0, 4.0)
SIZES = (4, 16, 48, 128, 300, 512)


def sides(configuration: Configuration) -> tuple[float, float]:
    return roofline_us(
        PROFILE,
        configuration.op,
        configuration.inputs,
        configuration.output,
        dict(configuration.attrs),
    )


def table(noise: float = 0.0, seed: int = 0) -> dict[Configuration, float]:
    """Return times of products and transposes, each family by factors of its own."""
    rng = np.random.default_rng(seed)
    times = {}
    for m in SIZES:
        for n in SIZES:
            product = configuration("matmul", f32(m, 64), f32(64, n))
            copy = configuration("transpose", f32(m, n), perm=(1, 0))
            for subject, factors in ((product, PRODUCTS), (copy, COPIES)):
                times[subject] = factors.time_us(*sides(subject)) * (1 + noise * rng.uniform(-1, 1))
    return times


def test_the_factors_that_made_a_table_are_found() -> None:
    calibration = calibrate(PROFILE, table())
    products = calibration.families["matrix product"]
    assert products.own
    assert products.factors.launch_us == pytest.approx(PRODUCTS.launch_us, rel=1e-3)
    assert products.factors.compute == pytest.approx(PRODUCTS.compute, rel=1e-3)
    copies = calibration.families["copy"].factors
    assert copies.launch_us == pytest.approx(COPIES.launch_us, rel=1e-3)
    assert copies.memory == pytest.approx(COPIES.memory, rel=1e-3)
    assert calibration.median_error == pytest.approx(0.0, abs=1e-6)
    unseen = configuration("matmul", f32(77, 200), f32(200, 33))
    assert calibration.cost_us(unseen) == pytest.approx(PRODUCTS.time_us(*sides(unseen)), rel=1e-3)


def test_a_few_wild_times_do_not_decide() -> None:
    times = table(noise=0.02)
    for wild in list(times)[::9]:
        times[wild] *= 10
    factors = calibrate(PROFILE, times).families["copy"].factors
    assert factors.memory == pytest.approx(COPIES.memory, rel=0.1)
    assert factors.launch_us == pytest.approx(COPIES.launch_us, rel=0.1)


def test_the_error_that_is_stated_is_that_of_times_not_seen() -> None:
    calibration = calibrate(PROFILE, table(noise=0.2))
    # estimates are right, so what is off is the noise: |u| / (1 + u), u uniform in -0.2..0.2
    assert calibration.median_error == pytest.approx(0.1, abs=0.03)
    assert calibration.families["copy"].p90_error == pytest.approx(0.2, abs=0.05)
    assert f"{calibration.times} measured times" in calibration.describe()


def test_few_times_of_a_family_take_the_fit_over_all() -> None:
    times = {
        configuration: time
        for configuration, time in table().items()
        if configuration.op == "transpose"
    }
    relu = configuration("relu", f32(64, 64))
    times[relu] = COPIES.time_us(*sides(relu))
    calibration = calibrate(PROFILE, times)
    assert not calibration.families["element-wise"].own
    assert calibration.families["element-wise"].factors == calibration.everything
    assert calibration.cost_us(relu) == pytest.approx(times[relu], rel=0.01)
    conv = configuration("conv", f32(1, 3, 8, 8), f32(4, 3, 3, 3), stride=(1, 1), pad="same")
    assert calibration.cost_us(conv) == calibration.everything.time_us(*sides(conv))


def test_too_few_times_leave_the_profile_as_it_is() -> None:
    relu = configuration("relu", f32(64, 64))
    calibration = calibrate(PROFILE, {relu: 99.0})
    assert calibration.cost_us(relu) == kernel_time_us(
        PROFILE, "relu", relu.inputs, relu.output, {}
    )
    assert "as it is" in calibration.describe()


def test_what_runs_no_kernel_stays_free() -> None:
    calibration = calibrate(PROFILE, table())
    assert calibration.cost_us(configuration("reshape", f32(4), shape=(2, 2))) == 0.0


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
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("GB300", "h200"),
    ):
        assert base_profile(replace(CPU, kind="cuda", name=name)).name == profile


def slow_fit(sides_us: NDArray[np.float64], times_us: NDArray[np.float64]) -> float:
    """Return the least error over a fine grid around every exact fit of three points."""
    best = np.inf
    for launch in np.linspace(0, times_us.min(), 30):
        for compute in np.geomspace(0.2, 5, 30):
            for memory in np.geomspace(0.2, 5, 30):
                larger = np.maximum(compute * sides_us[:, 0], memory * sides_us[:, 1])
                best = min(best, float(np.abs((launch + larger) / times_us - 1).sum()))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_no_worse_than_a_search_on_a_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides_us = rng.uniform(1, 50, (15, 2))
    truth = Factors(2.0, *rng.uniform(0.5, 2, 2))
    times_us = np.array([truth.time_us(*row) for row in sides_us]) * rng.uniform(0.7, 1.3, 15)
    factors = fit(sides_us, times_us)
    larger = np.maximum(factors.compute * sides_us[:, 0], factors.memory * sides_us[:, 1])
    error = float(np.abs((factors.launch_us + larger) / times_us - 1).sum())
    assert error <= slow_fit(sides_us, times_us) * 1.02
    assert min(factors.launch_us, factors.compute, factors.memory) >= 0
