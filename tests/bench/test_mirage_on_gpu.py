"""``python -m bench mirage --gpu`` without a GPU: PyTorch on the CPU, Triton's interpreter, a clock."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.__main__ import main
from bench.common.result_file import RESULTS
from bench.emulation.errors import exact_outputs
from bench.mirage.alternatives import nearly_cheapest
from bench.mirage.cases import Case, cases
from bench.mirage.machine_code import kept_runs
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.programs import PROGRAMS, program
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.waves import Multiprocessors
from relational_tensat.mugraph.verify.small_sizes import shrunk
from tests.mugraph.kernels.mugraphs import rmsnorm_linear
from tests.with_triton import skip_without_triton

#: Sizes at which NumPy and Triton's interpreter take no time, by program.
SMALL = {
    "attention": {"h": 2, "q": 4, "d": 16, "k": 32, "e": 8},
    "scaled_attention": {"h": 2, "q": 4, "d": 16, "k": 32, "e": 8},
    "qknorm": {"h": 2, "q": 4, "d": 16, "k": 32, "e": 8},
    "rmsnorm_linear": {"m": 2, "k": 32, "n": 16},
    "mlp": {"m": 4, "k": 32, "r": 4, "n": 16},
    "residual_mlp": {"m": 4, "k": 32, "r": 4, "n": 16},
    "moe": {"x": 2, "m": 4, "k": 16, "f": 8, "n": 16},
    "lora": {"m": 4, "k": 16, "n": 8, "r": 4},
    "gated_mlp": {"m": 4, "k": 16, "n": 8},
    "swiglu": {"m": 4, "k": 16, "f": 8, "n": 8},
    "ntrans": {"m": 4, "n": 16},
}


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is there")
def test_without_pytorch_that_is_what_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "benchmarks.json"
    path.write_text('{"runs": [{"search": {"case": "LoRA 1", "max_kernels": 1}, "mugraph": {}}]}')
    assert main(["mirage", "--gpu", str(path)]) == 2
    assert "bench mirage --gpu needs PyTorch" in capsys.readouterr().err


def test_every_program_is_what_pytorch_makes_of_it() -> None:
    torch: Any = pytest.importorskip("torch")
    from bench.mirage.on_gpu.operators import Placed, run_program

    assert set(SMALL) == set(PROGRAMS)
    for name, sizes in SMALL.items():
        small = program(name, **sizes)
        arrays = {key: array.astype(np.float64) for key, array in _drawn(small).items()}
        (wanted,) = exact_outputs(small, arrays).values()
        inputs = {
            key: Placed(tuple(dim.variable for dim in small.inputs[key]), torch.from_numpy(array))
            for key, array in arrays.items()
        }
        for is_fused in (True, False):
            (made,) = run_program(small, inputs, is_fused=is_fused)
            np.testing.assert_allclose(made.data.numpy(), wanted, rtol=1e-9, err_msg=name)


class Clock:
    """A stopwatch by which the first subject takes 8 µs, and each other one 2 µs less than that before."""

    def __init__(self) -> None:
        self._subjects: list[object] = []

    def time_us(self, subject: object, mode: str, batch: int) -> float:
        if subject not in self._subjects:
            self._subjects.append(subject)
        return (8.0 - 2 * self._subjects.index(subject) + (mode == "cold")) * batch

    def reference_us(self) -> float:
        return 100.0


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Triton decides when it is imported whether it interprets."""
    pytest.importorskip("torch")
    skip_without_triton()
    os.environ["TRITON_INTERPRET"] = "1"
    with np.errstate(all="ignore"):  # what padding holds
        yield
    del os.environ["TRITON_INTERPRET"]


@pytest.mark.usefixtures("interpreted")
def test_kept_kernels_are_compared_and_timed_beside_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bench.mirage.on_gpu import launches, measure

    monkeypatch.setattr(measure, "LAUNCHES", {"triton": launches.LAUNCHES["triton"]})
    *_, latest = sorted(RESULTS.glob("mirage-*/benchmarks.json"))
    kept = {run["search"]["case"]: run for run in kept_runs(latest)}
    known = {case.name: case for case in cases()}
    for name in (
        "MHA incremental 1",
        "MHA scaled 1",
        "LoRA 1",
        "MLP 1",
        "RMSNorm + Linear",
        "nTrans",
    ):
        small = shrunk(known[name].build(), decoded(kept[name]["mugraph"], name))
        assert small is not None
        sizes = {dim.variable: dim.size for dims in small[0].inputs.values() for dim in dims}
        case = replace(known[name], sizes=sizes)
        monkeypatch.setattr(measure, "cases", lambda case=case: iter([case]))
        # Scores are over √d, and the small program has another d.
        was, now = (repr(all_sizes.get("d", 1) ** -0.5) for all_sizes in (known[name].sizes, sizes))
        mugraph = json.loads(json.dumps(encoded(small[1])).replace(was, now))
        run = measure.measure({**kept[name], "mugraph": mugraph}, Clock(), "cpu")
        others = ["scaled_dot_product_attention"] if "attention" in case.program else []
        assert [one.name for one in run.contestants] == ["operators", *others, "ours, triton"]
        assert all(one.is_right for one in run.contestants), run
        assert [row[3:6] for row in run.rows()] == [
            (f"{8 - 2 * at:.2f}", f"{9 - 2 * at:.2f}", f"{8 / (8 - 2 * at):.2f}")
            for at in range(len(run.contestants))
        ]


@pytest.mark.usefixtures("interpreted")
def test_what_computes_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.mirage.on_gpu import launches, measure

    case = Case("norm", "gated_mlp", {"m": 16, "k": 64, "n": 32})
    monkeypatch.setattr(measure, "cases", lambda: iter([case]))
    monkeypatch.setattr(measure, "LAUNCHES", {"triton": launches.LAUNCHES["triton"]})
    wrong = encoded(rmsnorm_linear())
    kept = {"search": {"case": "norm"}, "mugraph": wrong, "best_us": 5.0, "library_us": 10.0}
    run = measure.measure(kept, Clock(), "cpu")
    operators, ours = run.contestants
    assert operators.is_right and operators.warm_us == 8.0
    assert not ours.is_right and ours.warm_us is None and ours.remark


@pytest.mark.usefixtures("interpreted")
def test_the_fastest_of_several_is_chosen_and_a_wrong_one_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bench.mirage.on_gpu import launches, measure

    case = Case("norm", "rmsnorm_linear", {"m": 2, "k": 32, "n": 16})
    monkeypatch.setattr(measure, "cases", lambda: iter([case]))
    monkeypatch.setattr(measure, "LAUNCHES", {"triton": launches.LAUNCHES["triton"]})
    device = Multiprocessors(load_profile("h100"))
    graphs = nearly_cheapest(case.build(), SearchOptions(max_kernels=1), device, 3)
    first, *others = ({"us": 1.0, "mugraph": encoded(each.graph)} for each in graphs)
    kept = {"search": {"case": "norm"}, "best_us": 5.0, "library_us": 10.0, **first}
    run = measure.measure({**kept, "others": others}, Clock(), "cpu")
    *_, tuned = run.contestants  # the clock says that what it sees later is quicker
    assert (tuned.name, tuned.is_right) == ("ours, triton, tuned", True)
    assert tuned.remark == "number 3 of 3 by the model: 8.0 6.0 4.0 µs"
    monkeypatch.setattr(measure, "TOLERANCE", 0.0)
    *_, tuned = measure.measure({**kept, "others": others}, Clock(), "cpu").contestants
    assert not tuned.is_right and tuned.warm_us is None


def _drawn(graph: MuGraph) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        name: random.standard_normal([dim.size for dim in dims]) / 2
        for name, dims in graph.inputs.items()
    }
