"""Quotients in the shapes of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.parser import parse_model

from relational_tensat.formats import load_dynamic
from relational_tensat.formats.dynamic.expressions import Expression
from relational_tensat.formats.dynamic.sized_model import DynamicModel
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Graph

_TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,3,h,w] x, float[4,3,3,3] k, float[4,4,3,3] l) => (float[n,a,b,c] y)
{{
    c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k)
    r = Relu (c)
    p = MaxPool <kernel_shape = [3, 3], strides = [{stride}, {stride}], ceil_mode = {ceil}> (r)
    d = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (p, l)
    e = Relu (d)
    f = Relu (e)
    s = Shape (f)
    z = ConstantOfShape (s)
    y = Add (f, z)
}}"""


def _loaded(folder: Path, stride: int, ceil: int, text: str = _TEXT) -> tuple[Path, DynamicModel]:
    model = parse_model(text.format(stride=stride, ceil=ceil))
    rng = np.random.default_rng(0)
    for value in (model.graph.input[2], model.graph.input[1]):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        data = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(data, value.name))
        model.graph.input.remove(value)
    path = folder / "strided.onnx"
    onnx.save(model, path)
    read = load_dynamic(path)
    assert isinstance(read, DynamicModel)
    return path, read


@pytest.mark.parametrize(("stride", "ceil"), [(2, 0), (2, 1), (3, 1)])
def test_sizes_behind_strides_are_those_of_the_model_at_any_size(
    tmp_path: Path, stride: int, ceil: int
) -> None:
    _, model = _loaded(tmp_path, stride, ceil)
    (last,) = (
        q for q in model.quotients if q.divisor == 4 * stride and q.numerator.symbols == {"h"}
    )
    for h in range(24, 24 + 4 * stride):
        graph = model.at({"n": 1, "h": h, "w": 33})
        assert isinstance(graph, Graph)
        offset = graph.types["f"].shape[2] - last.value({"h": h})  # type: ignore[union-attr]
        assert offset == model.base.graph.types["f"].shape[2] - last.value(model.base.sizes)  # type: ignore[union-attr]


def test_sizes_of_constants_are_quotients_of_the_nodes_before(tmp_path: Path) -> None:
    """As the grid of a detector: integers of its maps' sizes, too many of them as floats to be folded."""
    grid = """z = ConstantOfShape <value: tensor = int64[1] {{7}}> (s)
    q = Cast <to = 1> (z)
    y = Add (f, q)"""
    text = _TEXT.replace("z = ConstantOfShape (s)\n    y = Add (f, z)", grid)
    _, model = _loaded(tmp_path, 2, 0, text)
    assert "z" in model.base.computed and "q" not in model.base.computed


def test_the_result_stays_dynamic_and_computes_the_same_at_other_sizes(tmp_path: Path) -> None:
    import onnxruntime

    path, _ = _loaded(tmp_path, 2, 1)
    target = tmp_path / "out.onnx"
    result = optimize(path, Options.of(cost="t4", iterations=3), output=target)
    assert not result.unchanged and "h" in str(onnx.load(target).graph.input[0])
    sessions = [onnxruntime.InferenceSession(str(file)) for file in (path, target)]
    for h, w in ((37, 50), (38, 51), (64, 96), (23, 200)):
        x = np.random.default_rng(h).normal(size=(2, 3, h, w)).astype(np.float32)
        one, other = (session.run(None, {"x": x})[0] for session in sessions)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


_LINEAR = st.tuples(st.integers(-5, 9), st.integers(-3, 5), st.integers(-3, 5))


@given(_LINEAR, st.lists(st.tuples(st.integers(1, 6), st.integers(-4, 7)), max_size=3))
def test_quotients_of_quotients_are_exact(
    start: tuple[int, int, int], steps: list[tuple[int, int]]
) -> None:
    number, a, b = start
    expression = Expression.of("a") * a + Expression.of("b") * b + number
    for divisor, more in steps:
        expression = expression // divisor + more
    for sizes in ({"a": 1, "b": 1}, {"a": 7, "b": 12}, {"a": 64, "b": 5}):
        value = sizes["a"] * a + sizes["b"] * b + number
        for divisor, more in steps:
            value = value // divisor + more
        assert expression.value(sizes) == value
        assert all(q.numerator.value(sizes) >= 0 for q in expression.quotients)
