"""One graph or more of every operator, for real GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from relational_tensat.gpu.catalogue import (
    BINARY_CODES,
    COMPARISON_CODES,
    LOGIC_CODES,
    REDUCTION_CODES,
    UNARY_CODES,
)
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from tests.gpu.runs import one_node


def cases(dtype: str) -> Iterator[Graph]:
    """Yield small graphs in one element type; sizes are odd, so that edges of tiles are met."""

    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    for op in UNARY_CODES:
        if op not in ("gelu_tanh", "clip", "smul"):
            yield one_node(op, kind(37, 53))
    yield one_node("gelu", kind(37, 53), approximate="tanh")
    yield one_node("clip", kind(37, 53), min=-0.5, max=0.25)
    yield one_node("smul", kind(37, 53), value=-2.5)
    for op in BINARY_CODES:
        yield one_node(op, kind(5, 7, 64), kind(5, 7, 64))
        yield one_node(op, kind(5, 7, 64), kind(7, 1))
        yield one_node(op, kind(5, 7, 63), kind())
    for op in REDUCTION_CODES:
        yield one_node(op, kind(9, 300), axes=(1,), keepdims=False)
        yield one_node(op, kind(3, 17, 40), axes=(1,), keepdims=True)
        yield one_node(op, kind(3, 8, 5, 6), axes=(0, 2), keepdims=False)
    yield from _choices(dtype)
    yield from _layouts(dtype)
    yield from _norms(dtype)
    yield from _products(dtype)


def kernel_cases(dtype: str) -> Iterator[Graph]:
    """Yield small graphs of the kernels of the target ``cuda``."""
    load_backend("cuda")

    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    for act in ("relu", "sigmoid", "tanh", "gelu_tanh"):
        yield one_node("cuda_elementwise", kind(5, 7, 64), kind(7, 1), op="sub", act=act)
    for act in ("none", "relu", "gelu_tanh"):
        scaled = {"alpha": -0.5, "act": act}
        yield one_node("cuda_product", kind(70, 130), kind(130, 100), kind(100), **scaled)
        yield one_node("cuda_product_add", kind(70, 33), kind(33, 40), kind(70, 40), **scaled)
    for act in ("none", "relu"):
        for filters, pad in ((kind(24, 16, 3, 3), "same"), (kind(24, 4, 2, 2), (1, 1, 0, 0))):
            window = {"stride": (1, 1), "pad": pad, "act": act}
            image = kind(2, 16, 15, 15)
            yield one_node("cuda_conv_add", image, filters, kind(2, 24, 15, 15), **window)
        bias = kind(16)
        depthwise = kind(1, 16, 15, 15), kind(16, 1, 3, 3), kind(1, 16, 8, 8), bias
        yield one_node("cuda_conv_add", *depthwise, stride=(2, 2), pad="same", act=act)
    row, rows = kind(700), kind(9, 700)
    yield one_node("cuda_skip_layer_norm", rows, rows, row, row, axis=1, epsilon=1e-5)
    yield one_node("cuda_skip_layer_norm", rows, rows, row, axis=1, epsilon=1e-5)
    yield one_node("cuda_skip_rms_norm", rows, rows, row, axis=1, epsilon=1e-5)
    for trans_a, trans_b in ((True, False), (False, True), (True, True)):
        a = kind(3, 65, 70) if trans_a else kind(3, 70, 65)
        b = kind(3, 40, 65) if trans_b else kind(3, 65, 40)
        order = {"trans_a": trans_a, "trans_b": trans_b}
        yield one_node("cuda_product_add", a, b, kind(3, 70, 40), kind(40), **order)
        yield one_node("cuda_product", a, kind(*b.shape[1:]), **order)


def _choices(dtype: str) -> Iterator[Graph]:
    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    yield guarded(kind(5, 7, 9))
    for condition, one, other in (((5, 7, 9), (7, 1), (5, 1, 9)), ((1,), (3, 8), ()), ((), (), ())):
        yield one_node("where", TensorType("bool", condition), kind(*one), kind(*other))
    for op in COMPARISON_CODES:
        yield one_node(op, kind(5, 7, 9), kind(7, 1))
    for op in LOGIC_CODES:
        shapes = [(5, 7, 9), (7, 1)][: 1 if op == "logical_not" else 2]
        yield one_node(op, *(TensorType("bool", shape) for shape in shapes))
    yield one_node("expand", kind(5, 1, 8), shape=(3, 5, 4, 8))
    yield one_node("expand", kind(1), shape=(1, 37))


def guarded(kind: TensorType) -> Graph:
    """Return the graph of a root, and the operand itself where that is NaN: of negative elements."""
    nodes = [
        Node("sqrt", ("x",), ("root",)),
        Node("is_nan", ("root",), ("is",)),
        Node("where", ("is", "x", "root"), ("y",)),
    ]
    return build_graph("guarded", {"x": kind}, {}, nodes, ["y"])


def of_columns(op: str, dtype: str) -> Graph:
    """Return the graph of what reads columns of a matrix where they are."""
    whole = TensorType(dtype, (24, 104))
    nodes = [Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (64, 40)})]
    if op == "matmul":
        nodes.append(Node("reshape", ("a",), ("heads",), {"shape": (24, 2, 32)}))
        nodes.append(Node("reshape", ("b",), ("c",), {"shape": (24, 1, 40)}))
        nodes.append(Node("transpose", ("heads",), ("left",), {"perm": (1, 2, 0)}))
        nodes.append(Node("transpose", ("c",), ("right",), {"perm": (1, 0, 2)}))
        nodes.append(Node("matmul", ("left", "right"), ("y",)))
    else:
        nodes.append(Node(op, ("b",) if op in UNARY_CODES else ("b", "b"), ("y",)))
        nodes.append(Node("matmul", ("y", "w"), ("z",)))
        nodes.append(Node("matmul", ("b", "w"), ("of_part",)))
    nodes.append(Node("neg", ("y",), ("negative",)))  # the last is no product: nothing is scaled
    outputs = ["negative"] if op == "matmul" else ["a", "z", "of_part", "negative"]
    inputs = {"x": whole} if op == "matmul" else {"x": whole, "w": TensorType(dtype, (40, 7))}
    return build_graph(f"columns_{op}", inputs, {}, nodes, outputs)


def _layouts(dtype: str) -> Iterator[Graph]:
    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    for perm in ((1, 0, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0)):
        yield one_node("transpose", kind(33, 40, 70), perm=perm)
    yield one_node("concat", *(kind(6, n, 8) for n in range(1, 12)), axis=1)
    yield one_node("split", kind(6, 14, 8), axis=1, sizes=(1, 5, 8))
    yield one_node("slice", kind(9, 14, 8), axes=(0, 1), starts=(1, 0), ends=(8, 13), steps=(2, 3))
    yield one_node("gather", kind(2, 3, 8), TensorType("int64", (4, 2)), axis=1)
    yield one_node("enlarge", kind(4, 3, 1, 1), kind(2, 2, 3, 5))
    yield one_node("merge", kind(12, 3, 3, 3), count=2, groups=4)
    for mode in ("constant", "reflect", "edge"):
        yield one_node("pad", kind(3, 6, 7), pads=(0, 2, 3, 1, 0, 2), mode=mode, value=1.5)
    for op in ("relu", "sub", "matmul"):
        yield of_columns(op, dtype)
    for target in ("float32", "float16", "bfloat16", "int64", "bool"):
        yield one_node("cast", kind(33, 5), dtype=target)


def _norms(dtype: str) -> Iterator[Graph]:
    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    yield one_node("softmax", kind(5, 300), axis=1)
    yield one_node("softmax", kind(5, 33, 7), axis=1)
    yield one_node("layer_norm", kind(9, 700), kind(700), kind(700), axis=1, epsilon=1e-5)
    yield one_node("layer_norm", kind(9, 30), kind(30), axis=1, epsilon=1e-5)
    yield one_node("rms_norm", kind(9, 700), kind(700), axis=1, epsilon=1e-5)
    yield one_node("batch_norm", kind(2, 6, 5, 7), *[kind(6)] * 4, epsilon=1e-3)


def _products(dtype: str) -> Iterator[Graph]:
    def kind(*shape: int) -> TensorType:
        return TensorType(dtype, shape)

    for act in ("none", "relu", "sigmoid", "tanh"):
        yield one_node("matmul", kind(70, 130), kind(130, 100), kind(100), act=act)
    yield one_node("matmul", kind(1, 512), kind(512, 513))
    yield one_node("matmul", kind(3, 70, 65), kind(3, 65, 40), kind(70, 1))
    yield one_node("matmul", kind(2, 1, 33, 20), kind(1, 3, 20, 9))
    same, two = {"stride": (1, 1), "pad": "same"}, {"stride": (2, 2), "pad": "same"}
    for act in ("none", "relu", "tanh"):
        yield one_node("conv", kind(2, 16, 15, 15), kind(24, 16, 3, 3), kind(24), **same, act=act)
        yield one_node("conv", kind(2, 16, 15, 15), kind(24, 16, 3, 3), **same, act=act)
    yield one_node("conv", kind(1, 16, 16, 16), kind(24, 16, 3, 3), **two)
    yield one_node("conv", kind(1, 16, 15, 15), kind(16, 1, 3, 3), **same)
    yield one_node("conv", kind(1, 16, 15, 15), kind(32, 4, 3, 3), kind(32), **two, act="relu")
    yield one_node("conv", kind(1, 8, 20), kind(12, 8, 3), stride=(1,), pad="same", dilation=(2,))
    yield one_node("conv", kind(1, 4, 6, 7, 8), kind(5, 4, 3, 3, 3), stride=(1, 1, 1), pad="valid")
    for op in ("max_pool", "avg_pool"):
        yield one_node(op, kind(2, 8, 15, 15), kernel=(3, 3), **two)
        yield one_node(op, kind(2, 8, 16, 16), kernel=(3, 3), **two, act="relu")
        yield one_node(op, kind(1, 8, 16, 16), kernel=(2, 2), stride=(2, 2), pad="valid")
