"""Convolutional networks: each built from an image, or from where its first stage begins."""

from __future__ import annotations

from bench.models.builder import GraphBuilder
from bench.models.layers import (
    avg_pool,
    batch_norm,
    concat_channels,
    conv,
    max_pool,
    relu,
)
from relational_tensat.base.records import record
from relational_tensat.tensor import Graph

# SqueezeNet 1.1 (Iandola et al., 2016), biases left out; each relu is a node of its own.


#: Channels of the squeeze and of each expand convolution; "pool" halves the image.
FIRES: tuple[tuple[int, int] | str, ...] = (
    (16, 64), (16, 64), "pool", (32, 128), (32, 128), "pool",
    (48, 192), (48, 192), (64, 256), (64, 256),
)  # fmt: skip
CLASSES = 1000


def squeezenet() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("squeezenet")
    image = graph.input("image", 1, 3, 224, 224)
    with graph.scope("stem"):
        x = relu(graph, conv(graph, image, 64, 3, stride=2, pad="valid"))
        x = max_pool(graph, x, 3, stride=2, pad="valid")
    for index, fire in enumerate(FIRES, start=1):
        with graph.scope(f"block{index}"):
            if isinstance(fire, str):
                x = max_pool(graph, x, 3, stride=2, pad="valid")
            else:
                x = _fire(graph, x, *fire)
    with graph.scope("classifier"):
        x = relu(graph, conv(graph, graph.op("dropout", x), CLASSES, 1))
        x = avg_pool(graph, x, 13, stride=13, pad="valid")
        x = graph.op("reshape", x, shape=(1, CLASSES))
    return graph.build(x)


def _fire(graph: GraphBuilder, x: str, squeeze: int, expand: int) -> str:
    """[1, C, H, W] to [1, 2 expand, H, W]."""
    x = relu(graph, conv(graph, x, squeeze, 1, name="squeeze"))
    small = relu(graph, conv(graph, x, expand, 1, name="expand1"))
    large = relu(graph, conv(graph, x, expand, 3, name="expand3"))
    return concat_channels(graph, small, large)


# VGG-19 (Simonyan and Zisserman, 2015), biases left out; each relu is a node of its own.


#: Convolutions and channels of each group; a pool halves the image after each.
GROUPS = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))
#: Width of the hidden layers of the classifier.
HIDDEN = 4096


def vgg19() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("vgg19")
    x = graph.input("image", 1, 3, 224, 224)
    for group, (convs, channels) in enumerate(GROUPS, start=1):
        with graph.scope(f"group{group}"):
            for index in range(1, convs + 1):
                x = relu(graph, conv(graph, x, channels, 3, name=f"conv{index}"))
            x = max_pool(graph, x, 2, stride=2, pad="valid")
    with graph.scope("classifier"):
        x = graph.op("reshape", x, shape=(1, 512 * 7 * 7))
        x = _dense(graph, x, HIDDEN, "dense1")
        x = _dropped(graph, x)
        x = _dense(graph, x, HIDDEN, "dense2")
        x = _dropped(graph, x)
        x = _dense(graph, x, CLASSES, "dense3")
    return graph.build(x)


def _dense(graph: GraphBuilder, x: str, width: int, name: str) -> str:
    """Multiply [1, K] by the transpose of a weight [width, K], the layout of the ONNX file."""
    with graph.scope(name):
        weight = graph.weight("weight", width, graph.shape(x)[-1])
        return graph.op("matmul", x, graph.op("transpose", weight, perm=(1, 0)))


def _dropped(graph: GraphBuilder, x: str) -> str:
    """Rectify, drop out, and reshape to the shape that it has, as the ONNX file does."""
    x = graph.op("dropout", relu(graph, x))
    return graph.op("reshape", x, shape=(1, HIDDEN))


# ResNet-50 and ResNeXt-50, convolutions without bias and without batch normalization.


def resnet50() -> Graph:
    """Build it from the first stage on: input [1, 64, 56, 56], output [1, 2048, 7, 7]."""
    graph = GraphBuilder("resnet50")
    x = graph.input("image", 1, 64, 56, 56)
    stages = ((3, 64), (4, 128), (6, 256), (3, 512))
    return graph.build(_stages(graph, x, stages, groups=1, expansion=4))


def resnext50() -> Graph:
    """Build it with 32 groups and its stem: input [1, 3, 224, 224], output [1, 2048, 7, 7]."""
    graph = GraphBuilder("resnext50")
    x = graph.input("image", 1, 3, 224, 224)
    with graph.scope("stem"):
        x = conv(graph, x, 64, 7, stride=2, act="relu")
        x = max_pool(graph, x, 3, stride=2, pad="same")
    stages = ((3, 128), (4, 256), (6, 512), (3, 1024))
    return graph.build(_stages(graph, x, stages, groups=32, expansion=2))


def _stages(
    graph: GraphBuilder,
    x: str,
    stages: tuple[tuple[int, int], ...],
    *,
    groups: int,
    expansion: int,
) -> str:
    for stage, (blocks, width) in enumerate(stages, start=1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            with graph.scope(f"stage{stage}.block{block}"):
                x = _block(graph, x, width, stride=stride, groups=groups, expansion=expansion)
    return x


def _block(
    graph: GraphBuilder, x: str, width: int, *, stride: int, groups: int, expansion: int
) -> str:
    """A bottleneck; the shortcut's own convolution has its relu fused, as published."""
    channels = expansion * width
    y = conv(graph, x, width, 1, act="relu", name="reduce")
    y = conv(graph, y, width, 3, stride=stride, groups=groups, act="relu", name="conv")
    y = conv(graph, y, channels, 1, name="expand")
    if stride > 1 or graph.shape(x)[1] != channels:
        x = conv(graph, x, channels, 1, stride=stride, act="relu", name="shortcut")
    return relu(graph, graph.op("add", x, y))


# MobileNet-v2 (Sandler et al., 2018), with batch normalization, and relu for its relu6.


@record
class Block:
    """An inverted residual block: channels inside, channels out, and the stride in between."""

    inner: int
    channels: int
    stride: int = 1
    residual: bool = False


def _repeat(inner: int, channels: int, count: int) -> tuple[Block, ...]:
    return (Block(inner, channels, residual=True),) * count


BLOCKS = (
    Block(32, 16),
    Block(96, 24, stride=2), *_repeat(144, 24, 1),
    Block(144, 32, stride=2), *_repeat(192, 32, 2),
    Block(192, 64), *_repeat(384, 64, 3),
    Block(384, 96, stride=2), *_repeat(576, 96, 2),
    Block(576, 160, stride=2), *_repeat(960, 160, 2),
    Block(960, 320),
)  # fmt: skip


def mobilenet_v2() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("mobilenet_v2")
    x = graph.input("image", 1, 3, 224, 224)
    x = relu(graph, _conv_norm(graph, x, 32, 3, "stem", stride=2))
    for index, block in enumerate(BLOCKS, start=1):
        with graph.scope(f"block{index}"):
            x = _inverted_residual(graph, x, block)
    x = relu(graph, _conv_norm(graph, x, 1280, 1, "head"))
    with graph.scope("classifier"):
        x = avg_pool(graph, x, 7, stride=1, pad="valid")
        x = graph.op("reshape", conv(graph, x, CLASSES, 1), shape=(1, CLASSES))
    return graph.build(x)


def _inverted_residual(graph: GraphBuilder, x: str, block: Block) -> str:
    y = relu(graph, _conv_norm(graph, x, block.inner, 1, "expand"))
    y = _conv_norm(graph, y, block.inner, 3, "depthwise", stride=block.stride, groups=block.inner)
    y = _conv_norm(graph, relu(graph, y), block.channels, 1, "project")
    return graph.op("add", y, x) if block.residual else y


def _conv_norm(
    graph: GraphBuilder,
    x: str,
    channels: int,
    kernel: int,
    name: str,
    *,
    stride: int = 1,
    groups: int = 1,
) -> str:
    with graph.scope(name):
        return batch_norm(graph, conv(graph, x, channels, kernel, stride=stride, groups=groups))


# NasNet-A: the cells that architecture search found for images (Zoph et al., 2018).
#
# A separable convolution is one depthwise and one pointwise convolution here (the paper: two of
# each), without batch normalization; there is no classifier.


STAGES, NORMAL_CELLS, CHANNELS = 3, 5, 128


def nasnet_a() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 5120, 7, 7]."""
    graph = GraphBuilder("nasnet_a")
    with graph.scope("stem"):
        image = graph.input("image", 1, 3, 224, 224)
        x = conv(graph, image, 64, 7, stride=2, act="relu")
        x = max_pool(graph, x, 3, stride=2, pad="same")
    for stage in range(1, STAGES + 1):
        channels = CHANNELS * 2 ** (stage - 1)
        previous = current = x
        for cell in range(1, NORMAL_CELLS + 1):
            with graph.scope(f"stage{stage}.cell{cell}"):
                previous, current = current, _normal_cell(graph, previous, current, channels)
        with graph.scope(f"stage{stage}.reduction"):
            x = _reduction_cell(graph, previous, current, 2 * channels)
    return graph.build(x)


def _squeeze(graph: GraphBuilder, x: str, channels: int, name: str) -> str:
    return conv(graph, x, channels, 1, act="relu", name=name)


def _separable(graph: GraphBuilder, x: str, kernel: int, name: str, *, stride: int = 1) -> str:
    """Depthwise, then pointwise; as many channels as ``x`` has."""
    channels = graph.shape(x)[1]
    with graph.scope(name):
        y = conv(graph, x, channels, kernel, stride=stride, groups=channels, name="depthwise")
        return conv(graph, y, channels, 1, name="pointwise")


def _normal_cell(graph: GraphBuilder, previous: str, current: str, channels: int) -> str:
    cur = _squeeze(graph, current, channels, "squeeze_current")
    prev = _squeeze(graph, previous, channels, "squeeze_previous")

    def sep3(x: str, name: str) -> str:
        return _separable(graph, x, 3, name)

    def avg3(x: str) -> str:
        return avg_pool(graph, x, 3, stride=1, pad="same")

    def add(a: str, b: str) -> str:
        return graph.op("add", a, b)

    return concat_channels(
        graph,
        add(sep3(cur, "sep0"), cur),
        add(sep3(prev, "sep1"), sep3(cur, "sep2")),
        add(avg3(cur), prev),
        add(avg3(prev), avg3(prev)),
        add(sep3(prev, "sep3"), sep3(prev, "sep4")),
    )


def _reduction_cell(graph: GraphBuilder, previous: str, current: str, channels: int) -> str:
    cur = _squeeze(graph, current, channels, "squeeze_current")
    prev = _squeeze(graph, previous, channels, "squeeze_previous")

    def sep(x: str, kernel: int, name: str, stride: int = 2) -> str:
        return _separable(graph, x, kernel, name, stride=stride)

    def add(a: str, b: str) -> str:
        return graph.op("add", a, b)

    largest = max_pool(graph, cur, 3, stride=2, pad="same")
    out0 = add(sep(prev, 7, "sep0"), sep(cur, 5, "sep1"))
    out1 = add(largest, sep(prev, 7, "sep2"))
    out2 = add(avg_pool(graph, cur, 3, stride=2, pad="same"), sep(prev, 5, "sep3"))
    out3 = add(largest, sep(out0, 3, "sep4", stride=1))
    out4 = add(avg_pool(graph, out0, 3, stride=1, pad="same"), out1)
    return concat_channels(graph, out0, out1, out2, out3, out4)


# Inception-v3 (Szegedy et al., 2016): every convolution has its relu fused; no norm, no bias.
#
# Joins of four branches are binary trees of concatenations, as in the published experiments.


#: One convolution of a chain: channels and kernel.
Step = tuple[int, int | tuple[int, int]]


def inception_v3() -> Graph:
    """Build it: input [1, 3, 299, 299], output [1, 2048, 1, 1] (no classifier)."""
    graph = GraphBuilder("inception_v3")
    x = _stem(graph, graph.input("image", 1, 3, 299, 299))
    for index, pool_channels in enumerate((32, 64, 64), start=1):
        with graph.scope(f"a{index}"):
            x = _block_a(graph, x, pool_channels)
    with graph.scope("b"):
        x = _block_b(graph, x)
    for index, channels in enumerate((128, 160, 160, 192), start=1):
        with graph.scope(f"c{index}"):
            x = _block_c(graph, x, channels)
    with graph.scope("d"):
        x = _block_d(graph, x)
    for index in (1, 2):
        with graph.scope(f"e{index}"):
            x = _block_e(graph, x)
    return graph.build(avg_pool(graph, x, 8, stride=1, pad="valid"))


def _conv(
    graph: GraphBuilder,
    x: str,
    channels: int,
    kernel: int | tuple[int, int],
    name: str,
    *,
    stride: int = 1,
    pad: str = "same",
) -> str:
    return conv(graph, x, channels, kernel, stride=stride, pad=pad, act="relu", name=name)


def _chain(graph: GraphBuilder, x: str, name: str, *steps: Step) -> str:
    """Convolutions one after the other, stride 1, padding "same"."""
    for index, (channels, kernel) in enumerate(steps, start=1):
        x = _conv(graph, x, channels, kernel, f"{name}.conv{index}")
    return x


def _halving(graph: GraphBuilder, x: str, channels: int, name: str) -> str:
    return _conv(graph, x, channels, 3, name, stride=2, pad="valid")


def _join(graph: GraphBuilder, b1: str, b2: str, b3: str, b4: str) -> str:
    return concat_channels(graph, concat_channels(graph, b1, b2), concat_channels(graph, b3, b4))


def _stem(graph: GraphBuilder, x: str) -> str:
    with graph.scope("stem"):
        x = _halving(graph, x, 32, "conv1")
        x = _conv(graph, x, 32, 3, "conv2", pad="valid")
        x = _conv(graph, x, 64, 3, "conv3")
        x = max_pool(graph, x, 3, stride=2, pad="valid")
        x = _conv(graph, x, 80, 1, "conv4", pad="valid")
        x = _conv(graph, x, 192, 3, "conv5", pad="valid")
        return max_pool(graph, x, 3, stride=2, pad="valid")


def _block_a(graph: GraphBuilder, x: str, pool_channels: int) -> str:
    """[1, C, 35, 35] to [1, 224 + pool_channels, 35, 35]."""
    b1 = _chain(graph, x, "branch1", (64, 1))
    b2 = _chain(graph, x, "branch2", (48, 1), (64, 5))
    b3 = _chain(graph, x, "branch3", (64, 1), (96, 3), (96, 3))
    pooled = avg_pool(graph, x, 3, stride=1, pad="same")
    b4 = _chain(graph, pooled, "branch4", (pool_channels, 1))
    return _join(graph, b1, b2, b3, b4)


def _block_b(graph: GraphBuilder, x: str) -> str:
    """[1, 288, 35, 35] to [1, 768, 17, 17]; the pool is an average, as published."""
    b1 = _halving(graph, x, 384, "branch1.conv1")
    b2 = _halving(graph, _chain(graph, x, "branch2", (64, 1), (96, 3)), 96, "branch2.conv3")
    b3 = avg_pool(graph, x, 3, stride=2, pad="valid")
    return concat_channels(graph, b3, concat_channels(graph, b1, b2))


def _block_c(graph: GraphBuilder, x: str, c: int) -> str:
    """[1, 768, 17, 17] to the same shape, ``c`` channels inside."""
    row, column = (1, 7), (7, 1)
    b1 = _chain(graph, x, "branch1", (192, 1))
    b2 = _chain(graph, x, "branch2", (c, 1), (c, row), (192, column))
    b3 = _chain(graph, x, "branch3", (c, 1), (c, column), (c, row), (c, column), (192, row))
    b4 = _chain(graph, avg_pool(graph, x, 3, stride=1, pad="same"), "branch4", (192, 1))
    return _join(graph, b1, b2, b3, b4)


def _block_d(graph: GraphBuilder, x: str) -> str:
    """[1, 768, 17, 17] to [1, 1280, 8, 8]."""
    b1 = _halving(graph, _chain(graph, x, "branch1", (192, 1)), 320, "branch1.conv2")
    inner = _chain(graph, x, "branch2", (192, 1), (192, (1, 7)), (192, (7, 1)))
    b2 = _halving(graph, inner, 192, "branch2.conv4")
    return concat_channels(graph, b1, b2, max_pool(graph, x, 3, stride=2, pad="valid"))


def _block_e(graph: GraphBuilder, x: str) -> str:
    """[1, C, 8, 8] to [1, 2048, 8, 8]; the pool is a maximum, as published."""

    def fork(y: str, name: str) -> str:
        row = _conv(graph, y, 384, (1, 3), f"{name}.row")
        column = _conv(graph, y, 384, (3, 1), f"{name}.column")
        return concat_channels(graph, row, column)

    b1 = _chain(graph, x, "branch1", (320, 1))
    b2 = fork(_chain(graph, x, "branch2", (384, 1)), "branch2")
    b3 = fork(_chain(graph, x, "branch3", (448, 1), (384, 3)), "branch3")
    b4 = _chain(graph, max_pool(graph, x, 3, stride=1, pad="same"), "branch4", (192, 1))
    return concat_channels(graph, b1, b2, b3, b4)
