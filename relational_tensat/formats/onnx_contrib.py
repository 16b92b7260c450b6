"""onnxruntime's own operators, read as the operators that they do at once.

They are what language models are deployed with. A node that nothing is made of is written as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators import Operator, map_onnx
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    OnnxForm,
    OnnxNode,
    attr_float,
    attr_int,
    input_type,
)

#: The operators that compute a value, by the name of the value; earlier ones may be operands.
Parts = Mapping[str, Mapped]

_QUICK = 1.702


def read_parts(node: OnnxNode) -> Parts | None:
    """Return what the outputs of one of these are computed as; None where it stays opaque.

    Raises:
        ShapeError, IndexError: it does not take its operands.
    """
    reader = _READERS.get(node.op_type)
    return None if reader is None else reader(node)


class _AlreadyMapped(OnnxForm):
    """Says what a node becomes, to have that checked."""

    def __init__(self, mapped: Mapped) -> None:
        self._mapped = mapped

    def read_onnx(self, node: OnnxNode) -> Mapped:
        return self._mapped


def check_mapped(mapped: Mapped, node: OnnxNode) -> Mapped | None:
    """Return what a node becomes with canonical attributes; None where its operators do not take it."""
    return map_onnx(cast(Operator, _AlreadyMapped(mapped)), node)


def _given(node: OnnxNode, place: int) -> str:
    """Return an operand that may be left out; "" where it is."""
    return node.inputs[place] if place < len(node.inputs) else ""


def _only(node: OnnxNode, mapped: Mapped) -> Parts | None:
    """Return the parts of a node's first output; None where another one is used."""
    return None if any(node.outputs[1:]) else {node.outputs[0]: mapped}


def _norm(node: OnnxNode, op: str, scale: int, shift: int, epsilon: float) -> Parts | None:
    """Return the norm, over the last axis, of a sum of two tensors and perhaps a bias, and the sum."""
    total = Mapped("add", node.inputs[:2])
    if bias := _given(node, shift + 1 if shift else scale + 1):
        total = Mapped("add", (total, bias))
    operands = [node.inputs[scale], *filter(None, [_given(node, shift) if shift else ""])]
    attrs = {"axis": input_type(node, 0).rank - 1, "epsilon": epsilon}
    outputs = (*node.outputs, "", "", "")
    if outputs[1] or outputs[2] or input_type(node, 0).shape != input_type(node, 1).shape:
        return None
    norm = Mapped(op, (outputs[3] or total, *operands), attrs)
    return {outputs[3]: total, outputs[0]: norm} if outputs[3] else {outputs[0]: norm}


def _skip_layer_norm(node: OnnxNode) -> Parts | None:
    return _norm(node, "layer_norm", 2, 3, attr_float(node, "epsilon", 1e-12))


def _skip_rms_norm(node: OnnxNode) -> Parts | None:
    return _norm(node, "rms_norm", 2, 0, attr_float(node, "epsilon", 1e-12))


def _fast_gelu(node: OnnxNode) -> Parts | None:
    x: str | Mapped = node.inputs[0]
    if bias := _given(node, 1):
        x = Mapped("add", (node.inputs[0], bias))
    return _only(node, Mapped("gelu", (x,), {"approximate": "tanh"}))


def _bias_gelu(node: OnnxNode) -> Parts | None:
    return _only(node, Mapped("gelu", (Mapped("add", node.inputs[:2]),)))


def _quick_gelu(node: OnnxNode) -> Parts | None:
    x = node.inputs[0]
    scaled = Mapped("smul", (x,), {"value": attr_float(node, "alpha", _QUICK)})
    return _only(node, Mapped("mul", (x, Mapped("sigmoid", (scaled,)))))


def _scaled(mapped: Mapped, value: float) -> Mapped:
    return mapped if value == 1.0 else Mapped("smul", (mapped,), {"value": value})


def _fused_matmul(node: OnnxNode) -> Parts | None:
    if attr_int(node, "transBatchA", 0) or attr_int(node, "transBatchB", 0):
        return None

    def factor(place: int, flag: str) -> str | Mapped:
        rank = input_type(node, place).rank
        if not attr_int(node, flag, 0) or rank < 2:  # a vector is not transposed
            return node.inputs[place]
        perm = (*range(rank - 2), rank - 1, rank - 2)
        return Mapped("transpose", (node.inputs[place],), {"perm": perm})

    product = Mapped("matmul", (factor(0, "transA"), factor(1, "transB")))
    return _only(node, _scaled(product, attr_float(node, "alpha", 1.0)))


def _rotary(node: OnnxNode) -> Parts | None:
    """Return rotary positions of whole heads' halves, whose places are given one by one."""
    flags = ("interleaved", "is_packed_batching", "rotary_embedding_dim")
    x, places = input_type(node, 0), input_type(node, 1)
    if any(attr_int(node, flag, 0) for flag in flags) or attr_float(node, "scale", 1.0) != 1.0:
        return None
    half = input_type(node, 2).shape[-1]
    if places.rank != 2 or x.rank not in (3, 4) or x.shape[-1] % (2 * half):
        return None
    heads_axis = 1 if x.rank == 4 else 2
    if x.rank == 4 and x.shape[-1] != 2 * half:
        return None
    apart = x.shape if x.rank == 4 else (*x.shape[:2], x.shape[2] // (2 * half), 2 * half)
    spread = (*places.shape[:heads_axis], 1, *places.shape[heads_axis:], half)
    split = node.inputs[0] if x.rank == 4 else Mapped("reshape", node.inputs[:1], {"shape": apart})

    def part(start: int) -> Mapped:
        window: dict[str, Any] = {"axes": (3,), "steps": (1,)}
        return Mapped("slice", (split,), {**window, "starts": (start,), "ends": (start + half,)})

    def numbers(place: int) -> Mapped:
        taken = Mapped("gather", (node.inputs[place], node.inputs[1]), {"axis": 0})
        return Mapped("reshape", (taken,), {"shape": spread})

    first, second, cosines, sines = part(0), part(half), numbers(2), numbers(3)
    turned = (
        Mapped("sub", (Mapped("mul", (first, cosines)), Mapped("mul", (second, sines)))),
        Mapped("add", (Mapped("mul", (second, cosines)), Mapped("mul", (first, sines)))),
    )
    whole = Mapped("concat", turned, {"axis": 3})
    return _only(node, whole if x.rank == 4 else Mapped("reshape", (whole,), {"shape": x.shape}))


def _attention(node: OnnxNode) -> Parts | None:
    """Return attention of several heads without a cache: queries, keys, values, and what is added."""
    heads, query = attr_int(node, "num_heads", 0), input_type(node, 0)
    if any(_given(node, place) for place in (3, 4, 6, 7, 8, 9)) or len(node.inputs) < 3:
        return None  # a bias, masks, a cache
    if attr_int(node, "unidirectional", 0) or not heads:
        return None

    def apart(place: int) -> Mapped:
        kind = input_type(node, place)
        if kind.rank != 3 or kind.shape[2] % heads:
            raise ShapeError("heads are not rows of a matrix")
        shape = (*kind.shape[:2], heads, kind.shape[2] // heads)
        split = Mapped("reshape", (node.inputs[place],), {"shape": shape})
        return Mapped("transpose", (split,), {"perm": (0, 2, 1, 3)})

    queries, keys, values = map(apart, range(3))
    turned = Mapped("transpose", (keys,), {"perm": (0, 1, 3, 2)})
    width = query.shape[2] // heads
    scale = attr_float(node, "scale", 0.0) or width**-0.5
    scores = _scaled(Mapped("matmul", (queries, turned)), scale)
    if added := _given(node, 5):
        scores = Mapped("add", (scores, added))
    shares = Mapped("softmax", (scores,), {"axis": 3})
    mixed = Mapped("transpose", (Mapped("matmul", (shares, values)),), {"perm": (0, 2, 1, 3)})
    shape = (*query.shape[:2], input_type(node, 2).shape[2])
    return _only(node, Mapped("reshape", (mixed,), {"shape": shape}))


_READERS: Mapping[str, Callable[[OnnxNode], Parts | None]] = {
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "FastGelu": _fast_gelu,
    "BiasGelu": _bias_gelu,
    "QuickGelu": _quick_gelu,
    "FusedMatMul": _fused_matmul,
    "RotaryEmbedding": _rotary,
    "MultiHeadAttention": _attention,
}
