from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from bench.onnx.counts import KERNEL_RULES, count_model, count_optimized
from bench.onnx.tools import ORT_BASIC, ORT_EXTENDED, inference_nodes, optimized_by
from relational_tensat.cost import load_profile
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from tests.bench.onnx_bench_tools import write_tiny
from tests.formats.onnx_tools import constant, model, tensor

T4 = load_profile("t4")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "tiny.onnx")


def test_constants_are_folded_and_kernels_fused(tiny: Path) -> None:
    counted = count_model(onnx.load(tiny), T4, "tiny")
    assert counted.written.ops == {"add": 1, "matmul": 1, "relu": 1}
    assert counted.written.nodes == 3
    assert counted.fused.ops == {"matmul": 1}
    # One kernel instead of three: two launches of 5 µs less, and less to read and write.
    assert 10 < counted.written.cost_us - counted.fused.cost_us < 11


def test_a_graph_of_ours_counts_as_its_file_does(tiny: Path) -> None:
    graph = load_model(tiny)
    assert count_optimized(graph, T4).written == count_model(onnx.load(tiny), T4, "tiny").written


def test_the_kernel_rules_exist_and_are_no_others() -> None:
    names = {rule.name.partition("[")[0] for rule in load_rules(only=KERNEL_RULES)}
    assert names == set(KERNEL_RULES)


def test_nodes_of_a_file_are_those_that_inputs_reach() -> None:
    file = model(
        [
            helper.make_node("Constant", [], ["c"], value_float=2.0),
            helper.make_node("Mul", ["c", "w"], ["v"]),
            helper.make_node("Clip", ["x", "", "v"], ["y"]),
            helper.make_node("Own", ["y"], ["z"], domain="own"),
        ],
        [tensor("x", [2])],
        [tensor("z", [2])],
        [constant("w", 1.0, "float32")],
        domains={"own": 1},
    )
    assert inference_nodes(file) == 2


@pytest.mark.parametrize("tool", [ORT_BASIC, ORT_EXTENDED])
def test_onnxruntime_optimizes_old_files_too(tool: str, tmp_path: Path) -> None:
    file = onnx.load(write_tiny(tmp_path / "tiny.onnx"))
    file.ir_version = 3  # every initializer is an input
    shapes = [tensor(item.name, list(item.dims)) for item in file.graph.initializer]
    file.graph.input.extend(shapes)
    onnx.save(file, tmp_path / "old.onnx")
    optimized = optimized_by(tool, tmp_path / "old.onnx")
    assert optimized.seconds > 0
    assert inference_nodes(optimized.model) <= 3
    assert optimized.model.ir_version >= 4
