"""Chains between QuantizeLinear and DequantizeLinear, with weights that are integers, or are not."""

from __future__ import annotations

import numpy as np

from bench.motifs.sketch import Sketch, Value


def quantized_chain(sketch: Sketch) -> Value:
    """One to three operators, each between a pair, or every other one."""
    is_image = sketch.chance(0.4)
    value = sketch.start((2, 6, 4, 4)) if is_image else sketch.start((4, 12))
    kind = sketch.some(np.uint8, np.uint8, np.int8)
    value = _pair(sketch, value, kind)
    for _ in range(int(sketch.draw.integers(1, 4))):
        before = value
        value = _image_operator(sketch, value) if is_image else _row_operator(sketch, value)
        if sketch.chance(0.4):
            value = _scaled(sketch, value)
        if value.shape == before.shape and sketch.chance(0.3):
            value = sketch.op("Add", [_pair(sketch, value, kind), before], value.shape)
        if sketch.chance(0.3):
            value = sketch.op("Relu", [value], value.shape)
        if sketch.chance(0.8):
            value = _pair(sketch, value, kind)
    return value


def _pair(sketch: Sketch, value: Value, kind: type) -> Value:
    scale = sketch.constant(float(sketch.draw.uniform(0.01, 0.06)))
    zero = sketch.constant(128 if kind is np.uint8 else 0, kind)
    stored = sketch.op("QuantizeLinear", [value, scale, zero], value.shape, kind)
    return sketch.op("DequantizeLinear", [stored, scale, zero], value.shape, np.float32)


def _weight(sketch: Sketch, shape: tuple[int, ...], axis: int) -> Value | str:
    """Floats; or integers that are dequantized, all with one scale, or one for each channel."""
    if sketch.chance(0.3):
        return sketch.weight(*shape, scale=0.3)
    stored = sketch.constant(sketch.draw.integers(-63, 64, shape), np.int8)
    if sketch.chance(0.5):
        scale = sketch.constant(float(sketch.draw.uniform(0.003, 0.01)))
        return sketch.op("DequantizeLinear", [stored, scale], shape, np.float32)
    scales = sketch.constant(sketch.draw.uniform(0.003, 0.01, shape[axis]))
    zeros = sketch.constant(np.zeros(shape[axis]), np.int8)
    return sketch.op("DequantizeLinear", [stored, scales, zeros], shape, np.float32, axis=axis)


def _row_operator(sketch: Sketch, value: Value) -> Value:
    rows, depth = value.shape
    kind = sketch.draw.integers(4)
    if kind == 0:
        weight = _weight(sketch, (depth, 8), 1)
        bias = sketch.weight(8, scale=0.5)
        return sketch.op("Gemm", [value, weight, bias], (rows, 8))
    if kind == 1:
        product = sketch.op("MatMul", [value, _weight(sketch, (depth, depth), 1)], (rows, depth))
        if sketch.chance(0.5):
            product = sketch.op("Add", [product, sketch.weight(depth, scale=0.5)], product.shape)
        return product
    if kind == 2:
        return sketch.op("Sigmoid", [value], value.shape)
    turned = sketch.op("Transpose", [value], (depth, rows), perm=[1, 0])
    return sketch.op("Transpose", [turned], value.shape, perm=[1, 0])


def _image_operator(sketch: Sketch, value: Value) -> Value:
    batch, channels, height, width = value.shape
    if sketch.chance(0.3):
        if sketch.chance(0.5):
            return sketch.op("GlobalAveragePool", [value], (batch, channels, 1, 1))
        return sketch.op("MaxPool", [value], value.shape, kernel_shape=[3, 3], pads=[1] * 4)
    weight = _weight(sketch, (channels, channels, 3, 3), 0)
    return sketch.op("Conv", [value, weight], (batch, channels, height, width), pads=[1, 1, 1, 1])


def _scaled(sketch: Sketch, value: Value) -> Value:
    """What folds into weights: a factor, a summand, a norm."""
    channels = value.shape[1]
    row = (channels, *(1,) * (len(value.shape) - 2))
    kind = sketch.draw.integers(3)
    if kind < 2:
        return sketch.op(("Mul", "Add")[kind], [value, sketch.weight(*row, scale=1.0)], value.shape)
    vectors = [sketch.weight(channels, scale=1.0) for _ in range(3)]
    variance = sketch.constant(sketch.draw.uniform(0.5, 2.0, channels))
    return sketch.op("BatchNormalization", [value, *vectors, variance], value.shape)
