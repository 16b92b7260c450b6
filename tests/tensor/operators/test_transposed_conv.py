"""Transposed convolutions, as onnxruntime computes them, and their rules on a whole model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat import Options, optimize
from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators import get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


@st.composite
def transposed(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], dict[str, Any]]:
    rank = draw(st.sampled_from([2, 2, 1, 3]))
    groups, inner, filters = draw(st.tuples(*[st.integers(1, 3)] * 3))
    kernel = draw(st.tuples(*[st.integers(2, 3)] * rank))
    stride = draw(st.tuples(*[st.integers(1, 3)] * rank))
    attrs: Any = {
        "stride": stride,
        "crop": draw(st.tuples(*[st.integers(0, 1)] * (2 * rank))),
        "extra": tuple(draw(st.integers(0, step - 1)) for step in stride),
        "dilation": draw(st.sampled_from([(), (2,) * rank])),
        "groups": groups,
    }
    x = (draw(st.integers(1, 2)), groups * inner, *draw(st.tuples(*[st.integers(2, 4)] * rank)))
    shapes = [x, (groups * inner, filters, *kernel), (groups * filters,)]
    return shapes[: draw(st.integers(2, 3))], attrs


@settings(max_examples=30, deadline=None)
@given(transposed())
def test_conv_transpose(case: tuple[list[tuple[int, ...]], dict[str, Any]]) -> None:
    shapes, attrs = case
    arrays = [drawn(shape, seed) for seed, shape in enumerate(shapes)]
    check_against_onnxruntime("conv_transpose", arrays, attrs, tolerance=1e-4)


def test_residues_are_those_of_the_integers() -> None:
    operator, field = get_operator("conv_transpose"), Field(3)
    x, w, b = (np.arange(size).reshape(shape) % 5 for size, shape in (
        (24, (1, 4, 2, 3)), (32, (4, 2, 2, 2)), (4, (4,)),
    ))  # fmt: skip
    attrs = operator.normalize({"stride": (2, 1), "groups": 2})
    types = tuple(f32(*each.shape) for each in (x, w, b))
    exact = operator.evaluate_exact([x, w, b], types, attrs, field)
    whole = operator.evaluate([x, w, b], attrs)
    assert np.array_equal(exact, field.reduced(whole.astype(np.int64)))


@pytest.mark.parametrize(
    "attrs", [{"groups": 3}, {"crop": (1,)}, {"crop": (9, 0, 9, 0)}, {"extra": (-1, 0)}]
)
def test_what_does_not_fit(attrs: Any) -> None:
    with pytest.raises(ShapeError, match="conv_transpose"):
        get_operator("conv_transpose").check(
            (f32(1, 4, 2, 3), f32(4, 2, 2, 2)), {"stride": (2, 1), **attrs}
        )


def test_norms_and_sums_go_into_the_weights(tmp_path: Path) -> None:
    """As detectors of text have them; of two groups, at a stride that leaves gaps."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,4,5,6] x) => (float[N,6,a,b] y) {
          t = ConvTranspose<strides=[3,3], group=2>(x, W)
          n = BatchNormalization(t, S, B, M, V)
          s = Mul(n, K)
          y = Add(s, C)
        }"""
    )
    shapes = {"W": (4, 3, 2, 2), **dict.fromkeys("SBMV", (6,)), "K": (6, 1, 1), "C": (6, 1, 1)}
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        array = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(model, path)
    rules = ("norm-into-transposed-convolution", "scale-into-biased-transposed-convolution",
             "bias-into-biased-transposed-convolution")  # fmt: skip
    optimize(path, Options.of(cost="t4", only=rules, allow_unsound=True), output=target)
    assert [node.op_type for node in onnx.load(target).graph.node] == ["ConvTranspose"]
    x = rng.normal(size=(2, 4, 5, 6)).astype(np.float32)
    before, after = (
        onnxruntime.InferenceSession(file).run(None, {"x": x})[0] for file in (path, target)
    )
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
