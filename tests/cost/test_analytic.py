"""What several threads change: what is shared out, what is not, and what a run costs beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cost import load_profile, open_source
from relational_tensat.cost.analytic import AnalyticSource, in_threads
from relational_tensat.cost.calibration import profile_us
from relational_tensat.cost.key import configuration_of
from relational_tensat.cost.profile import Profile, ThreadCosts
from relational_tensat.run.options import Options
from relational_tensat.run.resume.record import cost_file, options_text, read_options
from tests.graphs import f32

THREADS = ThreadCosts(speedup=0.5, weight_speedup=0.25, share_us=3.0, alone_us=10.0, wake_us=30.0)
PROFILE = Profile(
    "mine",
    peak_flops_per_s=1e9,
    bandwidth_bytes_per_s=1e9,
    launch_us=2.0,
    free=frozenset({"reshape"}),
    weight_bandwidth_bytes_per_s=1e9,
    threads=THREADS,
)
TWO = replace(PROFILE, n_threads=2)


def price(profile: Profile, op: str, *shapes: tuple[int, ...], **attrs: object) -> float:
    *inputs, output = (f32(*shape) for shape in shapes)
    configuration = configuration_of(op, tuple(inputs), output, attrs)  # type: ignore[arg-type]
    return in_threads(profile_us)(profile, configuration)


def test_products_are_shared_out_but_for_what_comes_from_memory() -> None:
    rows, matrix = (4, 16), (16, 16)
    flops_us = 2 * 4 * 16 * 16 / 1e9 * 1e6
    weights_us = 16 * 16 * 4 / 1e9 * 1e6
    moved_us = 2 * 4 * 16 * 4 / 1e9 * 1e6
    one, two = (price(each, "matmul", rows, matrix, rows) for each in (PROFILE, TWO))
    assert one == pytest.approx(2.0 + weights_us + moved_us + flops_us)
    assert two == pytest.approx(2.0 + 3.0 + (weights_us + moved_us) / 1.25 + flops_us / 1.5)
    three = price(replace(TWO, n_threads=3), "matmul", rows, matrix, rows)
    assert three == pytest.approx(2.0 + 3.0 + (weights_us + moved_us) / 1.5 + flops_us / 2.0)


def test_functions_of_elements_are_shared_out_where_there_is_much() -> None:
    little, much = (4, 16), (64, 256)
    assert price(TWO, "relu", little, little) == price(PROFILE, "relu", little, little)
    assert price(TWO, "relu", much, much) < price(PROFILE, "relu", much, much)
    assert price(TWO, "softmax", little, little, axis=-1) > price(
        PROFILE, "softmax", little, little, axis=-1
    )
    assert price(TWO, "reshape", (4, 6), (24,), shape=(24,)) == 0.0


def test_threads_are_woken_where_they_sleep() -> None:
    assert TWO.run_us(2) == PROFILE.run_us(2) + 30.0
    often, one = (replace(profile, cached=0.75) for profile in (TWO, PROFILE))
    assert often.run_us(2) == one.run_us(2) + 0.25 * 30.0
    assert AnalyticSource(TWO).run_us(2) == TWO.run_us(2)
    assert AnalyticSource(TWO).n_threads == 2 and AnalyticSource(PROFILE).n_threads == 1


def test_a_processor_by_its_profile_has_threads(tmp_path: Path) -> None:
    source = open_source("analytic:cpu:threads=2")
    assert source.name == "cpu:threads=2" and source.n_threads == 2
    assert open_source("analytic:cpu:threads=1").name == "cpu"
    with pytest.raises(UsageError, match="t4 does not say what several threads change"):
        open_source("analytic:t4:threads=2")
    with pytest.raises(UsageError, match="threads = 0, expected at least 1"):
        open_source("analytic:cpu:threads=0")
    with pytest.raises(UsageError, match="unknown cost profile 'cpuu'"):
        open_source("analytic:cpuu:threads=2")
    path = tmp_path / "mine.toml"
    text = "peak_flops_per_s = 1e9\nbandwidth_bytes_per_s = 1e9\nlaunch_us = 1\n"
    path.write_text(f"{text}threads = {{ speedup = 0.5, wake_us = 3 }}\n")
    own = open_source(f"analytic:{path}:threads=3")
    assert own.n_threads == 3 and own.run_us(0) == 3.0
    path.write_text(f"{text}threads = {{ speedups = 0.5 }}\n")
    with pytest.raises(
        InputError, match=r"threads: unknown key 'speedups'.*did you mean 'speedup'"
    ):
        load_profile(path)


def test_a_run_that_is_resumed_elsewhere_finds_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for cost in ("analytic:./mine.toml:threads=2", "analytic:mine.toml"):
        stored = read_options(options_text(Options.of(cost=cost))).costs.source
        suffix = ":threads=2" if cost.endswith("2") else ""
        assert stored == f"analytic:{tmp_path / 'mine.toml'}{suffix}"
        assert cost_file(stored) == tmp_path / "mine.toml"
    assert cost_file("analytic:cpu:threads=2") is None and cost_file("cpu:threads=2") is None
