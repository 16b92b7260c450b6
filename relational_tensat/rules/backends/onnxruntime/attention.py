"""Attention as one kernel, ONNX's operator of version 23: onnxruntime does not make it of its spelling.

A row of which all keys are masked by -inf gives zeros there, as ONNX says, which is what exports of today's
models spell behind softmax (``Where(IsNaN(s), 0, s)``). onnxruntime 1.32 gives zeros also where all scores
of a row are the lowest number of their type, which exports mask with, too: softmax makes equal weights of
these. So masks go through ``Mask``, which never gives such a number.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.tensor import Attrs, AttrValue, TensorType, ValueType
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, float_of, int_of
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    ONNX_DTYPES,
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_int,
    check_one_output,
    emit_constant,
    input_type,
)
from relational_tensat.tensor.operators.samples import NUMBERS, Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import one_dtype
from relational_tensat.tensor.types import FLOAT_DTYPES

_RANK = 4
_SWAPPED = (0, 1, 3, 2)
#: Between places before heads and heads before places.
_HEADS_FIRST = (0, 2, 1, 3)
#: Numbers that only masks have lie below these, and so much of them is left.
_BELOW: dict[str, float] = {"float32": -1e38}
_PART = 0.99
#: q, k, v, mask.
_OPERANDS = 4
#: As what halves are computed: scores of a masked row are not lost beside float16's lowest number there.
_WIDE = {"float16": "float32"}
#: The attributes that are read of ONNX's operator: all others are 0 where they have no say.
_READ = ("scale", "q_num_heads", "kv_num_heads")
_COMMON = (
    Attr("scale", "float", 1.0, samples=tuple(n for n in NUMBERS if n > 0), timed_as=1.0),
    Attr("guarded", "bool", False),
)


class _Attention(FusedKernel):
    """softmax(scale · q·k' + mask)·v for each head; ``guarded``: zeros where that softmax is NaN.

    There may be fewer heads of k and v: each is for as many heads of q, one after the other.
    """

    is_written = True
    computes = Family.MATRIX_PRODUCT
    uses = (Use.VALUE, Use.VALUE, Use.VALUE, Use.SCORE)
    arity = (3, 4)
    onnx_since: ClassVar[int] = 23

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """The work on floats, between casts where its operands have fewer digits.

        Raises:
            ShapeError: an operand has another shape or type than that, or the scale is not above 0.
        """
        kinds = [tensor(kind, self.name) for kind in inputs]
        narrow = one_dtype(self.name, kinds, FLOAT_DTYPES)
        wide = _WIDE.get(narrow, narrow)
        parts = self._parts_of_floats([replace(kind, dtype=wide) for kind in kinds], attrs)
        if wide == narrow:
            return parts
        count = len(kinds)
        casts = [FusedPart("cast", (n,), {"dtype": wide}) for n in range(count)]
        moved = [FusedPart(p.op, tuple(count + n for n in p.operands), p.attrs) for p in parts]
        last = 2 * count + len(parts) - 1
        return [*casts, *moved, FusedPart("cast", (last,), {"dtype": narrow})]

    @abstractmethod
    def _parts_of_floats(self, kinds: Sequence[TensorType], attrs: Attrs) -> list[FusedPart]:
        """Return what it does to operands of these types, as ``parts``."""

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        q, k, _ = (tensor(kind, self.name) for kind in inputs[:3])
        return 2 * k.shape[-2] * (q.size + tensor(output, self.name).size)

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Those of softmax and of both batches of products: all else is done to elements on their way."""
        parts, kinds = self.typed_parts(inputs, attrs)
        works = []
        for number, part in enumerate(parts, len(inputs)):
            if part.op in ("softmax", "matmul"):
                own = tuple(kinds[operand] for operand in part.operands)
                works += get_operator(part.op).works(own, kinds[number], part.attrs)
        return works

    @abstractmethod
    def _counts(self, types: Types, attrs: Attrs) -> dict[str, int]:
        """Return how many heads rows have, as ONNX takes it; nothing where heads are an axis."""

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write ONNX's Attention, or its parts where that is not in the operator set."""
        if emitter.opset < self.onnx_since:
            return super().to_onnx(inputs, types, output, attrs, emitter)
        own: dict[str, Any] = {"scale": float_of(attrs, "scale"), **self._counts(types, attrs)}
        dtype = tensor(output, self.name).dtype
        if dtype not in _WIDE:
            return emitter.emit("Attention", list(inputs), **own)
        wide, narrow = (ONNX_DTYPES[each] for each in (_WIDE[dtype], dtype))
        operands = [name for each in inputs for name in emitter.emit("Cast", [each], to=wide)]
        return emitter.emit("Cast", emitter.emit("Attention", operands, **own), to=narrow)


class Attention(_Attention):
    """Attention of q ``[N, H, L, D]``, k ``[N, H, S, D]``, v ``[N, H, S, E]``: ``[N, H, L, E]``."""

    name = "ort_attention"
    attrs = _COMMON
    onnx = ("Attention",)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Read attention of heads as an axis, and of rows."""
        return _read(node)

    def _parts_of_floats(self, kinds: Sequence[TensorType], attrs: Attrs) -> list[FusedPart]:
        _check(self.name, kinds, attrs)
        return _of_heads(range(len(kinds)), len(kinds), kinds, attrs)

    def _counts(self, types: Types, attrs: Attrs) -> dict[str, int]:
        return {}

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places."""
        return hints.type(_suggested(index, partial, hints))


class HeadsAttention(_Attention):
    """Attention of q ``[N, L, H·D]``, k ``[N, S, H·D]``, v ``[N, S, H·E]``, of H ``heads``."""

    name = "ort_heads_attention"
    attrs = (Attr("heads", "int"), *_COMMON)

    def _parts_of_floats(self, kinds: Sequence[TensorType], attrs: Attrs) -> list[FusedPart]:
        """Return what brings heads to the front, attention, and what brings them back."""
        parts: list[FusedPart] = []
        apart = []
        for number, heads in enumerate(self._numbers(tuple(kinds), attrs)):
            kind = kinds[number]
            if kind.rank != 3 or heads < 1 or kind.shape[-1] % heads:
                raise ShapeError(f"{self.name}: {kind} has no rows of {heads} heads")
            n, rows, size = kind.shape
            shape = {"shape": (n, rows, heads, size // heads)}
            parts.append(FusedPart("reshape", (number,), shape))
            parts.append(
                FusedPart("transpose", (len(kinds) + len(parts) - 1,), {"perm": _HEADS_FIRST})
            )
            apart.append(TensorType(kind.dtype, (n, heads, rows, size // heads)))
        _check(self.name, [*apart, *kinds[3:]], attrs)
        operands = [*(len(kinds) + n for n in (1, 3, 5)), *range(3, len(kinds))]
        parts += _of_heads(operands, len(kinds) + len(parts), apart, attrs)
        parts.append(FusedPart("transpose", (len(kinds) + len(parts) - 1,), {"perm": _HEADS_FIRST}))
        n, heads, rows, _ = apart[0].shape
        joined = {"shape": (n, rows, heads * apart[2].shape[3])}
        return [*parts, FusedPart("reshape", (len(kinds) + len(parts) - 1,), joined)]

    def _counts(self, types: Types, attrs: Attrs) -> dict[str, int]:
        heads, others, _ = self._numbers(types, attrs)
        return {"q_num_heads": heads, "kv_num_heads": others}

    def _numbers(self, inputs: Types, attrs: Attrs) -> tuple[int, int, int]:
        """Return how many heads q, k and v have: those of q and k are of one size."""
        heads = int_of(attrs, "heads")
        q, k = (tensor(kind, self.name).shape[-1:] for kind in inputs[:2])
        size = q[0] // heads if q and heads > 0 else 0
        others = k[0] // size if k and size else 0
        return heads, others, others

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places; a mask has heads as an axis."""
        q, k = ([*partial.shapes[:2], None, None])[:2]
        heads = partial.attrs.get("heads")
        heads = heads if isinstance(heads, int) else hints.choices.below(2) + 1
        free = (hints.size(), hints.size(), heads * hints.size())
        n, rows, width = q if q and len(q) == 3 else free
        if index == 0:
            return hints.type((n, rows, width))
        keys = k[1] if k and len(k) == 3 else hints.size()
        return hints.type((n, heads, rows, keys) if index == 3 else (n, keys, width))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """One head or two; else as any operator."""
        if attr.name != "heads":
            return super().suggest_attribute(attr, partial, hints)
        return hints.choices.below(2) + 1


class Mask(FusedKernel):
    """x, but for numbers that only masks have: 99 in 100 of what is below ``_BELOW``. -inf stays -inf.

    Behind softmax that is the same: its weights are 0 beside any other number, and equal among equals.
    """

    name = "ort_mask"
    is_written = True
    #: Only softmax reads its rounded numbers, and they are the same to it.
    is_exact = True

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Nothing that numbers of models show."""
        return [FusedPart("identity", (0,))]

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        below = _BELOW.get(tensor(types[0], self.name).dtype, -math.inf)
        return np.maximum(inputs[0], np.minimum(_PART * np.asarray(inputs[0]), below))

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """A product and two comparisons for each element."""
        return 3 * tensor(output, self.name).size

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the product and comparisons; nothing for types that attention is not of."""
        dtype = tensor(types[0], self.name).dtype
        if dtype not in _BELOW:
            return emitter.emit("Identity", list(inputs))
        (most,) = emitter.emit("Mul", [inputs[0], emit_constant(emitter, _PART, dtype)])
        (limited,) = emitter.emit("Min", [most, emit_constant(emitter, _BELOW[dtype], dtype)])
        return emitter.emit("Max", [inputs[0], limited])


def _check(name: str, kinds: Sequence[TensorType], attrs: Attrs) -> None:
    """Check operands with heads as their second axis, and the scale, whose root ONNX takes.

    Raises:
        ShapeError: they do not fit, or the scale is not above 0.
    """
    if not float_of(attrs, "scale") > 0:
        raise ShapeError(f"{name}: the scale is {float_of(attrs, 'scale')}, expected one above 0")
    q, k, v = kinds[:3]
    fits = (
        q.rank == k.rank == v.rank == _RANK
        and q.shape[0] == k.shape[0]
        and k.shape[:2] == v.shape[:2]
        and q.shape[1] % k.shape[1] == 0
        and q.shape[3] == k.shape[3]
        and k.shape[2] == v.shape[2]
    )
    rows = (*q.shape[:3], k.shape[2]) if fits else ()
    masks = [kind.shape for kind in kinds[3:]]
    is_masked = all(
        len(shape) == _RANK
        and shape[2:] == rows[2:]
        and all(size in (1, all_) for size, all_ in zip(shape, rows, strict=True))
        for shape in masks
    )
    if not fits or not is_masked:
        raise ShapeError(f"{name} does not take {', '.join(map(str, kinds))}")


def _read(node: OnnxNode) -> Mapped | None:
    """Return what ONNX's Attention is; None where it is causal, has a cache, or no scale above 0.

    Rows that a mask leaves nothing of are zeros, as ONNX says.
    """
    check_one_output(node)
    others_given = [value for name, value in node.attributes.items() if name not in _READ]
    if any(others_given) or len(node.inputs) > _OPERANDS or "" in node.inputs:
        return None
    kinds = [input_type(node, index) for index in range(len(node.inputs))]
    if len({kind.dtype for kind in kinds}) > 1:
        return None
    heads = attr_int(node, "q_num_heads", kinds[0].shape[1])
    is_of_rows = kinds[0].rank == _RANK - 1
    size = kinds[0].shape[-1] // heads if is_of_rows else kinds[0].shape[-1]
    scale = attr_float(node, "scale", 1 / math.sqrt(size))
    if scale <= 0:
        return None
    attrs: dict[str, AttrValue] = {"scale": scale, "guarded": len(kinds) == _OPERANDS}
    if not is_of_rows:
        return Mapped(Attention.name, node.inputs, attrs)
    others = attr_int(node, "kv_num_heads", heads)
    if kinds[1].shape[-1] != others * size:
        return None
    return Mapped(HeadsAttention.name, node.inputs, {"heads": heads, **attrs})


def _of_heads(
    operands: Sequence[int], first: int, kinds: Sequence[TensorType], attrs: Attrs
) -> list[FusedPart]:
    """Return what attention does where heads are an axis.

    Args:
        operands: the numbers of q, k, v, and a mask if there is one.
        first: the number of the first of these parts.
        kinds: the types of q, k and v.
    """
    q, k, v, *masks = operands
    parts: list[FusedPart] = []

    def last() -> int:
        return first + len(parts) - 1

    if kinds[0].shape[1] != kinds[1].shape[1]:
        parts += _repeated(k, first, kinds[0].shape[1], kinds[1])
        k = last()
        parts += _repeated(v, first + len(parts), kinds[0].shape[1], kinds[2])
        v = last()
    parts.append(FusedPart("transpose", (k,), {"perm": _SWAPPED}))
    parts.append(FusedPart("matmul", (q, last())))
    if float_of(attrs, "scale") != 1.0:
        parts.append(FusedPart("smul", (last(),), {"value": float_of(attrs, "scale")}))
    parts += [FusedPart("add", (last(), mask)) for mask in masks]
    parts.append(FusedPart("softmax", (last(),), {"axis": 3}))
    if bool_of(attrs, "guarded"):
        softmax = last()
        zero = FusedPart("fill", (), {"value": 0.0, "dtype": kinds[0].dtype, "shape": ()})
        parts += [FusedPart("is_nan", (softmax,)), zero]
        parts.append(FusedPart("where", (softmax + 1, softmax + 2, softmax)))
    return [*parts, FusedPart("matmul", (last(), v))]


def _repeated(operand: int, first: int, heads: int, kind: TensorType) -> list[FusedPart]:
    """Return what gives each of ``heads`` its keys or values, those of its group."""
    n, groups, rows, size = kind.shape
    spread = {"shape": (n, groups, heads // groups, rows, size)}
    return [
        FusedPart("reshape", (operand,), {"shape": (n, groups, 1, rows, size)}),
        FusedPart("expand", (first,), spread),
        FusedPart("reshape", (first + 1,), {"shape": (n, heads, rows, size)}),
    ]


def _suggested(index: int, partial: PartialApplication, hints: Hints) -> tuple[int, ...]:
    """Return a shape of an operand with heads as its second axis, that fits those that are known."""
    q, k = ([*partial.shapes[:2], None, None])[:2]
    sample = q if q and len(q) == _RANK else k if k and len(k) == _RANK else None
    n, heads, rows, size = sample or [hints.size() for _ in range(_RANK)]
    if index == 0:
        return (n, heads, rows, size)
    keys = k[2] if k and len(k) == _RANK else hints.size()
    return (n, heads, rows, keys) if index == 3 else (n, heads, keys, size)


ATTENTION_KERNELS: tuple[type[FusedKernel], ...] = (Attention, HeadsAttention, Mask)
