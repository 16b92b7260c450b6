"""Motifs of images, of moved elements, and of graphs in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from bench.motifs.sequences import activation
from bench.motifs.sketch import Sketch, Value

_IMAGE = (2, 6, 7, 6)


def _size(size: int, kernel: int, pads: int, stride: int, dilation: int = 1, ceil: int = 0) -> int:
    over = size + pads - dilation * (kernel - 1) - 1
    return (over + (stride - 1 if ceil else 0)) // stride + 1


def images(sketch: Sketch) -> Value:
    """One to three of convolutions, norms, pools and pads, with odd pads and windows that end outside."""
    value = sketch.start(_IMAGE, (2, 6, 4, 4))
    for _ in range(int(sketch.draw.integers(1, 4))):
        if min(value.shape[2:]) < 4:
            break
        value = sketch.some(_convolved, _convolved, _normed, _pooled, _padded, _gated)(
            sketch, value
        )
    return value


def _convolved(sketch: Sketch, value: Value) -> Value:
    batch, channels, height, width = value.shape
    kernel = int(sketch.draw.integers(1, 4))
    pads = [int(p) for p in sketch.draw.integers(0, 2, 4)]
    stride, dilation = int(sketch.draw.integers(1, 3)), int(sketch.draw.integers(1, 3))
    if dilation * (kernel - 1) >= 4:
        dilation = 1
    group = sketch.some(1, 1, channels, 2 if channels % 2 == 0 else 1)
    out = group * int(sketch.draw.integers(1, 3)) if group > 1 else int(sketch.draw.integers(2, 7))
    weight = sketch.weight(out, channels // group, kernel, kernel, scale=0.3)
    operands: list[Value | str] = [value, weight]
    if sketch.chance(0.5):
        operands.append(sketch.weight(out, scale=1.0))
    sizes = (
        _size(height, kernel, pads[0] + pads[2], stride, dilation),
        _size(width, kernel, pads[1] + pads[3], stride, dilation),
    )
    result = sketch.op(
        "Conv", operands, (batch, out, *sizes), pads=pads, strides=[stride] * 2,
        dilations=[dilation] * 2, group=group,
    )  # fmt: skip
    if sketch.chance(0.3):
        result = sketch.op("Mul", [result, sketch.weight(out, 1, 1, scale=1.0)], result.shape)
    return _normed(sketch, result) if sketch.chance(0.4) else result


def _normed(sketch: Sketch, value: Value) -> Value:
    channels = value.shape[1]
    vectors = [sketch.weight(channels, scale=1.0) for _ in range(2)]
    if sketch.chance(0.7):
        mean = sketch.weight(channels, scale=1.0)
        variance = sketch.constant(sketch.draw.uniform(0.5, 2.0, channels))
        result = sketch.op("BatchNormalization", [value, *vectors, mean, variance], value.shape)
    else:
        result = sketch.op("InstanceNormalization", [value, *vectors], value.shape)
    return activation(sketch, result) if sketch.chance(0.5) else result


def _pooled(sketch: Sketch, value: Value) -> Value:
    batch, channels, height, width = value.shape
    kernel, stride = int(sketch.draw.integers(2, 4)), int(sketch.draw.integers(1, 4))
    pads = [int(p) for p in sketch.draw.integers(0, 2, 4)]
    more: dict[str, Any] = {}
    if sketch.chance(0.5):
        op, more["count_include_pad"] = "AveragePool", int(sketch.chance(0.5))
    else:
        op = "MaxPool"
    sizes = (
        _size(height, kernel, pads[0] + pads[2], stride),
        _size(width, kernel, pads[1] + pads[3], stride),
    )
    return sketch.op(
        op, [value], (batch, channels, *sizes), kernel_shape=[kernel] * 2, pads=pads,
        strides=[stride] * 2, **more,
    )  # fmt: skip


def _padded(sketch: Sketch, value: Value) -> Value:
    batch, channels, height, width = value.shape
    before, behind = sketch.draw.integers(0, 3, (2, 2))
    mode = sketch.some("constant", "reflect", "edge")
    pads = sketch.ints(0, 0, *map(int, before), 0, 0, *map(int, behind))
    number = [sketch.constant(sketch.some(0.0, 0.0, -1.5))] if mode == "constant" else []
    shape = (
        batch,
        channels,
        height + int(before[0] + behind[0]),
        width + int(before[1] + behind[1]),
    )
    return sketch.op("Pad", [value, pads, *number], shape, mode=mode)


def _gated(sketch: Sketch, value: Value) -> Value:
    """Squeeze and excite."""
    batch, channels = value.shape[:2]
    one = (batch, channels, 1, 1)
    mean = sketch.op("GlobalAveragePool", [value], one)
    few = sketch.op("Conv", [mean, sketch.weight(2, channels, 1, 1, scale=0.5)], (batch, 2, 1, 1))
    few = sketch.op("Relu", [few], few.shape)
    many = sketch.op("Conv", [few, sketch.weight(channels, 2, 1, 1, scale=0.5)], one)
    return sketch.op("Mul", [value, sketch.op("Sigmoid", [many], one)], value.shape)


def gathers(sketch: Sketch) -> Value:
    """Elements that are taken, put, cut, joined, repeated and turned."""
    value = sketch.start((4, 12), (2, 5, 12))
    axis = len(value.shape) - 1
    rows, width = value.shape[:-1], value.shape[-1]
    operands: list[Value | str]
    for _ in range(int(sketch.draw.integers(1, 4))):
        kind = sketch.draw.integers(8)
        width = value.shape[-1]
        if kind == 0:
            places = [int(p) for p in sketch.draw.integers(-width, width, 5)]
            value = sketch.op("Gather", [value, sketch.ints(*places)], (*rows, 5), axis=axis)
        elif kind == 1:
            step = sketch.some(1, 2, -1, -2)
            first, last = (1, width) if step > 0 else (width - 1, -width - 1)
            count = len(range(width)[first:last:step] if step > 0 else range(width)[::step])
            cut = [sketch.ints(n) for n in (first, last, axis, step)]
            value = sketch.op("Slice", [value, *cut], (*rows, count))
        elif kind == 2:
            first = max(1, width // 3)
            sizes = sketch.ints(first, width - first) if width > 1 else sketch.ints(1)
            if width == 1:
                continue
            shapes = [(*rows, first), (*rows, width - first)]
            left, right = sketch.ops("Split", [value, sizes], shapes, axis=axis)
            order = [left, right] if sketch.chance(0.5) else [right, left]
            value = sketch.op("Concat", order, (*rows, width), axis=axis)
        elif kind == 3:
            repeats = sketch.ints(*(1,) * axis, 2)
            value = sketch.op("Tile", [value, repeats], (*rows, 2 * width))
        elif kind == 4:
            index = sketch.draw.integers(0, width, (*rows, 3))
            operands = [value, sketch.constant(index, np.int64)]
            value = sketch.op("GatherElements", operands, (*rows, 3), axis=axis)
        elif kind == 5:
            index = np.argsort(sketch.draw.random((*rows, width)), -1)[..., : max(1, width // 2)]
            updates = sketch.weight(*index.shape, scale=1.0)
            operands = [value, sketch.constant(index, np.int64), updates]
            reduction = sketch.some("none", "add")
            value = sketch.op(
                "ScatterElements", operands, value.shape, axis=axis, reduction=reduction
            )
        elif kind == 6:
            chosen = sketch.draw.permutation(value.shape[0])[:2].reshape(2, 1)
            updates = sketch.weight(2, *value.shape[1:], scale=1.0)
            operands = [value, sketch.constant(chosen, np.int64), updates]
            value = sketch.op("ScatterND", operands, value.shape)
        else:
            value = sketch.op("CumSum", [value, sketch.constant(axis, np.int64)], value.shape)
    return value


def loops(sketch: Sketch) -> Value:
    """A loop of few rounds, a branch, or a scan, around something that can be simplified."""
    value = sketch.start((4, 12), (6, 8))
    shape, kind = value.shape, sketch.draw.integers(3)
    if kind == 2:
        return _scanned(sketch, value)
    state, result, condition = sketch.name("state"), sketch.name("next"), sketch.name("again")
    inner = sketch.name("inner")
    weight = sketch.weight(shape[-1], shape[-1])
    nodes = [
        helper.make_node("MatMul", [state if kind == 0 else value.name, weight], [inner]),
        helper.make_node(sketch.some("Relu", "Tanh"), [inner], [result]),
    ]
    kinds = [helper.make_tensor_value_info(name, 1, shape) for name in (state, result)]
    if kind == 0:
        number, before = sketch.name("number"), sketch.name("before")
        flag = [helper.make_tensor_value_info(name, 9, []) for name in (before, condition)]
        body = helper.make_graph(
            [*nodes, helper.make_node("Identity", [before], [condition])], "body",
            [helper.make_tensor_value_info(number, 7, []), flag[0], kinds[0]], [flag[1], kinds[1]],
        )  # fmt: skip
        count = sketch.constant(int(sketch.draw.integers(1, 4)), np.int64)
        return sketch.op("Loop", [count, sketch.constant(True, np.bool_), value], shape, body=body)
    then = helper.make_graph(nodes, "then", [], kinds[1:])
    other = sketch.name("other")
    node = helper.make_node("Neg", [value.name], [other])
    kept = helper.make_tensor_value_info(other, 1, shape)
    otherwise = helper.make_graph([node], "else", [], [kept])
    flag_value: Value | str = sketch.constant(bool(sketch.chance(0.5)), np.bool_)
    if sketch.chance(0.5):
        flag_value = sketch.input((), np.bool_)
    branch = {"then_branch": then, "else_branch": otherwise}
    return sketch.op("If", [flag_value], shape, np.float32, **branch)


def _scanned(sketch: Sketch, value: Value) -> Value:
    rows, width = value.shape
    names = [sketch.name(stem) for stem in ("sum", "row", "next", "out")]
    row = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [width]) for name in names]
    nodes = [
        helper.make_node("Add", names[:2], [names[2]]),
        helper.make_node("Tanh", [names[2]], [names[3]]),
    ]
    body = helper.make_graph(nodes, "body", row[:2], row[2:])
    start = sketch.constant(np.zeros(width))
    shapes = [(width,), (rows, width)]
    _, every = sketch.ops("Scan", [start, value], shapes, np.float32, body=body, num_scan_inputs=1)
    return every
