"""A gain is measured, or it is called modelled; too small a gain keeps the original."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.cost.device import WholeTiming
from relational_tensat.cost.race import Standing
from relational_tensat.run.gain import Gain, is_worth_it, is_worth_it_modelled, standing_of
from relational_tensat.tensor.graph import RUN_US_KEY

INPUTS = Path(__file__).resolve().parents[2] / "bench" / "inputs"
MODELLED = Gain("t4", 100.0, 80.0)
TIMED = replace(MODELLED, measured=Standing(1.25, 1.2, 1.3, 9))


@pytest.mark.parametrize("after_us", [50.0, 99.0, 100.0, 100.14])
@pytest.mark.parametrize("from_kernels", [False, True])
def test_what_is_not_timed_is_called_modelled_and_never_faster(
    after_us: float, from_kernels: bool
) -> None:
    gain = Gain("t4", 100.0, after_us, from_kernels=from_kernels)
    assert gain.basis == "modelled"
    assert gain.text.startswith("modelled for t4")
    assert "not timed" in gain.text
    assert "faster" not in gain.text and "times as fast" not in gain.text
    assert "-" not in gain.text  # no negative share


def test_what_is_timed_is_called_measured_and_has_its_interval() -> None:
    assert TIMED.basis == "measured"
    assert TIMED.text.startswith("measured: 1.250 times as fast as the original [1.200, 1.300]")
    assert TIMED.to_json()["timed"] == {"speedup": 1.25, "low": 1.2, "high": 1.3, "heats": 9}


@pytest.mark.parametrize("gain", [MODELLED, TIMED])
def test_where_the_original_is_kept_nothing_is_gained(gain: Gain) -> None:
    kept = replace(gain, is_kept=True)
    assert kept.speedup == 1.0
    assert "the original is kept" in kept.text
    assert kept.to_json()["original_kept"]


@pytest.mark.parametrize(
    ("low", "least", "is_smaller", "is_written"),
    [
        (1.001, 1.0, False, True),
        (1.0, 1.0, False, False),
        (0.99, 1.0, False, False),
        (0.99, 1.0, True, True),
        (0.97, 1.0, True, False),
        (1.05, 1.1, True, False),
        (1.11, 1.1, False, True),
    ],
)
def test_a_timed_graph_is_faster_with_its_whole_interval_or_smaller(
    low: float, least: float, is_smaller: bool, is_written: bool
) -> None:
    assert is_worth_it(Standing(low + 0.1, low, low + 0.2, 9), least, is_smaller=is_smaller) is (
        is_written
    )


@pytest.mark.parametrize(
    ("after_us", "least", "is_smaller", "is_written"),
    [
        (99.9, 1.0, False, True),
        (99.95, 1.0, False, False),
        (99.95, 1.0, True, True),
        (100.14, 1.0, True, False),
        (90.0, 1.2, True, False),
        (80.0, 1.2, False, True),
    ],
)
def test_a_modelled_graph_is_a_thousandth_cheaper_or_smaller(
    after_us: float, least: float, is_smaller: bool, is_written: bool
) -> None:
    assert is_worth_it_modelled(100.0, after_us, least, is_smaller=is_smaller) is is_written


def test_too_few_rounds_say_nothing() -> None:
    timing = WholeTiming(100.0, 50.0, 2.0, 1.9, 2.1, 3)
    few, enough = (standing_of(None, replace(timing, rounds=rounds)) for rounds in (3, 40))
    assert few is not None and not is_worth_it(few, 1.0, is_smaller=True)
    assert enough is not None and is_worth_it(enough, 1.0, is_smaller=False)


def test_a_run_on_its_own_output_changes_nothing_and_finds_the_same_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has a product and a sum where the graph has one kernel."""
    places = [INPUTS / "transformer_block.onnx", tmp_path / "1.onnx", tmp_path / "2.onnx"]
    reports = []
    for source, target in pairwise(places):
        argv = ["run", str(source), "-o", str(target), "--cost", "t4", "--json"]
        assert main([*argv, "--set", "verify-runs=1"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    first, second = reports
    assert not first["unchanged"] and second["unchanged"]
    assert second["cost_before_us"] == second["cost_after_us"] == first["cost_after_us"]
    assert places[1].read_bytes() == places[2].read_bytes()
    assert first["gain"]["basis"] == second["gain"]["basis"] == "modelled"


def test_the_bar_can_be_higher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is modelled to be 1.56 times as fast, where its parts are views."""
    argv = ["run", str(INPUTS / "transformer_block.onnx"), "--cost", "t4", "--set", "verify-runs=1"]
    argv += ["--quiet", "-o", str(tmp_path / "o.onnx"), "--force", "--min-speedup"]
    assert main([*argv, "1.3"]) == 0
    assert "the original is kept" not in capsys.readouterr().out
    assert main([*argv, "1.7"]) == 0
    assert "the original is kept" in capsys.readouterr().out


def test_a_result_is_priced_as_it_was_chosen(tmp_path: Path) -> None:
    """Caches are found as the first original leaves them, though the result itself takes less time."""
    options = Options.of(runs_on="onnxruntime", effort="low", threads_at_inference=1)
    block, chosen = INPUTS / "transformer_block.onnx", tmp_path / "chosen.onnx"
    first = optimize(block, options, output=chosen)
    assert not first.unchanged
    options = options.replace(iterations=1, search="saturation")
    again = optimize(chosen, options)
    assert again.cost_before_us == pytest.approx(first.cost_after_us, rel=1e-12)
    model = onnx.load(chosen)
    assert [entry.key for entry in model.metadata_props] == [RUN_US_KEY]
    del model.metadata_props[:]
    assert optimize(model, options).cost_before_us != pytest.approx(first.cost_after_us, rel=1e-4)
