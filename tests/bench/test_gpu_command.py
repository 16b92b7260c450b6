"""``python -m bench gpu`` on the NumPy double of a GPU: it resumes, verifies, and says what is missing."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.exports.catalogue import ALL_EXPORTS
from bench.gpu import command as gpu_command
from bench.gpu import configurations as record
from bench.gpu import measure as gpu_measure
from bench.gpu import optimize as gpu_optimize
from bench.gpu.element_type import ELEMENT_TYPES, with_element_type
from bench.gpu.measure import ModelRun, Session, VariantRun
from relational_tensat.base.files import resource_dir
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.cuda import cuda_device as device_module
from relational_tensat.cost.cuda.cuda_device import CudaDevice
from relational_tensat.cost.cuda.protocol import WARM, Settings
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.gpu.catalogue import MATH_MODES
from relational_tensat.gpu.cuda import open_gpu
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.cost.cuda.double import CudaDouble, FakeRecording, FakeTimer
from tests.cost.fakes import FakeDevice, products
from tests.graphs import f32

_FEW = Settings(warm_up_us=0.0, window=2, fewest=2, most=2, fewest_batch=2, most_batch=2)
_WHOLE = replace(_FEW, short_us=0.0, modes=(WARM,))


def _tiny() -> Graph:
    """Two products of one input: rules merge them."""
    weights = {name: Weight(f32(4, 4)) for name in ("w1", "w2")}
    nodes = [
        Node("matmul", ("x", "w1"), ("a",)),
        Node("matmul", ("x", "w2"), ("b",)),
        Node("add", ("a", "b"), ("y",)),
    ]
    return build_graph("tiny", {"x": f32(4, 4)}, weights, nodes, ["y"])


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    monkeypatch.setattr(device_module, "Timer", FakeTimer)
    monkeypatch.setattr(device_module, "record_launches", FakeRecording)
    monkeypatch.setattr(record, "all_models", lambda: {"tiny": None})
    monkeypatch.setattr(record, "load", lambda name, path: _tiny())
    rules = load_rules([resource_dir("rules") / "matmul.rules"], ["sum-of-products-sharing-left"])
    sets = dict.fromkeys(gpu_optimize.RULE_SETS, lambda: rules)
    monkeypatch.setattr(gpu_optimize, "RULE_SETS", sets)
    library: Any = CudaDouble()
    device = CudaDevice(library, settings=_FEW)
    cache = CostCache(tmp_path / "costs.duckdb")
    return Session(
        library=library,
        timer=FakeTimer(library),
        record=FakeRecording,
        source=MeasuredSource("cuda", device, cache),
        math="fp32",
        runs_path=tmp_path / "runs.json",
        stamp={"device": "double"},
        until_s=time.perf_counter() + 1000,
        settings=_WHOLE,
    )


def test_each_model_is_optimized_verified_and_timed_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = gpu_command.measure(["tiny"], session)
    assert set(run.variants) == {"original", "tensat", "ours", "kernels"}
    for variant in run.variants.values():
        assert (variant.median_us, variant.note) == (30.0, "")
        assert variant.worst_error is not None and variant.worst_error < 1e-3
    assert run.variants["ours"].modelled_us < run.variants["original"].modelled_us
    assert run.speedup("ours") == 1.0
    modelled = run.speedup("ours", modelled=True)
    assert modelled is not None and modelled > 1.0
    assert session.library.memory.live == 0
    # What is done is not done again, unless something else was done.
    monkeypatch.setattr(gpu_measure, "optimize_for", lambda *_, **__: pytest.fail("again"))
    assert gpu_command.measure(["tiny"], session) == [run]
    other = replace(session, stamp={"device": "another"})
    assert gpu_measure._known("tiny", other) is None
    session.runs_path.write_text("{", encoding="utf-8")
    assert gpu_measure._known("tiny", session) is None


def test_time_that_is_up_is_reported(session: Session) -> None:
    over = replace(session, until_s=time.perf_counter() - 1)
    assert gpu_command.measure(["tiny"], over) == []
    assert "0 of 1 models are done: call it again" in gpu_command.text_of([], ["tiny"])


def test_a_graph_that_computes_something_else_is_not_timed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = build_graph(
        "wrong",
        {"x": f32(4, 4)},
        {"w1": Weight(f32(4, 4))},
        [Node("matmul", ("x", "w1"), ("y",))],
        ["y"],
    )

    def optimize(graph: Graph, rules: str, source: Any, **_: Any) -> gpu_optimize.Optimized:
        return gpu_optimize.Optimized(wrong if rules == "tensat" else graph, 1.0, 3, True)

    monkeypatch.setattr(gpu_measure, "optimize_for", optimize)
    (run,) = gpu_command.measure(["tiny"], session)
    assert run.variants["tensat"].median_us is None
    assert "wrong on the device: output 'y' is off by" in run.variants["tensat"].note
    assert run.variants["ours"].median_us == 30.0
    text = gpu_command.text_of([run], ["tiny"])
    assert "tiny, tensat: wrong on the device" in text


def _run(**times_us: float) -> ModelRun:
    variants: Mapping[str, VariantRun] = {
        name: VariantRun(modelled_us=time_us / 2, median_us=time_us)
        for name, time_us in times_us.items()
    }
    return ModelRun("m", variants, 0.0)


def test_the_table_shows_measured_beside_modelled() -> None:
    run = _run(original=100.0, tensat=80.0, ours=50.0, kernels=40.0)
    text = gpu_command.text_of([run], ["m"])
    assert text.splitlines()[1].split() == [
        "m",
        "100.0",
        "80.0",
        "50.0",
        "40.0",
        "1.250",
        "1.250",
        "2.000",
        "2.000",
        "2.500",
        "2.500",
    ]


def test_figures_are_saved_with_gpu_versions_and_commit(session: Session, tmp_path: Path) -> None:
    device = CudaDevice(session.library, settings=_FEW)
    options = argparse.Namespace(out=tmp_path / "results", math="fp32", dtype="float32", k=1)
    path = gpu_command.save(
        [_run(original=2.0, tensat=1.0, ours=1.0)], options, device, {"cudnn": "9"}
    )
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.name.startswith("gpu-20") and path.name.endswith("-nvidia-test-fp32.json")
    assert content["gpu"] == {"name": "NVIDIA Test", "driver": "580.1", "libraries": {"cudnn": "9"}}
    assert content["runs"][0]["variants"]["ours"]["median_us"] == 1.0
    rounded = CudaDevice(session.library, "tf32", settings=_FEW)
    options.math = "tf32"
    path = gpu_command.save([_run(original=2.0, tensat=1.0, ours=1.0)], options, rounded, {})
    assert path.name.endswith("-nvidia-test-tf32.json")


def test_without_a_gpu_one_line_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    open_gpu.cache_clear()
    monkeypatch.setitem(sys.modules, "pycuda", None)
    assert main(["gpu"]) == 2
    message = capsys.readouterr().err
    assert message == (
        "error: running on NVIDIA GPUs needs PyCUDA: pip install 'relational-tensat[gpu]'\n"
    )


def test_models_in_float16(session: Session) -> None:
    graph = with_element_type(_tiny(), "float16")
    run = gpu_measure.measure_model("tiny", graph, replace(session, dtype="float16"))
    assert run is not None and {kind.dtype for kind in graph.inputs.values()} == {"float16"}
    assert all(variant.median_us for variant in run.variants.values()), run


def test_the_script_for_a_machine_with_a_gpu() -> None:
    script = Path("bench/gpu_machine.sh")
    usage = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert usage.returncode == 2 and "all WHEELS OUT" in usage.stdout
    text = script.read_text(encoding="utf-8")
    wanted = re.findall(r'measure_models "\$out" (\w+) (\w+)', text)
    assert all(math in MATH_MODES and dtype in ELEMENT_TYPES for math, dtype in wanted)
    assert {dtype for _, dtype in wanted} == set(ELEMENT_TYPES)
    (exports,) = re.findall(r'^EXPORTS="(.*)"$', text, re.MULTILINE)
    assert set(exports.split()) <= {export.name for export in ALL_EXPORTS}


def test_a_graph_asks_for_each_configuration_once_and_its_e_graph_for_more() -> None:
    own = record.graph_configurations(_tiny())
    assert sorted(configuration.op for configuration in own) == ["add", "matmul"]
    more = record.egraph_configurations(_tiny())
    assert set(own) < set(more)
    assert "split" in {configuration.op for configuration in more}  # the products merged


def test_measuring_ends_with_its_time(tmp_path: Path) -> None:
    source = MeasuredSource("cpu", FakeDevice(), CostCache(tmp_path / "costs.duckdb"))
    configurations = products(10)
    assert list(record.record(source, configurations, time.perf_counter() - 1)) == []
    assert list(record.record(source, configurations, time.perf_counter() + 60)) == [8, 10]
