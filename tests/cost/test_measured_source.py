"""A device and its cache: what is asked once, measured once, kept at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cost import CostCounts, TimingSample, Unmeasurable
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.tensor import Graph, Node, build_graph
from tests.cost.fakes import CPU, FakeDevice, configuration, flat_us, products
from tests.graphs import f32, weight


@pytest.fixture
def cache(tmp_path: Path) -> CostCache:
    return CostCache(tmp_path / "folder" / "costs.duckdb")


def test_a_batch_is_measured_once(cache: CostCache) -> None:
    device = FakeDevice()
    source = MeasuredSource("cpu", device, cache)
    some = products(3)
    answers = source.ask([*some, *some])
    assert device.requests == [some]
    assert [answers[configuration].cost_us for configuration in some] == [
        flat_us(configuration) for configuration in some
    ]
    source.ask(some)
    source.ask(products(4))
    assert device.requests == [some, products(4)[3:]]
    assert source.counts == CostCounts(measured=4)


def _with_weight(size: int) -> Graph:
    """Return a product by a square weight."""
    product = Node("matmul", ("x", "w"), ("y",))
    return build_graph("p", {"x": f32(2, size)}, {"w": weight(size, size)}, [product], ["y"])


def test_a_small_graph_has_times_of_its_own(cache: CostCache) -> None:
    device = FakeDevice(small_bytes=4 * 100)
    source = MeasuredSource("cpu", device, cache)
    source.adapt_to(_with_weight(11))
    source.ask(products(2))
    assert source.notes == ()
    source.adapt_to(_with_weight(9))
    source.ask(products(1))
    assert device.requests == [products(2), products(1)]  # what was known is of larger graphs
    assert source.counts == CostCounts(measured=1)
    assert source.notes == ("the size of the model's weights asks for costs of Fake 9000, small",)
    source.adapt_to(_with_weight(11))
    source.ask(products(2))
    assert source.counts == CostCounts(cached=2)
    assert device.suited_to == [4 * 121, 4 * 81, 4 * 121]


def test_a_second_run_measures_nothing(cache: CostCache) -> None:
    MeasuredSource("cpu", FakeDevice(unable=frozenset({"relu"})), cache).ask(
        [*products(3), configuration("relu", f32(4))]
    )
    device = FakeDevice()
    source = MeasuredSource("cpu", device, cache)
    source.ask([*products(3), configuration("relu", f32(4))])
    assert device.requests == []
    assert source.counts == CostCounts(cached=3, estimated=1)
    assert source.measuring_s == 0


def test_what_runs_no_kernel_is_not_asked_for(cache: CostCache) -> None:
    device = FakeDevice(replace(CPU, kind="cuda"), statistic="median_us")
    source = MeasuredSource("cuda", device, cache)
    x = f32(4, 6)
    views = [
        configuration("reshape", x, shape=(24,)),
        configuration("identity", x),
        configuration("fill", value=1.0, dtype="float32", shape=(2,)),
    ]
    assert [answer.cost_us for answer in source.ask(views).values()] == [0, 0, 0]
    assert device.requests == []
    assert source.counts == CostCounts()
    assert not cache.path.exists()
    source.ask([configuration("transpose", x, perm=(1, 0))])  # a copy
    assert len(device.requests) == 1


def test_a_view_is_a_call_like_any_other_on_a_processor(cache: CostCache) -> None:
    device = FakeDevice()
    source = MeasuredSource("cpu", device, cache)
    configurations = [
        configuration("reshape", f32(4, 6), shape=(24,)),
        configuration("identity", f32(4)),
        configuration("dropout", f32(4)),
    ]
    assert all(answer.cost_us > 0 for answer in source.ask(configurations).values())
    assert device.requests == [configurations]
    source.ask([configuration("fill", value=1.0, dtype="float32", shape=(2,))])
    assert len(device.requests) == 1


def test_peeking_measures_nothing_and_counts_nothing(cache: CostCache) -> None:
    device = FakeDevice()
    source = MeasuredSource("cpu", device, cache)
    one, other = products(2)
    source.ask([one])
    assert source.peek_us(one) == flat_us(one)
    assert source.peek_us(other) > 0
    assert source.peek_us(configuration("reshape", f32(4), shape=(2, 2))) == 0
    assert device.requests == [[one]]
    assert source.counts == CostCounts(measured=1)


def test_the_devices_statistic_is_the_cost(cache: CostCache) -> None:
    (product,) = products(1)
    by_median = MeasuredSource("cpu", FakeDevice(statistic="median_us"), cache)
    assert by_median.ask([product])[product].cost_us == pytest.approx(flat_us(product) * 1.1)


def test_it_is_a_cost_model(cache: CostCache) -> None:
    source = MeasuredSource("cpu", FakeDevice(), cache)
    x = f32(4, 6)
    assert source.cost_us("relu", (x,), x, {}) == pytest.approx(1.0 + 96 / 1e6)
    assert source.name == "cpu"


@pytest.mark.parametrize(
    "other",
    [
        replace(CPU, driver="avx2"),
        replace(CPU, libraries={**CPU.libraries, "onnxruntime": "1.32.0"}),
        replace(CPU, libraries={"onnxruntime": "1.31.1"}),
        replace(CPU, protocol=99),
        replace(CPU, name="Fake 9001"),
        replace(CPU, kind="cuda"),
    ],
    ids=["driver", "library", "fewer libraries", "protocol", "device", "kind"],
)
def test_times_under_another_key_are_not_used(cache: CostCache, other: object) -> None:
    MeasuredSource("cpu", FakeDevice(), cache).ask(products(2))
    device = FakeDevice(key=other)  # type: ignore[arg-type]
    source = MeasuredSource("cpu", device, cache)
    source.ask(products(3))
    assert device.requests == [products(3)]
    assert source.counts == CostCounts(measured=3)
    same_device = device.key.name == CPU.name and device.key.kind == CPU.kind
    assert bool(source.notes) == same_device
    if same_device:
        assert (
            "2 configurations had times of another driver, library or protocol" in source.notes[0]
        )


def test_interrupting_keeps_what_was_measured(cache: CostCache) -> None:
    source = MeasuredSource("cpu", FakeDevice(interrupt_after=2), cache)
    with pytest.raises(KeyboardInterrupt, match="2 of 5 configurations are measured and kept in"):
        source.ask(products(5))
    assert len(cache.rows()) == 2
    device = FakeDevice()
    MeasuredSource("cpu", device, cache).ask(products(5))
    assert device.requests == [products(5)[2:]]


def test_measuring_is_watched(cache: CostCache) -> None:
    seen = []
    source = MeasuredSource("cpu", FakeDevice(), cache, lambda *counts: seen.append(counts))
    source.ask(products(3))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    source.ask(products(3))
    assert len(seen) == 4
    assert source.measuring_s > 0


def test_what_cannot_be_measured_is_estimated_and_reported(cache: CostCache) -> None:
    unable = frozenset({"relu"})
    source = MeasuredSource("cpu", FakeDevice(unable=unable), cache)
    relu = configuration("relu", f32(4))
    answer = source.ask([*products(12), relu])[relu]
    assert answer.origin == "estimated"
    assert answer.cost_us == pytest.approx(1.0, rel=0.1)  # calibrated on times of about 1 µs
    assert source.counts == CostCounts(measured=12, estimated=1)
    (note,) = source.notes
    assert "1 configuration cannot be measured (the first: no kernel for relu)" in note
    assert "calibrated on 12 measured times" in note


@pytest.mark.parametrize("time_us", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_not_kept(cache: CostCache, time_us: float) -> None:
    source = MeasuredSource("cpu", FakeDevice(time_us=lambda configuration: time_us), cache)
    with pytest.raises(InputError, match=r"Fake 9000: measured median_us = .*matmul"):
        source.ask(products(1))
    assert cache.rows() == []


def test_rows_are_what_was_kept(cache: CostCache) -> None:
    (product,) = products(1)
    cache.keep(CPU, product, TimingSample(2.0, 1.0, 3.0, 30))
    cache.keep(CPU, product, TimingSample(9.0, 9.0, 9.0, 30))  # by another process, too late
    cache.keep(replace(CPU, protocol=99), product, Unmeasurable("no kernel"))
    first, second = cache.rows()
    assert first.key == CPU
    assert first.result == TimingSample(2.0, 1.0, 3.0, 30)
    assert second.result == Unmeasurable("no kernel")
    assert cache.forget(CPU) == 1
    assert [record.key.protocol for record in cache.rows()] == [99]
