"""Cases that other optimizers test themselves by, rebuilt as models of our own.

What each shows is from the names of their passes, rules and tests. ``W``, ``V`` and so on are weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

OPTIMIZER, SIM, SLIM, SCRIPT = "onnx/optimizer", "onnxsim", "onnxslim", "onnxscript"


@dataclass(frozen=True, slots=True)
class Case:
    """A model.

    Attributes:
        name: what it shows.
        peer: whose suite has such a case.
        text: in ONNX's own language, from its inputs on.
        weights: shapes of random ones; an array stands for itself.
        why: why ours has more nodes than a peer's, where it does.
    """

    name: str
    peer: str
    text: str
    weights: dict[str, Any]
    opset: int = 17
    why: str = ""

    def model(self) -> onnx.ModelProto:
        """Return the model, checked."""
        graph = "".join(filter(str.isalnum, self.name))
        text = f'<ir_version: 8, opset_import: ["" : {self.opset}]> {graph} {self.text}'
        model = onnx.parser.parse_model(text)
        rng = np.random.default_rng(0)
        for name, value in self.weights.items():
            array = value if isinstance(value, np.ndarray) else _drawn(rng, value)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        onnx.checker.check_model(model)
        return model


def _drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return (rng.random(shape) + 0.5).astype(np.float32)


def _ints(*values: int) -> Any:
    return np.array(values, np.int64)


def _float(value: float) -> Any:
    return np.array(value, np.float32)


#: Why ours has more nodes than a peer's.
_WHY = {
    "argmax of softmax": "softmax may round two elements to one: the index of the largest is another then",
    "log of softmax": "where softmax rounds to 0 its logarithm is -inf, and LogSoftmax a number",
}


def all_cases() -> Iterator[Case]:
    """Yield every case."""
    for case in _cases():
        yield replace(case, why=_WHY.get(case.name, ""))


def _cases() -> Iterator[Case]:
    yield from _no_ops()
    yield from _convolutions()
    yield from _products()
    yield from _moves()
    yield from _functions()
    yield from _shapes()
    yield from _control()


_X = "(float[4,8] x) => (float[4,8] y)"
_I = "(float[1,3,8,8] x) => (float[1,4,8,8] y)"


def _no_ops() -> Iterator[Case]:
    def case(name: str, nodes: str, **weights: Any) -> Case:
        return Case(name, OPTIMIZER, f"{_X} {{ {nodes} }}", weights)

    yield case("identity", "a = Identity(x) b = Relu(a) y = Identity(b)")
    yield case("transpose that moves nothing", "a = Transpose<perm=[0,1]>(x) y = Relu(a)")
    yield case("pad of nothing", "a = Pad(x, P) y = Relu(a)", P=_ints(0, 0, 0, 0))
    yield case("dropout at inference", "a = Dropout(x) y = Relu(a)")
    yield case("cast to its own type", "a = Cast<to=1>(x) y = Relu(a)")
    yield case("expand to its own shape", "a = Expand(x, S) y = Relu(a)", S=_ints(4, 8))
    yield case("concat of one", "a = Concat<axis=0>(x) y = Relu(a)")
    yield Case(
        "split into one",
        OPTIMIZER,
        f"{_X} {{ a = Split<axis=0, num_outputs=1>(x) y = Relu(a) }}",
        {},
        18,
    )
    yield case(
        "times 1, plus 0, over 1",
        "a = Mul(x, O) b = Add(a, Z) c = Div(b, O) y = Relu(c)",
        O=_float(1),
        Z=_float(0),
    )
    yield case("power of 1", "a = Pow(x, O) y = Relu(a)", O=_float(1))
    yield case("equal subexpressions", "a = Exp(x) b = Exp(x) y = Add(a, b)")
    yield case("what nobody needs", "a = Exp(x) b = Sin(a) y = Relu(x)")
    yield case("relu of relu", "a = Relu(x) b = Relu(a) y = Exp(b)")
    yield case("floor of floor", "a = Floor(x) b = Floor(a) y = Exp(b)")
    yield case(
        "times ones",
        "a = Mul(x, W) b = Add(a, V) y = Relu(b)",
        V=np.zeros(8, np.float32),
        W=np.ones((4, 8), np.float32),
    )
    yield Case(
        "argmax of softmax",
        OPTIMIZER,
        "(float[4,8] x) => (int64[4,1] y) { a = Softmax<axis=1>(x) y = ArgMax<axis=1>(a) }",
        {},
    )
    yield Case(
        "slice of all",
        SLIM,
        f"{_X} {{ a = Slice(x, S, E, A) y = Relu(a) }}",
        {"S": _ints(0), "E": _ints(8), "A": _ints(1)},
    )
    yield Case(
        "resize by 1",
        SIM,
        "(float[1,3,8,8] x) => (float[1,3,8,8] y) "
        '{ a = Resize<mode="nearest">(x, "", S) y = Relu(a) }',
        {"S": np.ones(4, np.float32)},
    )


def _convolutions() -> Iterator[Case]:
    same = "pads=[1,1,1,1]"
    filters = {"W": (4, 3, 3, 3)}

    def case(name: str, peer: str, nodes: str, **weights: Any) -> Case:
        return Case(name, peer, f"{_I} {{ {nodes} }}", {**filters, **weights})

    norm = {"S": (4,), "B": (4,), "M": (4,), "V": (4,)}
    yield case(
        "batch norm into convolution",
        OPTIMIZER,
        f"a = Conv<{same}>(x, W) y = BatchNormalization(a, S, B, M, V)",
        **norm,
    )
    yield case(
        "batch norm into convolution with bias",
        SLIM,
        f"a = Conv<{same}>(x, W, C) y = BatchNormalization(a, S, B, M, V)",
        C=(4,),
        **norm,
    )
    yield case(
        "bias into convolution", OPTIMIZER, f"a = Conv<{same}>(x, W) y = Add(a, B)", B=(1, 4, 1, 1)
    )
    yield case(
        "factor into convolution", SLIM, f"a = Conv<{same}>(x, W) y = Mul(a, B)", B=(1, 4, 1, 1)
    )
    yield case(
        "pad into convolution",
        OPTIMIZER,
        "a = Pad(x, P) y = Conv(a, W)",
        P=_ints(0, 0, 1, 1, 0, 0, 1, 1),
    )
    yield case(
        "scale and shift into convolution",
        SCRIPT,
        f"a = Mul(x, K) b = Add(a, Z) y = Conv<{same}>(b, W)",
        K=_float(2),
        Z=_float(0),
    )
    yield case("a bias of zeros", SCRIPT, f"y = Conv<{same}>(x, W, Z)", Z=np.zeros(4, np.float32))
    yield Case(
        "batch norm into transposed convolution",
        SCRIPT,
        "(float[1,4,8,8] x) => (float[1,3,10,10] y) "
        "{ a = ConvTranspose(x, W) y = BatchNormalization(a, S, B, M, V) }",
        {"W": (4, 3, 3, 3), **dict.fromkeys(norm, (3,))},
    )
    yield Case(
        "pad into pool",
        OPTIMIZER,
        "(float[1,3,8,8] x) => (float[1,3,8,8] y) { a = Pad(x, P, N) y = MaxPool<kernel_shape=[3,3]>(a) }",
        {"P": _ints(0, 0, 1, 1, 0, 0, 1, 1), "N": _float(-np.inf)},
    )


def _products() -> Iterator[Case]:
    matrix = {"W": (8, 8)}

    def case(name: str, peer: str, nodes: str, **weights: Any) -> Case:
        return Case(name, peer, f"{_X} {{ {nodes} }}", {**matrix, **weights})

    yield case("matmul and bias", OPTIMIZER, "a = MatMul(x, W) y = Add(a, B)", B=(8,))
    yield case(
        "transpose into gemm", OPTIMIZER, "a = Transpose<perm=[1,0]>(W) y = Gemm(x, a, B)", B=(8,)
    )
    yield case(
        "batch norm into gemm",
        SCRIPT,
        "a = Gemm(x, W, C) y = BatchNormalization(a, S, B, M, V)",
        C=(8,),
        S=(8,),
        B=(8,),
        M=(8,),
        V=(8,),
    )
    yield case(
        "reshapes around a product",
        SCRIPT,
        "a = Reshape(x, R) b = MatMul(a, W) y = Reshape(b, S)",
        R=_ints(1, 4, 8),
        S=_ints(4, 8),
    )
    yield Case(
        "products of one operand",
        OPTIMIZER,
        "(float[4,8] x) => (float[4,8] q, float[4,8] k, float[4,8] v) "
        "{ a = Relu(x) q = MatMul(a, W) k = MatMul(a, V) v = MatMul(a, U) }",
        {"W": (8, 8), "V": (8, 8), "U": (8, 8)},
    )
    yield case(
        "einsum that is a product", OPTIMIZER, 'a = Relu(x) y = Einsum<equation="ij,jk->ik">(a, W)'
    )
    yield case("factor into gemm", SLIM, "a = Gemm(x, W, B) y = Mul(a, K)", B=(8,), K=_float(0.5))


def _moves() -> Iterator[Case]:
    shape = "(float[2,3,4] x) => (float[2,3,4] y)"

    def case(name: str, peer: str, nodes: str, **weights: Any) -> Case:
        return Case(name, peer, f"{shape} {{ {nodes} }}", weights)

    yield case(
        "transpositions that cancel",
        OPTIMIZER,
        "a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) y = Relu(b)",
    )
    yield case(
        "transpositions that are one",
        SCRIPT,
        "a = Transpose<perm=[1,0,2]>(x) b = Transpose<perm=[1,0,2]>(a) c = Transpose<perm=[1,0,2]>(b) "
        "d = Exp(c) y = Transpose<perm=[1,0,2]>(d)",
    )
    yield case(
        "unsqueeze of unsqueeze",
        SCRIPT,
        "a = Unsqueeze(x, Z) b = Unsqueeze(a, Z) c = Exp(b) y = Squeeze(c, ZO)",
        Z=_ints(0),
        ZO=_ints(0, 1),
    )
    yield case(
        "squeeze of squeeze",
        OPTIMIZER,
        "a = Reshape(x, R) e = Exp(a) b = Squeeze(e, Z) y = Squeeze(b, Z)",
        R=_ints(1, 1, 2, 3, 4),
        Z=_ints(0),
    )
    yield case(
        "reshape of reshape",
        SCRIPT,
        "a = Reshape(x, R) b = Reshape(a, S) y = Exp(b)",
        R=_ints(6, 4),
        S=_ints(2, 3, 4),
    )
    yield case(
        "slices along two axes",
        OPTIMIZER,
        "a = Concat<axis=0>(x, x) b = Slice(a, Z, S, Z) c = Slice(b, Z, T, O) y = Exp(c)",
        Z=_ints(0),
        S=_ints(2),
        T=_ints(3),
        O=_ints(1),
    )
    yield case(
        "concat of concat",
        OPTIMIZER,
        "e = Exp(x) a = Concat<axis=1>(x, e) b = Concat<axis=1>(a, x) "
        "c = ReduceSum<keepdims=1>(b, O) y = Add(c, x)",
        O=_ints(1),
    )
    yield case(
        "reduction and unsqueeze",
        OPTIMIZER,
        "a = ReduceSum<keepdims=0>(x, O) b = Unsqueeze(a, O) y = Add(b, x)",
        O=_ints(1),
    )
    yield Case(
        "slices that are a split",
        SCRIPT,
        "(float[2,8] x) => (float[2,4] y) "
        "{ a = Slice(x, Z, H, O) b = Slice(x, H, E, O) c = Sigmoid(b) y = Mul(a, c) }",
        {"Z": _ints(0), "H": _ints(4), "E": _ints(8), "O": _ints(1)},
    )
    yield case(
        "flatten is a reshape",
        SCRIPT,
        "a = Flatten<axis=1>(x) b = Exp(a) y = Reshape(b, S)",
        S=_ints(2, 3, 4),
    )


def _functions() -> Iterator[Case]:
    def case(name: str, peer: str, nodes: str, **weights: Any) -> Case:
        return Case(name, peer, f"{_X} {{ {nodes} }}", weights)

    yield case("log of softmax", OPTIMIZER, "a = Softmax<axis=1>(x) y = Log(a)")
    yield case(
        "gelu",
        SLIM,
        "a = Div(x, R) b = Erf(a) c = Add(b, O) d = Mul(x, c) y = Mul(d, H)",
        R=_float(2**0.5),
        O=_float(1),
        H=_float(0.5),
    )
    yield case(
        "hard swish",
        SCRIPT,
        "a = Add(x, T) b = Clip(a, Z, S) c = Mul(x, b) y = Div(c, S)",
        T=_float(3),
        Z=_float(0),
        S=_float(6),
    )
    yield case(
        "clip of clip",
        SCRIPT,
        "a = Clip(x, Z, S) b = Clip(a, Z, T) y = Exp(b)",
        Z=_float(0),
        S=_float(6),
        T=_float(3),
    )
    yield case(
        "relu of clip",
        SCRIPT,
        "a = Clip(x, M, S) b = Relu(a) y = Exp(b)",
        M=_float(-1),
        S=_float(6),
    )
    yield case(
        "minimum of minimum",
        SCRIPT,
        "a = Min(x, S) b = Min(a, T) y = Exp(b)",
        S=_float(6),
        T=_float(3),
    )
    yield case(
        "minimum of maximum is a clip",
        SCRIPT,
        "a = Max(x, Z) b = Min(a, T) y = Exp(b)",
        Z=_float(0),
        T=_float(3),
    )
    yield case(
        "layer norm in parts",
        SCRIPT,
        "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[-1]>(q) "
        "e = Add(v, E) "
        "r = Sqrt(e) n = Div(d, r) s = Mul(n, S) y = Add(s, B)",
        E=_float(1e-5),
        S=(8,),
        B=(8,),
    )
    yield case(
        "casts one after the other", SCRIPT, "a = Cast<to=11>(x) b = Cast<to=1>(a) y = Exp(b)"
    )


def _shapes() -> Iterator[Case]:
    dynamic = "(float[N,8] x) => (float[M,K] y)"

    def case(name: str, peer: str, text: str, **weights: Any) -> Case:
        return Case(name, peer, text, weights)

    yield case(
        "shape of a known size",
        SIM,
        "(float[N,8] x) => (float[N,8] y) "
        "{ s = Shape(x) d = Gather(s, O) f = Cast<to=1>(d) y = Div(x, f) }",
        O=np.array(1),
    )
    yield case(
        "reshape by its own sizes",
        SIM,
        f"{dynamic} {{ s = Shape(x) a = Gather(s, Z) "
        "c = Concat<axis=0>(a, T, F) b = Reshape(x, c) e = Exp(b) g = Reshape(e, P) y = Relu(g) }",
        Z=_ints(0),
        T=_ints(2),
        F=_ints(4),
        P=_ints(-1, 8),
    )
    yield case(
        "slice of a shape",
        OPTIMIZER,
        "(float[3,8] x) => (float[3,8] y) "
        "{ s = Shape(x) d = Slice(s, Z, O) e = Cast<to=1>(d) y = Add(x, e) }",
        Z=_ints(0),
        O=_ints(1),
    )
    yield case(
        "constant of a shape",
        SCRIPT,
        "(float[3,8] x) => (float[3,8] y) "
        "{ s = Shape(x) c = ConstantOfShape(s) f = Cast<to=1>(c) b = Add(x, f) y = Exp(b) }",
    )
    yield case(
        "constants of constants",
        SIM,
        f"{_X} {{ a = Mul(W, V) b = Exp(a) c = Transpose(b) d = Transpose(c) y = Add(x, d) }}",
        W=(4, 8),
        V=(4, 8),
    )
    yield case(
        "where with a known condition",
        OPTIMIZER,
        f"{_X} {{ e = Exp(x) a = Where(C, e, x) y = Relu(a) }}",
        C=np.array(True),
    )


def _control() -> Iterator[Case]:
    yield Case(
        "if with a known condition",
        OPTIMIZER,
        f"""{_X} {{
      a = If (C) <then_branch = t () => (float[4,8] p) {{ p = Exp(x) }},
                  else_branch = e () => (float[4,8] q) {{ q = Neg(x) }}>
      y = Relu(a) }}""",
        {"C": np.array(True)},
    )
    yield Case(
        "branches with no-ops",
        SLIM,
        """(float[4,8] x, bool c) => (float[4,8] y) {
      y = If (c) <then_branch = t () => (float[4,8] p) { a = Identity(x) p = Exp(a) },
                  else_branch = e () => (float[4,8] q) { b = Relu(x) q = Relu(b) }> }""",
        {},
    )
    yield Case(
        "a loop with no-ops",
        SIM,
        f"""{_X} {{
      y = Loop (T, "", x) <body = b (int64 i, bool c, float[4,8] p) => (bool o, float[4,8] q) {{
        o = Identity(c) u = Relu(p) v = Relu(u) q = Add(v, Z) }}> }}""",
        {"T": np.array(3), "Z": _float(0)},
    )
    yield Case(
        "element of a sequence",
        SIM,
        f"""{_X} {{
      a = Exp(x) b = Relu(x) s = SequenceConstruct(a, b) y = SequenceAt(s, O) }}""",
        {"O": np.array(1)},
    )
