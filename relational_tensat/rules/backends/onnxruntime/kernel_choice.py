"""The kernels of an application of an operator, for its cost and for counting them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from relational_tensat.cost import Configuration
from relational_tensat.cost.key import configuration_of, nodes_of
from relational_tensat.rules.backends.fused_kernel import last_swapped
from relational_tensat.rules.backends.onnxruntime.blocks import (
    BLOCK,
    BLOCKED_KERNELS,
    OF_OPERATORS,
    BlockedConv,
    BlockedConvAdd,
    FromBlocks,
    ToBlocks,
    pools_blocks,
    takes_filters,
    takes_unblocked,
)
from relational_tensat.rules.backends.onnxruntime.integer_kernels import with_channels_last
from relational_tensat.rules.backends.onnxruntime.kernels import (
    BiasGelu,
    ScaledProduct,
    SkipLayerNorm,
)
from relational_tensat.rules.backends.scaled_product import window_of
from relational_tensat.tensor import Attrs, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import Family, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, int_of, ints_of
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.operators.work_steps import (
    moved_axes,
    moves_one_axis,
    stretches_of_transposition,
)

_POOLS = ("max_pool", "avg_pool")
_OF_BLOCKS = frozenset(kernel.name for kernel in BLOCKED_KERNELS)
#: So many times more.
_SLOWER_WITH_SKIP, _SLOWER_OUT_OF_BLOCKS = 9, 3
#: Elements of patches that are copied and multiplied, before the next ones are.
_PATCHES = 1 << 17
#: Floats of a register of AVX2.
_NARROW_BLOCK = 8
#: As what floats are computed, and what is about their type.
_FLOATS = {"float16": "float32"}
_STAY_HALF = ("cast",)
_MOVES = ("transpose", "concat", "slice", "split", "expand")
_PRODUCTS = ("matmul", ScaledProduct.name)
_CONVOLUTIONS = (BlockedConv.name, BlockedConvAdd.name)


def kernels_of(
    configuration: Configuration, *, tells_computed: bool = False
) -> list[Configuration]:
    """Return the kernels that run.

    A convolution or pooling that can be one of blocks is, and brings its image there and back. A bias or an
    activation that no kernel takes is one more.

    Args:
        tells_computed: whether costs know what operands are computed; else kernels on float16 are those on
            float32 that compute them.
    """
    whole = with_channels_last(_flat(configuration))
    kernels = [_full(part) for each in _blocked(whole) for part in _apart(each)]
    kernels += [cast for kernel in kernels for cast in _casts(kernel)]
    return kernels if tells_computed else [_as_floats(kernel) for kernel in kernels]


def more_work_of(configuration: Configuration) -> list[Configuration]:
    """Return what kernels take beside their arithmetic, as work of others.

    If operands are computed, they are copied into the order that kernels else arrange before inference.
    """
    kernels = kernels_of(configuration, tells_computed=True)
    return [_as_floats(each) for each in (*_unprepared(configuration), *_slow(kernels))]


def _flat(configuration: Configuration) -> Configuration:
    """Return a kernel with operands for its tuples, as graphs have them: it is the same one."""
    kinds = tuple(part for kind in configuration.inputs for part in tensors_of(kind))
    is_kernel = not isinstance(configuration.output, tuple) and len(configuration.inputs) > 0
    if not is_kernel or kinds == configuration.inputs or configuration.op == "part":
        return configuration
    return replace(configuration, inputs=kinds)


def _as_floats(kernel: Configuration) -> Configuration:
    """Return a kernel with float32 for float16, of which onnxruntime has hardly any on processors.

    It casts where such a value is given or returned only, and weights before inference.
    """
    if kernel.op in _STAY_HALF:
        return kernel
    return replace(
        kernel,
        inputs=tuple(map(_as_float, kernel.inputs)),
        output=_as_float(kernel.output),
    )


def _as_float(kind: ValueType) -> ValueType:
    if isinstance(kind, tuple):
        return tuple(replace(part, dtype=_FLOATS.get(part.dtype, part.dtype)) for part in kind)
    return replace(kind, dtype=_FLOATS.get(kind.dtype, kind.dtype))


def _full(kernel: Configuration) -> Configuration:
    """Return the cost of a kernel of blocks with as many channels as its blocks have.

    It is measured so: between the kernels of an image in blocks, the last block is always full.
    """
    op, attrs = kernel.op, dict(kernel.attrs)
    if op not in _OF_BLOCKS or any(isinstance(kind, tuple) for kind in kernel.inputs):
        return kernel  # what is joined has full blocks
    kinds = [tensor(kind, op) for kind in kernel.inputs]
    if op in _CONVOLUTIONS:
        operands = _full_convolution(*kinds)
    else:
        is_last = op == ToBlocks.name and bool_of(attrs, "channels_last")
        operands = tuple(_with_full(kind, 3 if is_last else 1) for kind in kinds)
    operator = get_operator(op)
    output = operator.infer(operands, operator.canonical(operands, attrs))
    return configuration_of(op, operands, output, attrs, kernel.computed)


def _full_convolution(x: TensorType, w: TensorType, *others: TensorType) -> tuple[TensorType, ...]:
    """Return operands of a convolution with full blocks; an addend has the image's axes, a bias one."""
    filters = _with_full(w, 0)
    is_one_group = w.shape[1] == x.shape[1]
    if is_one_group and not takes_unblocked(x, w):
        filters = _with_full(filters, 1)
    image = x if takes_unblocked(x, w) else _with_full(x, 1)
    return (image, filters, *(_with_full(kind, 0 if kind.rank == 1 else 1) for kind in others))


def _with_full(kind: TensorType, axis: int) -> TensorType:
    sizes = list(kind.shape)
    sizes[axis] = -(-sizes[axis] // BLOCK) * BLOCK
    return kind.with_shape(tuple(sizes))


def _blocked(configuration: Configuration) -> list[Configuration]:
    """Return a convolution or pooling with what brings its operand into blocks and its result back."""
    op, inputs = configuration.op, configuration.inputs
    if op == FromBlocks.name and isinstance(configuration.output, tuple):
        # No kernel takes several images: it is never cheaper than one for each.
        return 2 * [_reorder(FromBlocks.name, each) for each in tensors_of(configuration.output)]
    if op == "dequantize":
        # onnxruntime computes none before inference, and these are no longer part of a kernel
        return [
            configuration_of(
                op, inputs, configuration.output, {**dict(configuration.attrs), "stored": False}
            )
        ]
    if op == "hard_swish":
        gate = configuration_of("hard_sigmoid", inputs, configuration.output, {})
        return [gate, configuration_of("mul", inputs * 2, configuration.output, {})]
    if op == "softmax" and tensor(inputs[0], op).dtype in _FLOATS:
        return _spelled_softmax(configuration)
    if op == "group_norm":
        return _spelled_group_norm(configuration)
    if op not in ("conv", *_POOLS) or configuration.computed:
        return [configuration]
    x, result = tensor(inputs[0], op), tensor(configuration.output, op)
    if op in _POOLS:
        if dict(configuration.attrs)["act"] != NO_ACTIVATION or not pools_blocks(x):
            return [configuration]
        attrs = dict(configuration.attrs)
        kernel = configuration_of(OF_OPERATORS[op].name, inputs, result, attrs)
        return [_reorder(ToBlocks.name, x), kernel, _reorder(FromBlocks.name, result)]
    w = tensor(inputs[1], op)
    if not takes_filters(x, w):
        return [configuration]
    before = [] if takes_unblocked(x, w) else [_reorder(ToBlocks.name, x)]
    kernel = configuration_of(BlockedConv.name, inputs, result, dict(configuration.attrs))
    return [*before, kernel, _reorder(FromBlocks.name, result)]


def _casts(kernel: Configuration) -> list[Configuration]:
    """Return casts of what only moves float16: it is moved as such, and computed with as float32."""
    if kernel.op not in _MOVES:
        return []
    return [
        configuration_of("cast", (kind,), _as_float(kind), {"dtype": _FLOATS[kind.dtype]})
        for kind in tensors_of(kernel.output)
        if kind.dtype in _FLOATS
    ]


def _spelled_softmax(configuration: Configuration) -> list[Configuration]:
    """Return what softmax of float16 is: there is no kernel, so that ONNX's function is in its place."""
    x = tensor(configuration.inputs[0], configuration.op)
    axis = int_of(dict(configuration.attrs), "axis")
    row = x.with_shape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    over: Attrs = {"axes": (axis,), "keepdims": True}
    return [
        configuration_of("reduce_max", (x,), row, over),
        configuration_of("sub", (x, row), x, {}),
        configuration_of("exp", (x,), x, {}),
        configuration_of("reduce_sum", (x,), row, over),
        configuration_of("div", (x, row), x, {}),
    ]


def _spelled_group_norm(configuration: Configuration) -> list[Configuration]:
    """Return the kernel of an instance norm, or what a group norm is: ONNX's function is in its place."""
    x, attrs = tensor(configuration.inputs[0], configuration.op), dict(configuration.attrs)
    groups = int_of(attrs, "groups")
    if groups == x.shape[1]:
        return [configuration]
    rows = x.with_shape((x.shape[0], groups, x.size // max(1, x.shape[0] * groups)))
    row = x.with_shape((*rows.shape[:2], 1))
    column = x.with_shape((x.shape[1], *(1,) * (x.rank - 2)))
    over: Attrs = {"axes": (2,), "keepdims": True}
    return [
        configuration_of("reduce_mean", (rows,), row, over),
        configuration_of("mul", (rows, rows), rows, {}),
        configuration_of("reduce_mean", (rows,), row, over),
        configuration_of("sub", (rows, row), rows, {}),
        configuration_of("div", (rows, row), rows, {}),
        configuration_of("mul", (x, column), x, {}),
        configuration_of("add", (x, column), x, {}),
    ]


def _apart(configuration: Configuration) -> list[Configuration]:
    """Return the operators that one is written as, unless it is one kernel."""
    return [configuration] if _runs_as_one(configuration) else nodes_of(configuration)


def _runs_as_one(configuration: Configuration) -> bool:
    """Whether an operator that may have a bias or an activation is one kernel with these.

    So is a convolution, and a product of matrices; a batch of matrices takes a vector as its bias, for
    it is reshaped to one matrix. Pools have no activation.
    """
    has_activation = dict(configuration.attrs).get("act", NO_ACTIVATION) != NO_ACTIVATION
    if configuration.op != "matmul":
        return not has_activation or configuration.op not in _POOLS
    ranks = [tensor(kind, "matmul").rank for kind in configuration.inputs]
    if has_activation:
        return ranks[:2] == [2, 2] and len(ranks) == 3
    return len(ranks) == 2 or ranks[:2] == [2, 2] or ranks[1:] == [2, 1]


def _slow(kernels: list[Configuration]) -> list[Configuration]:
    """Return work of kernels once more for each time that they take longer than their arithmetic says.

    A convolution of several groups outside blocks is a product for each, with a matrix of patches, which
    stays in the cache (192 channels in groups of 24, 3x3, 28x28 places: 487 us, 271 of them its sums of
    products; of 440 in groups of 8, 4x4: 46; of 96 in groups of 3, 56x56: 485). Of the largest of windows
    outside of blocks, each element is compared by itself (24 channels, 64x64: 19 us; in blocks 5). The
    layer norm of a sum: see ``norms``. A transposition that moves one axis copies in a loop that takes
    twice as long for each stretch. The gelu of a sum goes through it after the sum (32x1536: 23.4 us, gelu
    19.3, a sum 4.6). Softmax along another axis than the last is transposed there and back. A convolution
    that makes one block of eight channels for each group has too few sums under way (64 to 8 channels,
    56x56: 722 us, to 16: 829). All on AMD EPYC, 2026-11-27 to 29.
    """
    grouped = [kernel for kernel in kernels if kernel.op == "conv" and _groups(kernel) > 1]
    products = [each for kernel in grouped for each in _by_groups(kernel)]
    norms = [kernel for kernel in kernels if kernel.op == SkipLayerNorm.name]
    pools = [kernel for kernel in kernels if kernel.op == "max_pool"]
    turns = [turn for kernel in kernels if kernel.op == "softmax" for turn in _turns(kernel)]
    transposes = [*(kernel for kernel in kernels if kernel.op == "transpose"), *turns]
    moves = [kernel for kernel in transposes if _moves_one(kernel)]
    sums = [
        configuration_of("add", kernel.inputs, kernel.output, {})
        for kernel in kernels
        if kernel.op == BiasGelu.name
    ]
    slower = [*norms * _SLOWER_WITH_SKIP, *pools * _SLOWER_OUT_OF_BLOCKS]
    alone = [kernel for kernel in kernels if _makes_one_block(kernel)]
    return [*products, *turns, *moves, *sums, *slower, *alone]


def _makes_one_block(kernel: Configuration) -> bool:
    """Whether a convolution's filters are one block of narrow registers for each group."""
    if kernel.op not in _CONVOLUTIONS or BLOCK > _NARROW_BLOCK:
        return False
    image, filters = (tensor(kind, kernel.op) for kind in kernel.inputs[:2])
    groups = max(1, image.shape[1] // filters.shape[1])
    return filters.shape[1] > 1 and filters.shape[0] // groups <= _NARROW_BLOCK


def _turns(softmax: Configuration) -> list[Configuration]:
    """Return the transpositions that bring the axis of a softmax to the end and back."""
    x, axis = tensor(softmax.inputs[0], softmax.op), int_of(dict(softmax.attrs), "axis")
    if axis == x.rank - 1:
        return []
    perm = [*range(x.rank)]
    perm[axis], perm[-1] = perm[-1], perm[axis]
    turned = x.with_shape(tuple(x.shape[each] for each in perm))
    there, back = (x, turned), (turned, x)
    return [
        configuration_of("transpose", (kind,), moved, {"perm": tuple(perm)})
        for kind, moved in (there, back)
    ]


def _by_groups(kernel: Configuration) -> list[Configuration]:
    """Return what the groups of a convolution take beside sums of products: beginning, and patches."""
    groups, patches = _groups(kernel), _patches(kernel)
    single = TensorType(patches.dtype, (2 * groups, 1, 1))
    beginning = configuration_of("matmul", (single, single), single, {})
    if prod(tensor(kernel.inputs[1], kernel.op).shape[2:]) == 1:
        return [beginning]
    pieces = -(-patches.size // _PATCHES)
    piece = patches.with_shape((2, -(-patches.size // pieces // 2)))
    return [beginning, *[_copy(piece)] * pieces]


def _moves_one(kernel: Configuration) -> bool:
    """Whether a transposition moves one axis, and not the last ones."""
    shape = tensor(kernel.inputs[0], kernel.op).shape
    perm = ints_of(dict(kernel.attrs), "perm")
    axes = moved_axes(shape, perm)
    if not stretches_of_transposition(shape, perm):
        return False
    return moves_one_axis(axes)


def _groups(kernel: Configuration) -> int:
    image, filters = (tensor(kind, kernel.op) for kind in kernel.inputs[:2])
    return image.shape[1] // filters.shape[1]


def _unprepared(configuration: Configuration) -> list[Configuration]:
    """Return copies, as what runs where operands are computed that are usually constants.

    A matrix is packed. A convolution outside blocks is a product with a matrix of the image's patches,
    unless the image is one itself. An image in blocks is brought out of them, is a product for each group
    there, and is brought back.
    """
    if not configuration.computed:
        return []
    op = configuration.op
    second = tensor(configuration.inputs[1], op)
    if get_operator(op).computes is not Family.CONVOLUTION:
        return [_copy(second)]
    result = tensor(configuration.output, op)
    stride = dict(configuration.attrs)["stride"]
    is_matrix = prod(second.shape[2:]) == 1 and stride == (1,) * (result.rank - 2)
    patches = [_copy(_patches(configuration))] * (not is_matrix)
    if op not in _CONVOLUTIONS:
        return patches
    attrs = window_of(dict(configuration.attrs))
    instead = configuration_of("conv", configuration.inputs[:2], result, attrs)
    return [*patches, *[_copy(result)] * 4, instead, *_slow([instead])]


def _patches(convolution: Configuration) -> TensorType:
    """Return the type of the patches that each place of a convolution's result is made of."""
    op = convolution.op
    image, filters = (tensor(kind, op) for kind in convolution.inputs[:2])
    result = tensor(convolution.output, op)
    rows = image.shape[1] * prod(filters.shape[2:])
    return TensorType(result.dtype, (result.shape[0], rows, prod(result.shape[2:])))


def _reorder(kernel: str, kind: TensorType) -> Configuration:
    return configuration_of(kernel, (kind,), kind, {})


def _copy(kind: TensorType) -> Configuration:
    """Return what a copy into another order costs: that of a transposition."""
    perm = last_swapped(kind)
    moved = TensorType(kind.dtype, tuple(kind.shape[axis] for axis in perm))
    return configuration_of("transpose", (kind,), moved, {"perm": perm})
