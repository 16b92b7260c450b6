"""A fused kernel as an operator: it computes the same as the operators that it stands for."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.tensor import Attrs, ValueType, tensors_of
from relational_tensat.tensor.operators import Attr, get_operator, register
from relational_tensat.tensor.operators.attributes import ints_of, str_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter
from relational_tensat.tensor.types import AttrValue, numpy_dtype

#: The domain of the local functions that kernels are in ONNX files.
DOMAIN = "relational_tensat.kernels"
_KEY = "relational_tensat.mugraph"
#: The beginning of a word that could be taken for a number.
_WORD = "b"


@register
class Fused(FusedKernel):
    """A kernel made of a μGraph.

    Attributes:
        mugraph: the hash of the μGraph's content.
        body: the operators that it stands for, and which of their results it gives, as ``body_of``
            writes them.

    It gives a tuple, of one tensor or several.
    In ONNX it is a call of a local function of these operators: any runtime runs it, and ONNX's inliner
    leaves plain nodes. For several sizes of a model it is one: a reshape may say 0 for a size that is its
    operand's, and -1 for what is left.
    """

    name = "fused"
    is_written = True
    multi_output = True
    arity = (1, None)
    takes_tuples = True  # an e-node has five operands: the others are one, a tuple
    attrs = (Attr("mugraph", "str"), Attr("body", "str"))

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return [
            FusedPart(op, tuple(operands), {name: _value(value) for name, value in values.items()})
            for op, operands, values in _decoded(str_of(attrs, "body"))["parts"]
        ]

    def attrs_there(self, part: FusedPart, types: Types) -> Attrs:
        """Return a part's attributes, a reshape's with the shape in full."""
        if part.op != "reshape":
            return part.attrs
        said = ints_of(part.attrs, "shape")
        return {"shape": _whole_shape(said, tensor(types[0], part.op).shape)}

    def infer(self, inputs: Types, attrs: Attrs) -> ValueType:  # type: ignore[override]  # a tuple
        """Return the types of what it gives."""
        return self.result(self.typed_parts(inputs, attrs)[1], attrs)

    def result(self, values: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        """Return those that others than the kernel need."""
        numbers: list[int] = _decoded(str_of(attrs, "body"))["results"]
        if not numbers or not all(0 <= number < len(values) for number in numbers):
            raise ShapeError(f"fused: results {numbers} of {len(values)} values")
        return tuple(values[number] for number in numbers)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Return those of all operators."""
        parts, kinds = self.typed_parts(inputs, attrs)
        first = sum(len(tensors_of(kind)) for kind in inputs)
        return sum(
            get_operator(part.op).flops(
                tuple(kinds[operand] for operand in part.operands), kinds[number], part.attrs
            )
            for number, part in enumerate(parts, first)
        )

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Call a local function."""
        parts, kinds = self.typed_parts(types, attrs)

        def body(inner: OnnxEmitter, operands: Names) -> list[str]:
            names = [[name] for name in operands]  # of a tuple several
            said = self.parts(types, attrs)
            for number, part in enumerate(parts, len(types)):
                own_kinds = tuple(kinds[operand] for operand in part.operands)
                own = [name for operand in part.operands for name in names[operand]]
                if part.op == "reshape":
                    part = said[number - len(types)]
                if part.op == "fill":
                    shape, dtype = ints_of(part.attrs, "shape"), str_of(part.attrs, "dtype")
                    filled = np.full(shape, part.attrs["value"], numpy_dtype(dtype))
                    names.append([inner.constant(filled)])
                    continue
                operator = get_operator(part.op)
                names.append(operator.to_onnx(own, own_kinds, kinds[number], part.attrs, inner))
            return [name for one in self.result(names, attrs) for name in one]

        key = str_of(attrs, "mugraph")
        return emitter.call(DOMAIN, f"fused_{key}", inputs, body, {_KEY: key})


def _whole_shape(said: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return a reshape's shape in full.

    Raises:
        ShapeError: it has a size that is copied of no dim, or several that are left.
    """
    copied = [shape[n] if not size and n < len(shape) else size for n, size in enumerate(said)]
    known = math.prod(size for size in copied if size != -1)
    if min(copied, default=1) < -1 or not known or copied.count(-1) > 1:
        raise ShapeError(f"fused: a reshape of {list(shape)} to {list(said)}")
    return tuple(math.prod(shape) // known if size == -1 else size for size in copied)


def body_of(parts: Sequence[FusedPart], results: Sequence[int]) -> str:
    """Return operators as the attribute ``body`` has them: JSON as one word of the rule language.

    Args:
        parts: in order.
        results: numbers, as parts have them for their operands, of the values that the kernel gives.
    """
    written = [[part.op, list(part.operands), dict(part.attrs)] for part in parts]
    text = json.dumps({"parts": written, "results": list(results)})
    return _WORD + text.encode().hex()


def _decoded(body: str) -> Any:
    try:
        return json.loads(bytes.fromhex(body.removeprefix(_WORD)))
    except ValueError as error:
        raise ShapeError(f"fused: the body is malformed: {error}") from error


def _value(value: Any) -> AttrValue:
    return tuple(map(_value, value)) if isinstance(value, list) else value
