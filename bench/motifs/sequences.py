"""Motifs of sequences and rows: products, attention, masks, norms, reductions, integers."""

from __future__ import annotations

import numpy as np

from bench.motifs.sketch import Sketch, Value

_BATCH, _LENGTH, _WIDTH, _HEADS = 2, 5, 12, 3
_SHAPE = (_BATCH, _LENGTH, _WIDTH)
_LOWEST = float(np.finfo(np.float32).min)


def linear(sketch: Sketch, value: Value, width: int) -> Value:
    """A product with a constant matrix, as Gemm, or as MatMul with a bias before, behind, or none."""
    *rows, depth = value.shape
    shape = (*rows, width)
    if len(rows) == 1 and sketch.chance(0.5):
        trans = int(sketch.chance(0.5))
        weight = sketch.weight(*((width, depth) if trans else (depth, width)))
        alpha = sketch.some(1.0, 0.5)
        return sketch.op(
            "Gemm", [value, weight, sketch.weight(width, scale=1)], shape, transB=trans, alpha=alpha
        )
    product = sketch.op("MatMul", [value, sketch.weight(depth, width)], shape)
    kind = sketch.draw.integers(3)
    bias = sketch.weight(width, scale=1.0)
    if kind == 0:
        return product
    return sketch.op("Add", [product, bias] if kind == 1 else [bias, product], shape, np.float32)


def activation(sketch: Sketch, value: Value) -> Value:
    """One of the functions that exporters spell in several nodes, or in one."""
    shape, kind = value.shape, sketch.draw.integers(8)

    def number(x: float) -> str:
        return sketch.constant(x)

    if kind == 0:
        half = sketch.op("Div", [value, number(np.sqrt(2))], shape)
        one = sketch.op("Add", [sketch.op("Erf", [half], shape), number(1.0)], shape)
        return sketch.op("Mul", [sketch.op("Mul", [value, one], shape), number(0.5)], shape)
    if kind == 1:
        return sketch.op("Mul", [value, sketch.op("Sigmoid", [value], shape)], shape)
    if kind == 2:
        three = sketch.op("Add", [value, number(3.0)], shape)
        clipped = sketch.op("Clip", [three, number(0.0), number(6.0)], shape)
        return sketch.op("Div", [sketch.op("Mul", [value, clipped], shape), number(6.0)], shape)
    if kind == 3:
        cube = sketch.op("Pow", [value, number(3.0)], shape)
        inner = sketch.op("Add", [value, sketch.op("Mul", [cube, number(0.044715)], shape)], shape)
        tanh = sketch.op("Tanh", [sketch.op("Mul", [inner, number(0.7978846)], shape)], shape)
        one = sketch.op("Add", [tanh, number(1.0)], shape)
        return sketch.op("Mul", [sketch.op("Mul", [value, number(0.5)], shape), one], shape)
    if kind == 4:
        return sketch.op("LeakyRelu", [value], shape, alpha=0.1)
    if kind == 5:
        soft = sketch.op("Softplus", [value], shape)
        return sketch.op("Mul", [value, sketch.op("Tanh", [soft], shape)], shape)
    return sketch.op(sketch.some("Relu", "Tanh", "Sigmoid", "Elu"), [value], shape)


def perceptron(sketch: Sketch) -> Value:
    """Products with constants: gated, low rank, of a sum, scaled, one input for several, with residuals."""
    value = sketch.start((4, 12), _SHAPE, (6, 8))
    shape, width = value.shape, value.shape[-1]
    kind = sketch.draw.integers(6)
    if kind == 0:
        gate = activation(sketch, linear(sketch, value, 16))
        product = sketch.op("Mul", [gate, linear(sketch, value, 16)], (*shape[:-1], 16))
        return sketch.op("Add", [linear(sketch, product, width), value], shape)
    if kind == 1:
        low = linear(sketch, linear(sketch, value, 2), width)
        return sketch.op("Add", [linear(sketch, value, width), low], shape)
    if kind == 2:
        parts = [linear(sketch, value, n) for n in (4, 3)]
        return sketch.op("Concat", parts, (*shape[:-1], 7), axis=-1)
    if kind == 3:
        scaled = sketch.op("Mul", [value, sketch.weight(width, scale=1.0)], shape)
        product = linear(sketch, scaled, 8)
        return sketch.op("Mul", [product, sketch.weight(8, scale=1.0)], (*shape[:-1], 8))
    if kind == 4:
        other = linear(sketch, value, width)
        total = sketch.op("Add", [value, other], shape)
        return sketch.op("Sub", [linear(sketch, total, width), linear(sketch, value, width)], shape)
    return activation(sketch, linear(sketch, activation(sketch, linear(sketch, value, 10)), width))


def _heads(sketch: Sketch, value: Value, heads: int) -> Value:
    depth = _WIDTH // _HEADS
    split = (_BATCH, _LENGTH, heads, depth)
    value = sketch.op("Reshape", [value, sketch.ints(0, 0, heads, depth)], split)
    return sketch.op("Transpose", [value], (_BATCH, heads, _LENGTH, depth), perm=[0, 2, 1, 3])


def _rotated(sketch: Sketch, value: Value) -> Value:
    """Rotary positions, by halves."""
    *outer, depth = value.shape
    half = depth // 2
    first, second = sketch.ops("Split", [value], [(*outer, half)] * 2, axis=-1, num_outputs=2)
    turned = sketch.op(
        "Concat", [sketch.op("Neg", [second], second.shape), first], value.shape, axis=-1
    )
    angles = sketch.draw.uniform(0, 3, (_LENGTH, depth))
    cos, sin = sketch.constant(np.cos(angles)), sketch.constant(np.sin(angles))
    parts = [
        sketch.op("Mul", [value, cos], value.shape),
        sketch.op("Mul", [turned, sin], value.shape),
    ]
    return sketch.op("Add", parts, value.shape)


def attention(sketch: Sketch) -> Value:
    """Heads of attention: scores scaled before or behind, masked or not, keys shared or not."""
    value, depth = sketch.start(_SHAPE), _WIDTH // _HEADS
    shared = sketch.chance(0.3)
    key_heads = 1 if shared else _HEADS
    q = _heads(sketch, linear(sketch, value, _WIDTH), _HEADS)
    k = _heads(sketch, linear(sketch, value, key_heads * depth), key_heads)
    v = _heads(sketch, linear(sketch, value, key_heads * depth), key_heads)
    if sketch.chance(0.3):
        q, k = _rotated(sketch, q), _rotated(sketch, k)
    scale = sketch.constant(depth**-0.5)
    early = sketch.chance(0.5)
    if early:
        q = sketch.op("Mul", [q, scale], q.shape)
    turned = (_BATCH, key_heads, depth, _LENGTH)
    kt = sketch.op("Transpose", [k], turned, perm=[0, 1, 3, 2])
    shape = (_BATCH, _HEADS, _LENGTH, _LENGTH)
    scores = sketch.op("MatMul", [q, kt], shape)
    if not early:
        scores = sketch.op(sketch.some("Mul", "Div"), [scores, scale], shape)
    if sketch.chance(0.6):
        scores = _masked(sketch, scores)
    weights = sketch.op("Softmax", [scores], shape, axis=-1)
    mixed = sketch.op("MatMul", [weights, v], q.shape)
    turned = (_BATCH, _LENGTH, _HEADS, depth)
    mixed = sketch.op("Transpose", [mixed], turned, perm=[0, 2, 1, 3])
    joined = sketch.op("Reshape", [mixed, sketch.ints(0, 0, _WIDTH)], _SHAPE)
    out = linear(sketch, joined, _WIDTH)
    return sketch.op("Add", [out, value], _SHAPE) if sketch.chance(0.5) else out


def _masked(sketch: Sketch, scores: Value) -> Value:
    shape, kind = scores.shape, sketch.draw.integers(4)
    columns = (shape[0], *(1,) * (len(shape) - 2), shape[-1])
    if kind == 0:
        mask = sketch.input((shape[0], shape[-1]), np.int64)
        mask = sketch.op("Unsqueeze", [mask, sketch.ints(*range(1, len(shape) - 1))], columns)
        number = sketch.op("Cast", [mask], columns, np.float32, to=1)
        inverse = sketch.op("Sub", [sketch.constant(1.0), number], columns)
        low = sketch.constant(sketch.some(-10000.0, _LOWEST))
        return sketch.op("Add", [scores, sketch.op("Mul", [inverse, low], columns)], shape)
    low = sketch.constant(sketch.some(_LOWEST, -1e9, -np.inf))
    if kind == 1:
        mask = sketch.input(columns, np.bool_)
        return sketch.op("Where", [mask, scores, low], shape, np.float32)
    causal = sketch.constant(np.tril(np.ones(shape[-2:], bool)), np.bool_)
    if kind == 2:
        return sketch.op("Where", [causal, scores, sketch.constant(_LOWEST)], shape)
    added = np.where(np.tril(np.ones(shape[-2:], bool)), 0.0, _LOWEST)
    return sketch.op("Add", [scores, sketch.constant(added)], shape)


def masks(sketch: Sketch) -> Value:
    """Softmax over what is masked, a mean of what is not, or a choice between two."""
    value = sketch.start((_BATCH, _LENGTH, _LENGTH), _SHAPE)
    shape, kind = value.shape, sketch.draw.integers(3)
    if kind == 0:
        op = sketch.some("Softmax", "LogSoftmax")
        return sketch.op(op, [_masked(sketch, value)], shape, axis=-1)
    if kind == 1:
        mask = sketch.input((*shape[:-1], 1), np.int64)
        number = sketch.op("Cast", [mask], mask.shape, np.float32, to=1)
        kept = sketch.op("Mul", [value, number], shape)
        small = (shape[0], shape[2])
        total = sketch.op("ReduceSum", [kept, sketch.ints(1)], small, keepdims=0)
        count = sketch.op("ReduceSum", [number, sketch.ints(1)], (shape[0], 1), keepdims=0)
        count = sketch.op("Max", [count, sketch.constant(1e-9)], (shape[0], 1))
        return sketch.op("Div", [total, count], small)
    limit = sketch.constant(float(sketch.draw.normal()))
    is_larger = sketch.op(sketch.some("Greater", "LessOrEqual"), [value, limit], shape, np.bool_)
    if sketch.chance(0.5):
        is_larger = sketch.op("Not", [sketch.op("Not", [is_larger], shape)], shape)
    other = sketch.op("Mul", [value, sketch.constant(0.25)], shape)
    return sketch.op("Where", [is_larger, value, other], shape, np.float32)


def norms(sketch: Sketch) -> Value:
    """Norms of rows, in one node or spelled, with what is added before, and a product behind."""
    value = sketch.start(_SHAPE, (4, 12))
    shape = value.shape
    one = (*shape[:-1], 1)
    if sketch.chance(0.4):
        value = sketch.op("Add", [value, sketch.weight(shape[-1], scale=1.0)], shape)
    scale, bias = sketch.weight(shape[-1], scale=1.0), sketch.weight(shape[-1], scale=1.0)
    kind, last = sketch.draw.integers(4), {"axes": [-1], "keepdims": 1}
    epsilon = sketch.constant(1e-5)

    def mean(of: Value) -> Value:
        return sketch.op("ReduceMean", [of, sketch.ints(*last["axes"])], one, keepdims=1)  # type: ignore[misc]

    if kind == 0:
        result = sketch.op("LayerNormalization", [value, scale, bias], shape, axis=-1)
    elif kind == 1:
        centred = sketch.op("Sub", [value, mean(value)], shape)
        square = (
            sketch.op("Pow", [centred, sketch.constant(2.0)], shape)
            if sketch.chance(0.5)
            else sketch.op("Mul", [centred, centred], shape)
        )
        root = sketch.op("Sqrt", [sketch.op("Add", [mean(square), epsilon], one)], one)
        result = sketch.op("Mul", [sketch.op("Div", [centred, root], shape), scale], shape)
        result = sketch.op("Add", [result, bias], shape)
    elif kind == 2:
        square = sketch.op("Mul", [value, value], shape)
        root = sketch.op("Sqrt", [sketch.op("Add", [mean(square), epsilon], one)], one)
        inverse = sketch.op("Reciprocal", [root], one)
        result = sketch.op("Mul", [sketch.op("Mul", [value, inverse], shape), scale], shape)
    else:
        length = sketch.op("ReduceL2", [value, sketch.ints(-1)], one, keepdims=1)
        length = sketch.op("Clip", [length, sketch.constant(1e-12)], one)
        result = sketch.op("Div", [value, length], shape)
    return linear(sketch, result, 8) if sketch.chance(0.5) else result


def reductions(sketch: Sketch) -> Value:
    """Sums, means and extrema over some axes, kept or not, scaled, and spread again."""
    value = sketch.start(_SHAPE, (2, 6, 4, 4), (6, 8))
    shape = value.shape
    axes = sorted({int(a) for a in sketch.draw.integers(0, len(shape), 2)})
    if sketch.chance(0.3):
        value = sketch.op("Mul", [value, sketch.constant(0.5)], shape)
    op = sketch.some(
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceLogSumExp"
    )
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    dropped = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    if sketch.chance(0.5) and dropped:
        return sketch.op(op, [value, sketch.ints(*axes)], dropped, keepdims=0)
    small = sketch.op(op, [value, sketch.ints(*axes)], kept, keepdims=1)
    return sketch.op(sketch.some("Sub", "Add", "Mul"), [value, small], shape)


def integers(sketch: Sketch) -> Value:
    """What is cut to whole numbers, compared, or asked for its place, behind a product."""
    value = sketch.start(_SHAPE, (4, 12))
    shape = value.shape
    value = sketch.op("Mul", [value, sketch.constant(sketch.some(0.1, 3.0, 7.5))], shape)
    if sketch.chance(0.5):
        value = sketch.op("Mul", [value, sketch.constant(sketch.some(0.5, 0.3, 10.0))], shape)
    kind = sketch.draw.integers(5)
    if kind == 0:
        whole = sketch.op(sketch.some("Floor", "Ceil", "Round"), [value], shape)
        return sketch.op("Cast", [whole], shape, np.int64, to=7)
    if kind == 1:
        return sketch.op("Cast", [value], shape, np.int32, to=6)
    if kind == 2:
        return sketch.op("ArgMax", [value], shape[:-1], np.int64, axis=-1, keepdims=0)
    if kind == 3:
        return sketch.op("Greater", [value, sketch.constant(0.25)], shape, np.bool_)
    index = sketch.op("Cast", [sketch.op("Abs", [value], shape)], shape, np.int64, to=7)
    index = sketch.op("Mod", [index, sketch.ints(7)], shape)
    return sketch.op("Gather", [sketch.weight(7, 3), index], (*shape, 3), np.float32)
