"""Files that race in several runtimes: who is chosen, and that the written file is that one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relational_tensat
from relational_tensat import Options, UsageError, optimize
from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.cost.race import RaceResult, Standing
from relational_tensat.run import purpose
from relational_tensat.run.reports import Entrant, RuntimeRace
from relational_tensat.run.stages import kernel_library, runtimes
from tests.graphs import shared_matmuls

ROOT = Path(__file__).resolve().parents[3]
_MODEL = ROOT / "bench" / "inputs" / "encoder_block.onnx"
_ORIGINAL, _RESULT = Entrant("onnxruntime", "original"), Entrant("onnxruntime", "result")
_OTHER, _OTHER_RESULT = Entrant("openvino", "original"), Entrant("openvino", "result")
_WITH_KERNELS = Entrant("onnxruntime", "result with kernels")
_BOTH = ("onnxruntime", "openvino")


def standing(speedup: float, spread: float = 0.01) -> Standing:
    return Standing(speedup, speedup - spread, speedup + spread, 9)


def found(first: Entrant, **speedups: float) -> RuntimeRace:
    """Return a race of ``o``, ``r`` (onnxruntime) and ``O``, ``R`` (openvino)."""
    names = {"o": _ORIGINAL, "r": _RESULT, "O": _OTHER, "R": _OTHER_RESULT}
    standings = {names[name]: standing(speedup) for name, speedup in speedups.items()}
    winner = max(standings, key=lambda each: standings[each].speedup)
    return RuntimeRace(first, standings, winner, standings[winner], standing(1.0), winner, {}, {})


@pytest.mark.parametrize(
    ("speedups", "expected"),
    [
        ({"r": 1.2, "O": 1.1, "R": 1.3}, _OTHER_RESULT),
        ({"r": 1.2, "O": 1.3, "R": 1.25}, _OTHER),
        ({"r": 1.2, "O": 1.1, "R": 1.205}, _RESULT),
        ({"r": 1.3, "O": 1.1, "R": 1.2}, _RESULT),
        ({"O": 1.2}, _OTHER),
        ({"O": 1.005}, _ORIGINAL),
        ({"O": 0.9}, _ORIGINAL),
    ],
)
def test_another_runtime_has_to_be_faster_beyond_the_noise(
    speedups: dict[str, float], expected: Entrant
) -> None:
    race = found(_ORIGINAL, **speedups)
    assert runtimes._chosen(race, _BOTH, 1.0, is_smaller=False) == expected


@pytest.mark.parametrize(
    ("speedup", "is_smaller", "least", "expected"),
    [
        (1.1, False, 1.0, _OTHER_RESULT),
        (1.0, False, 1.0, _OTHER),
        (1.0, True, 1.0, _OTHER_RESULT),
        (1.1, False, 1.2, _OTHER),
    ],
)
def test_in_one_runtime_the_result_is_written_as_after_any_race(
    speedup: float, is_smaller: bool, least: float, expected: Entrant
) -> None:
    race = found(_OTHER, R=speedup)
    assert runtimes._chosen(race, ("openvino",), least, is_smaller=is_smaller) == expected


def test_where_it_cannot_be_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"--for best takes an \.onnx file"):
        optimize(shared_matmuls(), Options.of(runs_on="best"))
    monkeypatch.setattr(purpose, "_is_installed", lambda package: package != "openvino")
    with pytest.raises(
        MissingDependencyError, match=r"pip install 'relational-tensat\[openvino\]'"
    ):
        optimize(_MODEL, Options.of(runs_on="openvino"))
    chosen = purpose.purpose_of(Options.of(runs_on="best"), _MODEL)
    assert chosen.runtimes == ()
    assert "only onnxruntime is tried" in chosen.note
    assert chosen.text.startswith("onnxruntime on this CPU")


def test_the_fastest_file_is_written_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openvino = pytest.importorskip("openvino", reason="needs OpenVINO")
    monkeypatch.setattr(runtimes, "_BUDGET_S", 0.5)
    target = tmp_path / "fast.onnx"
    result = optimize(_MODEL, Options.of(runs_on="best", effort="low"), output=target)
    race = result.runtimes
    assert race is not None
    assert {race.first, *race.standings} == {_ORIGINAL, _RESULT, _OTHER, _OTHER_RESULT}
    assert race.chosen.which == ("original" if result.unchanged else "result")
    assert max(race.errors.values()) < 1e-5
    assert f"fastest: {race.chosen}, by {race.chosen.runtime}." in result.report()
    if race.chosen.runtime == "openvino":
        call = race.usage.removeprefix("openvino.Core().compile_model(PATH, ").removesuffix(")")
        assert call == "'CPU', {'INFERENCE_PRECISION_HINT': 'f32'}"
    compiled = openvino.Core().compile_model(str(target), "CPU")
    assert compiled(
        [np.zeros(item.shape, item.element_type.to_dtype()) for item in compiled.inputs]
    )


@pytest.mark.parametrize("fastest", ["onnxruntime", "openvino"])
def test_kernels_race_beside_openvino_and_only_their_runtime_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fastest: str
) -> None:
    openvino = pytest.importorskip("openvino", reason="needs OpenVINO")
    raced = []

    def won(
        checked: object, entrants: list[Entrant], files: dict[str, Path], libraries: list[Path]
    ) -> RuntimeRace:
        raced.extend(entrants)
        assert all(path.exists() for path in (*files.values(), *libraries))
        standings = {each: standing(1.3 if each.runtime == fastest else 0.9) for each in entrants}
        winner = [each for each in entrants if each.runtime == fastest][-1]
        last = standings.pop(entrants[0])
        return RuntimeRace(
            entrants[0], standings, winner, standings.get(winner, last), last, winner, {}, {}
        )

    monkeypatch.setattr(runtimes, "_raced", won)
    faster = RaceResult((standing(1.3),), 1, standing(1.3), standing(1.0))
    monkeypatch.setattr(kernel_library, "race", lambda *_: faster)
    target = tmp_path / "fast.onnx"
    options = Options.of(runs_on="best", effort="low", fuse=True, cost_cache=tmp_path / "costs.db")
    result = optimize(_MODEL, options, output=target)
    assert result.runtimes is not None and result.library is not None
    assert raced[1] == _WITH_KERNELS and _RESULT not in raced
    assert result.runtimes.chosen.runtime == fastest
    has_kernels = fastest == "onnxruntime"
    assert result.library.is_taken == has_kernels == target.with_suffix(".kernels").exists()
    if has_kernels:
        assert result.runtimes.usage == "relational_tensat.session(PATH)"
        assert relational_tensat.session(target).get_outputs()
    else:
        openvino.Core().compile_model(str(target), "CPU")  # it refuses local functions


def test_for_openvino_it_is_timed_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino", reason="needs OpenVINO")
    monkeypatch.setattr(runtimes, "_BUDGET_S", 0.5)
    result = optimize(_MODEL, Options.of(runs_on="openvino"), output=tmp_path / "fast.onnx")
    race = result.runtimes
    assert race is not None and race.is_in_one
    assert result.gain.basis == "measured"
    assert result.unchanged == (race.chosen == _OTHER)
    assert result.runs_on.startswith("openvino on this CPU")
