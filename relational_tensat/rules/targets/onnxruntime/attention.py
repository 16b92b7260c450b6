"""Attention as one kernel, ONNX's operator of version 23: onnxruntime does not make it of its spelling.

A row of which all keys are masked by -inf gives zeros there, as ONNX says, which is what exports of today's
models spell behind softmax (``Where(IsNaN(s), 0, s)``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.tensor import Attrs, TensorType, ValueType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr, Family, Use
from relational_tensat.tensor.operators.attributes import bool_of, float_of, int_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter
from relational_tensat.tensor.operators.sampling import NUMBERS, PartialApplication

_RANK = 4
_SWAPPED = (0, 1, 3, 2)
#: Between places before heads and heads before places.
_HEADS_FIRST = (0, 2, 1, 3)
_COMMON = (
    Attr("scale", "float", 1.0, samples=NUMBERS, timed_as=1.0),
    Attr("guarded", "bool", False),
)


class _Attention(FusedKernel):
    """softmax(scale · q·k' + mask)·v for each head; ``guarded``: zeros where that softmax is NaN."""

    is_written = True
    computes = Family.MATRIX_PRODUCT
    uses = (Use.VALUE, Use.VALUE, Use.VALUE, Use.ADDED)
    arity = (3, 4)
    onnx_since: ClassVar[int] = 23

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Those of both products."""
        q, k, v = (tensor(kind, self.name) for kind in inputs[:3])
        keys = k.shape[-2]
        return 2 * keys * (q.size + q.size // q.shape[-1] * v.shape[-1])

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """That of softmax: all else is done to elements on their way."""
        parts, kinds = self.typed_parts(inputs, attrs)
        number = next(number for number, part in enumerate(parts) if part.op == "softmax")
        return [("softmax", tensor(kinds[len(inputs) + number], self.name).size)]

    @abstractmethod
    def _heads(self, attrs: Attrs) -> int | None:
        """Return how many heads rows have; None where heads are an axis."""

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write ONNX's Attention, or its parts where that is not in the operator set."""
        if emitter.opset < self.onnx_since:
            return super().to_onnx(inputs, types, output, attrs, emitter)
        heads = self._heads(attrs)
        counts = {} if heads is None else {"q_num_heads": heads, "kv_num_heads": heads}
        return emitter.emit("Attention", list(inputs), scale=float_of(attrs, "scale"), **counts)


class Attention(_Attention):
    """Attention of q ``[N, H, L, D]``, k ``[N, H, S, D]``, v ``[N, H, S, E]``: ``[N, H, L, E]``."""

    name = "ort_attention"
    attrs = _COMMON

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Scores, softmax, product.

        Raises:
            ShapeError: an operand has another shape than that.
        """
        kinds = [tensor(kind, self.name) for kind in inputs]
        _check(self.name, kinds)
        return _of_heads(range(len(kinds)), len(kinds), kinds[0].dtype, attrs)

    def _heads(self, attrs: Attrs) -> int | None:
        return None

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places."""
        return hints.type(_suggested(index, partial, hints))


class HeadsAttention(_Attention):
    """Attention of q ``[N, L, H·D]``, k ``[N, S, H·D]``, v ``[N, S, H·E]``, of H ``heads``."""

    name = "ort_heads_attention"
    attrs = (Attr("heads", "int"), *_COMMON)

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Heads come first, attention, and last again.

        Raises:
            ShapeError: an operand has another shape than that.
        """
        heads = int_of(attrs, "heads")
        kinds = [tensor(kind, self.name) for kind in inputs]
        parts: list[Part] = []
        apart = []
        for number, kind in enumerate(kinds[:3]):
            if kind.rank != 3 or heads < 1 or kind.shape[-1] % heads:
                raise ShapeError(f"{self.name}: {kind} has no rows of {heads} heads")
            n, rows, size = kind.shape
            shape = {"shape": (n, rows, heads, size // heads)}
            parts.append(Part("reshape", (number,), shape))
            parts.append(Part("transpose", (len(kinds) + len(parts) - 1,), {"perm": _HEADS_FIRST}))
            apart.append(TensorType(kind.dtype, (n, heads, rows, size // heads)))
        _check(self.name, [*apart, *kinds[3:]])
        operands = [*(len(kinds) + n for n in (1, 3, 5)), *range(3, len(kinds))]
        parts += _of_heads(operands, len(kinds) + len(parts), kinds[0].dtype, attrs)
        parts.append(Part("transpose", (len(kinds) + len(parts) - 1,), {"perm": _HEADS_FIRST}))
        (n, rows, _), columns = kinds[0].shape, kinds[2].shape[2]
        joined = {"shape": (n, rows, columns)}
        return [*parts, Part("reshape", (len(kinds) + len(parts) - 1,), joined)]

    def _heads(self, attrs: Attrs) -> int | None:
        return int_of(attrs, "heads")

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places; a mask has heads as an axis."""
        shape = _suggested(index, partial, hints)
        heads = partial.attrs.get("heads", shape[1])
        if index == 3 or not isinstance(heads, int):
            return hints.type(shape)
        return hints.type((shape[0], shape[2], heads * shape[3]))


def _check(name: str, kinds: Sequence[TensorType]) -> None:
    """Check operands with heads as their second axis.

    Raises:
        ShapeError: they do not fit.
    """
    q, k, v = kinds[:3]
    fits = (
        q.rank == k.rank == v.rank == _RANK
        and q.shape[:2] == k.shape[:2] == v.shape[:2]
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


def _of_heads(operands: Sequence[int], first: int, dtype: str, attrs: Attrs) -> list[Part]:
    """Return what attention does where heads are an axis.

    Args:
        operands: the numbers of q, k, v, and a mask if there is one.
        first: the number of the first of these parts.
    """
    q, k, v, *masks = operands
    parts = [Part("transpose", (k,), {"perm": _SWAPPED}), Part("matmul", (q, first))]

    def last() -> int:
        return first + len(parts) - 1

    if float_of(attrs, "scale") != 1.0:
        parts.append(Part("smul", (last(),), {"value": float_of(attrs, "scale")}))
    parts += [Part("add", (last(), mask)) for mask in masks]
    parts.append(Part("softmax", (last(),), {"axis": 3}))
    if bool_of(attrs, "guarded"):
        softmax = last()
        zero = Part("fill", (), {"value": 0.0, "dtype": dtype, "shape": ()})
        parts += [Part("is_nan", (softmax,)), zero]
        parts.append(Part("where", (softmax + 1, softmax + 2, softmax)))
    return [*parts, Part("matmul", (last(), v))]


def _suggested(index: int, partial: PartialApplication, hints: Hints) -> tuple[int, ...]:
    """Return a shape of an operand with heads as its second axis, that fits those that are known."""
    q, k = ([*partial.shapes[:2], None, None])[:2]
    sample = q if q and len(q) == _RANK else k if k and len(k) == _RANK else None
    n, heads, rows, size = sample or [hints.size() for _ in range(_RANK)]
    if index == 0:
        return (n, heads, rows, size)
    keys = k[2] if k and len(k) == _RANK else hints.size()
    return (n, heads, rows, keys) if index == 3 else (n, heads, keys, size)


ATTENTION_KERNELS: tuple[type[FusedKernel], ...] = (Attention, HeadsAttention)
