"""Small ONNX models for tests, and running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from relational_tensat.formats import load_model, save_model
from relational_tensat.tensor import Graph

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
Shape = Sequence[int | str | None] | None


def tensor(name: str, shape: Shape, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name: str, value: Any, dtype: Any = None) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.asarray(value, dtype), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
    domains: Mapping[str, int] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "test", list(inputs), list(outputs), list(constants))
    imports = {"": opset, **(domains or {})}
    return helper.make_model(
        graph,
        ir_version=8,
        opset_imports=[helper.make_opsetid(name, version) for name, version in imports.items()],
        **more,
    )


def session(file: onnx.ModelProto | Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    source = str(file) if isinstance(file, Path) else file.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def feeds(runner: onnxruntime.InferenceSession, seed: int = 0) -> dict[str, Any]:
    """Return random inputs for a session."""
    generator = np.random.default_rng(seed)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    return {
        value.name: (generator.random(value.shape) * 3).astype(kinds[value.type])
        for value in runner.get_inputs()
    }


def round_trip(
    original: onnx.ModelProto, folder: Path, dims: Mapping[str, int] | None = None
) -> tuple[Graph, onnx.ModelProto]:
    """Save, load, save and load again; also through JSON. Return the graph and what was written."""
    source, target, text = folder / "a.onnx", folder / "b.onnx", folder / "b.json"
    onnx.save(original, source)
    graph = load_model(source, dims)
    save_model(graph, text)
    save_model(load_model(text), target)
    again = load_model(target)
    assert again.inputs == graph.inputs
    assert again.output_types() == graph.output_types()
    return graph, onnx.load(target)


def assert_same_results(
    original: onnx.ModelProto, written: onnx.ModelProto, inputs: Mapping[str, Any] | None = None
) -> None:
    """Run both models on the same inputs; names and values of all outputs must be equal."""
    names = [value.name for value in original.graph.output]
    assert [value.name for value in written.graph.output] == names
    first = session(original)
    feed = dict(inputs or feeds(first))
    for want, actual in zip(first.run(names, feed), session(written).run(names, feed), strict=True):
        assert_equal(want, actual)


def assert_equal(want: Any, actual: Any) -> None:
    if isinstance(want, list):
        assert len(want) == len(actual)
        for one, other in zip(want, actual, strict=True):
            assert_equal(one, other)
    elif np.asarray(want).dtype.kind == "f":
        np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(actual, want)
