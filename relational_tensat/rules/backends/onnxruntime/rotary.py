"""Rotary positions as one kernel, ONNX's operator of version 23: onnxruntime makes none of their spelling.

Exports spell ``x · cos + (-x₂, x₁) · sin`` for x = (x₁, x₂), with cosines and sines that are the same for
both halves: six kernels, where one takes a quarter of their time (32 rows of 8 heads of 32: 2.8 µs instead
of 10.2; onnxruntime 1.32, AMD EPYC, 2026-11-28).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.tensor import Attrs, AttrValue, TensorType, ValueType
from relational_tensat.tensor.operators import Attr, Use
from relational_tensat.tensor.operators.attributes import int_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    check_one_output,
    input_type,
)
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.work_steps import ROW

#: x, cosines, sines.
_OPERANDS = 3
_RANK = 4


class _Rotary(FusedKernel):
    """(x₁ · cos - x₂ · sin, x₂ · cos + x₁ · sin) for each head's x = (x₁, x₂)."""

    is_written = True
    uses = (Use.VALUE, Use.MULTIPLIED, Use.MULTIPLIED)
    arity = (_OPERANDS, _OPERANDS)
    onnx_since: ClassVar[int] = 23

    @abstractmethod
    def _heads_first(self, x: TensorType, attrs: Attrs) -> tuple[int, ...]:
        """Return the shape ``[N, H, L, D]``; without elements where x has none such."""

    @abstractmethod
    def _counts(self, attrs: Attrs) -> dict[str, int]:
        """Return how many heads rows have, as ONNX takes it; nothing where heads are an axis."""

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """The elements of a head at one place are a row."""
        x = tensor(inputs[0], self.name)
        return [(ROW, x.size // self._heads_first(x, attrs)[-1])]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write ONNX's RotaryEmbedding, or its parts where that is not in the operator set."""
        if emitter.opset < self.onnx_since:
            return super().to_onnx(inputs, types, output, attrs, emitter)
        return emitter.emit("RotaryEmbedding", list(inputs), **self._counts(attrs))

    def _turned(
        self, inputs: Types, attrs: Attrs, heads_axis: int, apart: tuple[int, ...]
    ) -> list[FusedPart]:
        """Return the parts where x has the shape ``apart``, with heads as an axis.

        Raises:
            ShapeError: cosines and sines are not ``[N, L, D/2]``.
        """
        x, *numbers = (tensor(kind, self.name) for kind in inputs)
        sizes = self._heads_first(x, attrs)
        half = sizes[-1] // 2 if sizes else 0
        expected = (*sizes[:1], *sizes[2:3], half)
        if not half or sizes[-1] % 2 or any(kind.shape != expected for kind in numbers):
            raise ShapeError(f"{self.name} does not take {', '.join(map(str, (x, *numbers)))}")
        parts: list[FusedPart] = []
        whole = 0
        if apart != x.shape:
            parts.append(FusedPart("reshape", (0,), {"shape": apart}))
            whole = _OPERANDS
        first = _OPERANDS + len(parts)
        spread = (*expected[:heads_axis], 1, *expected[heads_axis:])
        window = {"axes": (3,), "steps": (1,)}
        parts += [
            FusedPart("slice", (whole,), {**window, "starts": (0,), "ends": (half,)}),
            FusedPart("slice", (whole,), {**window, "starts": (half,), "ends": (2 * half,)}),
            FusedPart("reshape", (1,), {"shape": spread}),
            FusedPart("reshape", (2,), {"shape": spread}),
            FusedPart("mul", (first, first + 2)),
            FusedPart("mul", (first + 1, first + 3)),
            FusedPart("sub", (first + 4, first + 5)),
            FusedPart("mul", (first + 1, first + 2)),
            FusedPart("mul", (first, first + 3)),
            FusedPart("add", (first + 7, first + 8)),
            FusedPart("concat", (first + 6, first + 9), {"axis": 3}),
        ]
        if apart != x.shape:
            parts.append(FusedPart("reshape", (first + 10,), {"shape": x.shape}))
        return parts


class Rotary(_Rotary):
    """Of x ``[N, H, L, D]``, with cosines and sines ``[N, L, D/2]``."""

    name = "ort_rotary"
    onnx = ("RotaryEmbedding",)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Read it with heads as an axis, and of rows; None of positions, pairs, and parts of heads."""
        check_one_output(node)
        others_given = [v for name, v in node.attributes.items() if name != "num_heads"]
        if any(others_given) or len(node.inputs) != _OPERANDS:
            return None
        if input_type(node, 0).rank == _RANK:
            return Mapped(self.name, node.inputs)
        return Mapped(HeadsRotary.name, node.inputs, {"heads": attr_int(node, "num_heads", 0)})

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Halves, products, sums, joined.

        Raises:
            ShapeError: an operand has another shape than that.
        """
        return self._turned(inputs, attrs, 1, tensor(inputs[0], self.name).shape)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places."""
        n, heads, rows, size = _known(partial, _RANK) or (
            *(hints.size() for _ in range(3)),
            2 * hints.size(),
        )
        return hints.type((n, heads, rows, size) if index == 0 else (n, rows, size // 2))

    def _heads_first(self, x: TensorType, attrs: Attrs) -> tuple[int, ...]:
        return x.shape if x.rank == _RANK else ()

    def _counts(self, attrs: Attrs) -> dict[str, int]:
        return {}


class HeadsRotary(_Rotary):
    """Of x ``[N, L, H·D]`` of H ``heads``, with cosines and sines ``[N, L, D/2]``."""

    name = "ort_heads_rotary"
    attrs = (Attr("heads", "int"),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Heads apart, halves, products, sums, joined.

        Raises:
            ShapeError: an operand has another shape than that.
        """
        sizes = self._heads_first(tensor(inputs[0], self.name), attrs)
        apart = (*sizes[:1], *sizes[2:3], *sizes[1:2], *sizes[3:])
        return self._turned(inputs, attrs, 2, apart)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Few heads and places."""
        heads = partial.attrs.get("heads")
        heads = heads if isinstance(heads, int) else hints.choices.below(2) + 1
        n, rows, width = _known(partial, _RANK - 1) or (
            hints.size(),
            hints.size(),
            2 * heads * hints.size(),
        )
        return hints.type((n, rows, width) if index == 0 else (n, rows, width // heads // 2))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """One head or two."""
        return hints.choices.below(2) + 1

    def _heads_first(self, x: TensorType, attrs: Attrs) -> tuple[int, ...]:
        heads = int_of(attrs, "heads")
        if x.rank != _RANK - 1 or heads < 1 or x.shape[2] % heads:
            return ()
        n, rows, width = x.shape
        return (n, heads, rows, width // heads)

    def _counts(self, attrs: Attrs) -> dict[str, int]:
        return {"num_heads": int_of(attrs, "heads")}


def _known(partial: PartialApplication, rank: int) -> tuple[int, ...] | None:
    """Return the shape of x, where it is known and of that rank."""
    x = (*partial.shapes, None)[0]
    return x if x and len(x) == rank else None


ROTARY_KERNELS: tuple[type[FusedKernel], ...] = (Rotary, HeadsRotary)
