"""Which graph is returned is decided by how fast graphs are whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import VerificationError
from relational_tensat.base.files import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from relational_tensat.run.result import Result
from relational_tensat.run.stages import check, second_search
from relational_tensat.run.values import CheckedRun, ExtractedRun, LoadedRun
from relational_tensat.tensor import Graph
from relational_tensat.verify import quantization as quantized_kernels
from relational_tensat.view.collection import collect
from tests.cost.fakes import FakeDevice, plug_in
from tests.graphs import shared_matmuls
from tests.quantized_models import mean_before_reshape, residual_block
from tests.tiers import nightly

#: One product less, and an activation less: it is part of the product.
MERGED, FUSED = "sum-of-products-sharing-left", "activation-into-product"
#: The second of the graph's two activations does nothing.
IDLE = "drop-second-application"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return plug_in(monkeypatch, FakeDevice(time_us=lambda configuration: 2.0))


def by_counts(speeds: dict[tuple[int, int], float]) -> Callable[[Graph], float]:
    """Return how fast a graph is, by its products and activations; 1 where nothing is said."""

    def speed(graph: Graph) -> float:
        counts = graph.count_ops()
        return speeds.get((counts["matmul"], counts.get("relu", 0)), 1.0)

    return speed


def run(tmp_path: Path, *, learn_costs: bool = False, **options: object) -> Result:
    chosen = Options.of(
        cost="cpu",
        learn_costs=learn_costs,
        cost_cache=tmp_path / "costs.duckdb",
        only=(MERGED, FUSED, IDLE),
        allow_unsound=True,  # not looked up
        verify_runs=1,
        **options,
    )
    return optimize(shared_matmuls(with_data=True), chosen, output=tmp_path / "out.json")


def written(tmp_path: Path) -> tuple[int, int]:
    counts = load_model(tmp_path / "out.json").count_ops()
    return counts["matmul"], counts.get("relu", 0)


def test_the_cheapest_graph_wins_where_it_is_the_fastest(
    device: FakeDevice, tmp_path: Path
) -> None:
    device.speed = by_counts({(1, 0): 1.5, (1, 1): 1.2})
    result = run(tmp_path)
    assert result.race is not None
    assert written(tmp_path) == (1, 0)
    names = [contender.name for contender in result.race.contenders]
    costs = [contender.cost_us for contender in result.race.contenders]
    assert names == ["the cheapest", f"without {FUSED}", f"without {MERGED}"]
    assert costs == [2.0, 4.0, 8.0]
    assert result.race.final.speedup == pytest.approx(1.5)
    assert result.race.fixed_share == 0  # every operator can be had in another way
    assert result.optimal and not result.keeps_original
    assert device.timed == []  # it is known already how fast it is


def test_a_dearer_graph_wins_where_it_is_faster(device: FakeDevice, tmp_path: Path) -> None:
    device.speed = by_counts({(1, 0): 0.9, (1, 1): 1.2})
    db = tmp_path / "run.duckdb"
    result = run(tmp_path, db=db)
    assert result.race is not None
    assert written(tmp_path) == (1, 1)
    assert result.race.contenders[result.race.winner].without == (FUSED,)
    assert (result.cost_before_us, result.cost_after_us, result.bound_us) == (10.0, 4.0, 2.0)
    assert not result.optimal and result.gap == pytest.approx(1 / 2)
    with duckdb.connect(db, read_only=True) as connection:
        summary = collect(connection).summary
    assert (summary.after_us, summary.bound_us, summary.optimal) == (4.0, 2.0, False)
    assert set(result.rules_used) == {MERGED}
    assert result.verification.ok and result.verification.runs > 0


def test_the_original_is_kept_where_all_are_slower(device: FakeDevice, tmp_path: Path) -> None:
    device.speed = by_counts({(1, 0): 0.9, (1, 1): 0.95, (2, 1): 0.9})
    result = run(tmp_path)
    assert result.unchanged and result.keeps_original and not result.optimal
    assert written(tmp_path) == (2, 2)
    (note,) = [text for text in result.notes if "raced" in text]
    assert note == (
        f"raced whole, without {FUSED} is not faster, measured: 0.950x [0.950, 0.950]; "
        "the original against itself: 1.000x [1.000, 1.000]: the original is kept"
    )


def test_what_cannot_be_raced_is_compared_as_a_pair(device: FakeDevice, tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.race is None and result.whole is not None
    assert "not raced: nothing is raced here" in result.notes
    assert len(device.timed) == 1


def test_without_seconds_for_it_nothing_is_raced(device: FakeDevice, tmp_path: Path) -> None:
    device.speed = by_counts({})
    result = run(tmp_path, budget_s=0.0)
    assert result.race is None and len(device.timed) == 1
    assert run(tmp_path, end_to_end=False).race is None


def test_the_report_has_who_took_part_and_who_won(
    device: FakeDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device.speed = by_counts({(1, 0): 0.9, (1, 1): 1.2})
    save_model(shared_matmuls(with_data=True), tmp_path / "model.json")
    arguments = [
        "run",
        str(tmp_path / "model.json"),
        "-o",
        str(tmp_path / "out.json"),
        "--cost",
        "cpu",
    ]
    rules = [
        "--set",
        "learn-costs=no",
        "--only",
        MERGED,
        "--only",
        FUSED,
        "--only",
        IDLE,
        "--allow-unsound",
    ]
    assert main([*arguments, "-v", "--cost-cache", str(tmp_path / "costs.duckdb"), *rules]) == 0
    text = capsys.readouterr().out
    assert f"raced whole: without {FUSED} is faster, measured: 1.200x [1.200, 1.200]" in text
    assert "modelled" in text and "2.500x" in text
    assert "0% of the original's cost is in kernels that no rule can change" in text
    flat = " ".join(text.split())
    gained = "gained, as timed: 16.7% of the time, 16.7% to 16.7% (99 %)"
    assert f"as modelled at most 80.0% can be saved; {gained}" in flat


def quantized(device: FakeDevice, tmp_path: Path, **options: object) -> Result:
    """Return what becomes of a residual block of int8 where costs are modelled."""
    path = tmp_path / "block.onnx"
    onnx.save(residual_block(np.int8, most=63), path)
    return optimize(
        path,
        Options.of(
            cost="analytic:cpu",
            cost_cache=tmp_path / "costs.duckdb",
            backend="onnxruntime",
            search="saturation",
            verify_runs=1,
            **options,
        ),
        output=tmp_path / "out.onnx",
    )


@pytest.mark.parametrize(("speed", "is_kept"), [(0.9, True), nightly(1.5, False)])
def test_quantized_models_race_where_costs_are_modelled(
    device: FakeDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    speed: float,
    is_kept: bool,
) -> None:
    """Those that have other integers than the original, whatever they cost by the profile."""
    monkeypatch.setattr(quantized_kernels, "sums_saturate", lambda: False)
    device.speed = lambda graph: speed if "uint8" in str(graph.types) else 1.0
    result = quantized(device, tmp_path)
    assert result.race is not None
    assert result.unchanged == is_kept
    assert (
        Path(tmp_path / "out.onnx").read_bytes() == Path(tmp_path / "block.onnx").read_bytes()
    ) == is_kept
    assert quantized(device, tmp_path, budget_s=0.0, force=True).race is None


@pytest.mark.parametrize("speed", [nightly(1.5), 1.0])
def test_kernels_on_integers_are_counted_where_no_race_says_more(
    device: FakeDevice, tmp_path: Path, speed: float
) -> None:
    """A mean that keeps no axes has no kernel on integers: that is worse, unless it is faster whole."""
    device.time_us = lambda configuration: 1.0
    device.speed = lambda graph: 1.0 if "reshape" in graph.count_ops() else speed
    families = ("quantization", "reduce", "layout", "identity")
    path = tmp_path / "mean.onnx"
    onnx.save(mean_before_reshape(), path)
    options = Options.of(
        cost="cpu",
        cost_cache=tmp_path / "costs.duckdb",
        rules=tuple(resource_dir("rules") / f"{name}.rules" for name in families),
        verify_runs=1,
    )
    result = optimize(path, options, output=tmp_path / "out.onnx")
    loss = "onnxruntime ends up with 0 quantized kernels, the original 1"
    if speed > 1:
        assert not result.unchanged and not result.rejections and result.race is not None
        assert f"{loss}; measured whole, it is faster" in result.notes
    else:
        assert loss in result.rejections[0].why
        (note,) = (note for note in result.notes if note.startswith("raced whole, the cheapest is"))
        assert note.endswith(": that graph is not returned")
        assert not result.unchanged and result.race is not None  # what is returned has raced, too
        assert result.race.contenders[result.race.winner].cost_us == result.cost_after_us


@pytest.mark.parametrize("speed", [nightly(1.2), 0.8])
def test_where_the_winner_is_not_returned_others_race(
    device: FakeDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: float
) -> None:
    """So it is where costs are modelled, too, and nothing is timed later: what is written was raced."""
    device.speed = by_counts({(1, 1): 1.5, (2, 1): speed})
    compare = check.compare

    def is_right(_: LoadedRun, graph: Graph) -> bool:
        return graph.count_ops()["matmul"] == 2

    def refuse(extracted: ExtractedRun, *others: Any) -> CheckedRun:
        if not is_right(extracted.loaded, extracted.chosen):
            raise VerificationError("it differs")
        return compare(extracted, *others)

    monkeypatch.setattr(check, "compare", refuse)
    monkeypatch.setattr(second_search, "_is_right", is_right)
    save_model(shared_matmuls(with_data=True), tmp_path / "in.onnx")
    options = Options.of(
        cost="analytic:cpu", backend="onnxruntime", budget_s=20.0, only=(MERGED, FUSED, IDLE),
        cost_cache=tmp_path / "costs.duckdb", verify_runs=1,
    )  # fmt: skip
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.rejections[0].rule == MERGED
    assert any("1.500x" in note and note.endswith("not returned") for note in result.notes)
    assert result.race is not None
    assert result.race.final.speedup == pytest.approx(speed)
    assert result.unchanged == (speed < 1)
