"""The processor as a device, on tiny operators: what it answers, not how long things take."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import MissingDependencyError, UsageError
from relational_tensat.cost import Configuration, TimingSample, Unmeasurable, cpu
from relational_tensat.cost.cpu import onnxruntime_device as device
from relational_tensat.cost.cpu import open_device, probe, samples, session
from relational_tensat.cost.cpu.onnxruntime_device import OnnxRuntimeDevice
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.cpu.quiet import clock_of
from relational_tensat.cost.cpu.samples import Evictor
from relational_tensat.cost.device import PROTOCOLS
from relational_tensat.cost.key import configuration_of, sample_fault
from relational_tensat.cost.opener import open_device as open_by_name
from relational_tensat.formats import load_model
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators.layout import Expand
from relational_tensat.tensor.uses import inference_nodes
from tests.cost.fakes import configuration
from tests.graphs import f32


class _Always:
    """A processor that nobody disturbs."""

    def slowdown(self) -> float:
        return 1.0


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> OnnxRuntimeDevice:
    monkeypatch.setattr(device, "processor_watch", _Always)
    monkeypatch.setattr(probe, "_SAMPLE_US", 2.0)
    return OnnxRuntimeDevice()


def _one(processor: OnnxRuntimeDevice, what: Configuration) -> TimingSample | Unmeasurable:
    ((key, result),) = processor.measure([what])
    assert key is what
    return result


def test_the_key_names_processor_versions_and_mode() -> None:
    key = open_device().key
    assert key.kind == "cpu"
    assert key.name
    assert key.driver
    assert key.libraries == {
        "onnx": version("onnx"),
        "onnxruntime": version("onnxruntime"),
        "optimizations": "off",
    }
    assert key.protocol == PROTOCOLS["cpu"].version
    assert open_device().statistic == "p10_us"


def test_with_graph_optimizations_it_is_another_device() -> None:
    off, full = open_device().key, open_by_name("cpu:all").key
    assert full.name == f"{off.name}, graph optimizations on"
    assert full.libraries == {**off.libraries, "optimizations": "all"}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def find(name: str) -> Any:
        return None if name == "onnxruntime" else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(MissingDependencyError, match=r"needs onnxruntime: pip install"):
        open_device()


def test_without_onnxruntime_the_command_says_what_to_install(tmp_path: Path) -> None:
    """In a process of its own: here it has been imported."""
    model = tmp_path / "m.json"
    model.write_text("{}", encoding="utf-8")  # it is not read any more
    run = "from relational_tensat.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.run(
        [
            sys.executable, "-c", f"import sys; sys.modules['onnxruntime'] = None; {run}",
            "run", str(model), "--cost", "cpu",
        ],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert process.returncode == MissingDependencyError.exit_code
    assert "needs onnxruntime: pip install" in process.stderr


@pytest.mark.parametrize(
    "what",
    [
        configuration("relu", f32(4, 4)),
        configuration("reshape", f32(4, 4), shape=(16,)),
        configuration("split", f32(4, 4), axis=1, sizes=(1, 3)),
        configuration("matmul", f32(4, 4), f32(4, 4), f32(4), act="tanh"),
        configuration(
            "conv", f32(1, 2, 4, 4), f32(2, 2, 3, 3), stride=(1, 1), pad="same", act="relu"
        ),
        configuration("layer_norm", f32(2, 4), f32(4), f32(4), axis=1, epsilon=1e-5),
        configuration("gather", f32(5, 3), TensorType("int64", (2,)), axis=0),
        configuration("add", TensorType("float16", (3,)), TensorType("float16", (3,))),
    ],
    ids=lambda configuration: configuration.op,
)
def test_measuring_gives_a_sample(processor: OnnxRuntimeDevice, what: Configuration) -> None:
    result = _one(processor, what)
    assert isinstance(result, TimingSample)
    assert sample_fault(result) == ""
    assert 0 < result.samples <= 30  # disturbed ones do not count


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (
            configuration("fill", value=1.0, dtype="float32", shape=(2,)),
            "fill runs no kernel",
        ),
        (configuration("part", (f32(2), f32(3)), index=0), "part runs no kernel"),
        (configuration("relu", TensorType("bfloat16", (3,))), "NumPy has no bfloat16"),
        (configuration("add", f32(1 << 14, 1 << 14), f32()), "2,147,483,652 bytes of operands"),
        (
            configuration(
                "conv", *(TensorType("float64", (1, 1, 3)),) * 2, stride=(1,), pad="valid"
            ),
            "onnxruntime cannot run conv: .*NOT_IMPLEMENTED",
        ),
    ],
    ids=lambda value: value.op if isinstance(value, Configuration) else "",
)
def test_what_cannot_be_measured_says_why(
    processor: OnnxRuntimeDevice, what: Configuration, reason: str
) -> None:
    result = _one(processor, what)
    assert isinstance(result, Unmeasurable)
    assert "\n" not in result.reason
    assert re.search(reason, result.reason)


def test_results_are_handed_over_one_by_one(processor: OnnxRuntimeDevice) -> None:
    configurations = [configuration("relu", f32(n)) for n in (3, 4)]
    results = processor.measure(configurations)
    first, result = next(results)
    assert first is configurations[0]
    assert isinstance(result, TimingSample)


def test_small_operators_are_repeated_and_large_ones_are_not() -> None:
    small, large = configuration("relu", f32(4)), configuration("relu", f32(1 << 13, 1 << 12))
    assert probe.wanted_copies(0.5, probe.operand_bytes(small)) == 32
    assert probe.wanted_copies(100.0, probe.operand_bytes(small)) == 2
    assert probe.wanted_copies(10_000.0, probe.operand_bytes(small)) == 1
    assert probe.wanted_copies(-1.0, probe.operand_bytes(small)) == 32
    assert probe.wanted_copies(0.5, probe.operand_bytes(large)) == 2  # so many fit


def test_sessions_have_one_thread_and_the_graph_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = importlib.import_module("onnxruntime")
    made: list[Any] = []
    real: Callable[..., Any] = runtime.InferenceSession

    def make(model: bytes, options: Any, providers: list[str]) -> Any:
        made.append(options)
        return real(model, options, providers=providers)

    monkeypatch.setattr(runtime, "InferenceSession", make)
    probe = make_probe(configuration("relu", f32(4)), 1)
    for mode in session.OPTIMIZATIONS:
        session.prepare(probe.with_operator, probe.feeds, mode)()
    off, full = made
    assert off.graph_optimization_level == runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert full.graph_optimization_level == runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert {settings.intra_op_num_threads for settings in made} == {1}
    assert {settings.inter_op_num_threads for settings in made} == {1}


def test_caches_are_cold_for_weights_only(processor: OnnxRuntimeDevice) -> None:
    weighted = configuration("matmul", f32(4, 4), f32(4, 4))
    assert isinstance(processor.prepare(weighted).pair.before, Evictor)
    relu = configuration("relu", f32(4))
    assert processor.prepare(relu).pair.before is probe.leave_caches


def test_weights_of_a_small_graph_stay_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "l2_bytes", lambda: 1 << 10)
    monkeypatch.setattr(probe, "_SAMPLE_US", 1e9)  # as many copies as there may be
    weighted = configuration("matmul", f32(4, 4), f32(4, 4))
    any_graph = OnnxRuntimeDevice()
    large, small = any_graph.adapted(513), any_graph.adapted(512)
    assert large.key == any_graph.key
    assert small.key.name == f"{any_graph.key.name}, weights in L2"
    assert small.key.libraries == {**any_graph.key.libraries, "weights": "in L2"}
    small_graph = small.prepare(weighted)
    assert small_graph.pair.before is probe.leave_caches
    assert small_graph.copies == 1024 // (3 * 4 * 4 * 4)  # that is what fits
    assert any_graph.prepare(weighted).copies == 32
    assert small.adapted(513).key == any_graph.key


def test_weights_of_a_large_graph_come_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "l2_bytes", lambda: 1 << 10)
    monkeypatch.setattr(probe, "l3_bytes", lambda: 1 << 12)
    any_graph = OnnxRuntimeDevice()
    assert any_graph.adapted(1024).key == any_graph.key
    large = any_graph.adapted(1025)
    assert large.key.name == f"{any_graph.key.name}, weights in memory"
    assert large.key.libraries == {**any_graph.key.libraries, "weights": "in memory"}
    weighted = configuration("matmul", f32(4, 4), f32(4, 4))
    assert isinstance(large.prepare(weighted).pair.before, Evictor)
    assert large.adapted(1024).key == any_graph.key


def test_a_time_of_zero_is_measured_again_and_never_reported(
    processor: OnnxRuntimeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = [TimingSample(0.0, 0.0, 1.0, 30)] * 2 + [TimingSample(2.0, 1.0, 3.0, 30)]
    monkeypatch.setattr(samples, "difference", lambda *_: differences.pop(0))
    assert _one(processor, configuration("relu", f32(4))) == TimingSample(2.0, 1.0, 3.0, 30)
    differences += [TimingSample(0.0, 0.0, 1.0, 30)] * 3
    result = _one(processor, configuration("relu", f32(5)))
    assert result == Unmeasurable("relu: takes less than the noise of its operands")


def test_an_operand_that_is_a_shape_is_the_shape_of_the_result(
    processor: OnnxRuntimeDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random numbers are none: onnxruntime refuses them."""
    monkeypatch.setattr(
        Expand, "read_onnx", lambda self, node: None
    )  # as if its shape were not known
    shape = onnx.numpy_helper.from_array(np.array([2, 4, 3]), "shape")
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Expand", ["x", "shape"], ["y"])],
            "expand",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 1, 3))],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (2, 4, 3))],
            [shape],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 18)],
    )
    onnx.save(model, tmp_path / "expand.onnx")
    ((node, inputs, output),) = inference_nodes(load_model(tmp_path / "expand.onnx"))
    assert node.op == "opaque"
    result = _one(processor, configuration_of(node.op, inputs, output, node.attrs))
    assert isinstance(result, TimingSample)


def test_threads_are_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "processors", lambda: 4)
    one, several = open_device(), open_by_name("cpu:all:threads=4")
    assert open_by_name("cpu:threads=1").key == one.key
    assert several.key.libraries["threads"] == "4"
    assert several.key.name.endswith(", graph optimizations on, 4 threads")
    assert several.adapted(0).key.libraries["threads"] == "4"
    for count in (0, 5):
        with pytest.raises(
            UsageError, match=f"threads={count}: expected 1 to 4, the processors here"
        ):
            open_by_name(f"cpu:threads={count}")


def test_several_threads_are_timed_by_wall_time() -> None:
    def sleep() -> None:
        time.sleep(0.002)

    assert clock_of(2)(sleep) >= 2_000 > clock_of(1)(sleep)


def test_an_operator_is_measured_with_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "processors", lambda: 2)
    processor = open_by_name("cpu:threads=2")
    product = configuration("matmul", f32(64, 256), f32(256, 256))
    ((_, sample),) = processor.measure([product])
    assert isinstance(sample, TimingSample) and sample.p10_us > 0
