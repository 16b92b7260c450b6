"""Models in which operators that are carried through take much of the time, beside what rules improve.

Each has such an operator, and a chain of products and sums before or after it that has a cheaper form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

_ROWS, _WIDTH = 64, 256
#: What rules improve: a product with a bias, a scale, and functions applied twice.
_CHAIN = """c0 = MatMul(x, W) c1 = Add(c0, B) c2 = Mul(c1, K) c3 = Relu(c2) c4 = Relu(c3)
  c5 = Transpose<perm=[1,0]>(c4) c6 = Transpose<perm=[1,0]>(c5) h = Sub(c6, N)"""


def all_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the models with their names."""
    image = {"image": np.array([1, 4, 64, 64], np.int64)}

    def drawn(*shape: int) -> Any:
        return (np.random.default_rng(sum(shape)).random(shape) - 0.5).astype(np.float32)

    recurrent = {
        name: (drawn(1, gates * 64, _WIDTH), drawn(1, gates * 64, 64))
        for name, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    }
    for name, (weights, states) in recurrent.items():
        text = f"s = Reshape(h, steps) y = {name}<hidden_size=64>(s, U, V)"
        steps = {"steps": np.array([_ROWS, 1, _WIDTH], np.int64)}
        yield name, _model(text, {"U": weights, "V": states, **steps})
    yield "TopK", _model("y, i = TopK<axis=1>(h, k)", {"k": np.array([16], np.int64)})
    yield "CumSum", _model("y = CumSum(h, axis)", {"axis": np.array(1, np.int64)})
    yield "Einsum", _model('y = Einsum<equation="ij,kj->ik">(h, h)', {})
    yield (
        "Resize",
        _model(
            'r = Reshape(h, image) y = Resize<mode="linear">(r, "", scales)',
            {**image, "scales": np.array([1, 1, 2, 2], np.float32)},
        ),
    )
    yield "GridSample", _model("r = Reshape(h, image) y = GridSample(r, grid)",
                               {**image, "grid": drawn(1, 64, 64, 2)})  # fmt: skip
    yield "STFT", _model("r = Reshape(h, signal) y = STFT(r, step, window, length)",
                         {"signal": np.array([1, _ROWS * _WIDTH, 1], np.int64),
                          "step": np.array(64, np.int64), "window": drawn(256),
                          "length": np.array(256, np.int64)})  # fmt: skip
    yield "DFT", _model("r = Reshape(h, rows) y = DFT<axis=1>(r)",
                        {"rows": np.array([_ROWS, _WIDTH, 1], np.int64)})  # fmt: skip
    yield "Mod", _model("y = Mod<fmod=1>(h, N)", {})
    yield "Trilu", _model("y = Trilu(h)", {})
    yield "LpNormalization", _model("y = LpNormalization<axis=1, p=2>(h)", {})
    yield "LRN", _model("r = Reshape(h, image) y = LRN<size=3>(r)", image)
    yield (
        "Scan",
        _model(
            """y, z = Scan<num_scan_inputs=1,
           body = b (float[256] p, float[256] w) => (float[256] q, float[256] r) {
           u = Abs(w) v = Abs(u) q = Add(p, v) r = Tanh(q) }>(zero, h)""",
            {"zero": np.zeros(_WIDTH, np.float32)},
        ),
    )
    yield (
        "Loop",
        _model(
            """y = Loop(turns, "", h)
           <body = b (int64 i, bool c, float[64,256] p) => (bool o, float[64,256] q) {
           o = Identity(c) u = Tanh(p) v = Relu(u) w = Relu(v) q = Add(w, p) }>""",
            {"turns": np.array(8, np.int64)},
        ),
    )
    yield "NonMaxSuppression", _model(
        "b = Slice(h, from, to, last) r = Reshape(b, boxes) s = Reshape(e, scores) "
        "y = NonMaxSuppression(r, s, most)",
        {"from": np.array([0], np.int64), "to": np.array([4], np.int64), "last": np.array([1], np.int64),
         "boxes": np.array([1, _ROWS, 4], np.int64), "scores": np.array([1, 1, _ROWS], np.int64),
         "e": drawn(_ROWS), "most": np.array([10], np.int64)},
    )  # fmt: skip
    yield from _moving(drawn)
    yield from _of_images(drawn, image)
    both = {"U": drawn(2, 256, _WIDTH), "V": drawn(2, 256, 64), **steps}
    yield (
        "LSTM, both directions",
        _model(
            's = Reshape(h, steps) y = LSTM<hidden_size=64, direction="bidirectional">(s, U, V)',
            both,
        ),
    )
    yield (
        "If",
        _model(
            """total = ReduceSum<keepdims=0>(h) small = Less(total, limit)
           y = If (small) <then_branch = t () => (float[64,256] p) { a = Erf(h) b = Abs(a) p = Abs(b) },
                           else_branch = e () => (float[64,256] q) { c = Sin(h) q = Floor(c) }>""",
            {"limit": np.array(0, np.float32)},
        ),
    )


def _moving(drawn: Any) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield those that take elements from other places, or put them there."""
    rng = np.random.default_rng(7)
    columns = {"I": rng.integers(0, _WIDTH, (_ROWS, _WIDTH))}
    places = {"I": rng.integers(0, _ROWS, (_ROWS, 1)), "D": drawn(_ROWS, _WIDTH)}
    yield "GatherElements", _model("y = GatherElements<axis=1>(h, I)", columns)
    yield "ScatterElements", _model("y = ScatterElements<axis=1>(h, I, h)", columns)
    yield "ScatterND", _model("y = ScatterND(h, I, D)", places)
    yield (
        "OneHot",
        _model(
            "a = ArgMax<axis=1, keepdims=0>(h) o = OneHot(a, depth, values) y = MatMul(o, h)",
            {"depth": np.array([_ROWS], np.int64), "values": np.array([0, 1], np.float32)},
        ),
    )
    lengths = {"steps": np.array([_ROWS, 4, _WIDTH // 4], np.int64), "L": np.array([9, 64, 30, 2])}
    yield "ReverseSequence", _model("s = Reshape(h, steps) y = ReverseSequence(s, L)", lengths)
    yield "Unique", _model("c = Cast<to=7>(h) y = Unique<sorted=1>(c)", {})
    yield "NonZero", _model("r = Relu(h) y = NonZero(r)", {})
    yield "Hardmax", _model("y = Hardmax<axis=1>(h)", {})


def _of_images(drawn: Any, image: Any) -> Iterator[tuple[str, onnx.ModelProto]]:
    corner = np.random.default_rng(3).random((40, 2)) * 30
    regions = {"regions": np.concatenate([corner, corner + 20], 1).astype(np.float32)}
    yield (
        "RoiAlign",
        _model(
            "r = Reshape(h, image) y = RoiAlign<output_height=7, output_width=7>(r, regions, first)",
            {**image, **regions, "first": np.zeros(40, np.int64)},
        ),
    )
    pool = "kernel_shape=[3,3], strides=[2,2]"
    yield "LpPool", _model(f"r = Reshape(h, image) y = LpPool<{pool}>(r)", image)
    yield (
        "MaxUnpool",
        _model(
            "r = Reshape(h, image) m, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) "
            "y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(m, i)",
            image,
        ),
    )


def _model(text: str, weights: dict[str, Any]) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    shapes = {"W": (_WIDTH, _WIDTH), "B": (_WIDTH,), "K": (_WIDTH,), "N": (_WIDTH,)}
    drawn = {name: rng.random(shape).astype(np.float32) / 16 for name, shape in shapes.items()}
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[{_ROWS},{_WIDTH}] x) => (float y) '
        f"{{ {_CHAIN} {text} }}"
    )
    model.graph.output[0].type.tensor_type.Clear()
    for name, value in {**drawn, **weights}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    return onnx.shape_inference.infer_shapes(model)
