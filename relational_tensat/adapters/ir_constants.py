"""Which constants of a model in onnx-ir laws of the reals leave alone; see ``explore.match.extremes``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx_ir

from relational_tensat.adapters.ir_nodes import data_of, type_of
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.explore.match.conditions import ill_conditioned
from relational_tensat.formats import from_onnx_model
from relational_tensat.tensor.floats import is_extreme
from relational_tensat.tensor.operators import operators

_NOTED = "relational_tensat.ill_conditioned"


def meets_extremes(model: onnx_ir.Model, values: Iterable[onnx_ir.Value]) -> bool:
    """Whether some of these values may be extreme, or cost the model its digits.

    They may where they are made of such constants by operators that keep the size of elements.
    """
    seen: set[onnx_ir.Value] = set()
    left = list(values)
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.const_value is not None and _is_harmful(model, value):
            return True
        node = value.producer()
        if node is not None and node.op_type in _keeping():
            left += [operand for operand in node.inputs if operand is not None]
    return False


def _is_harmful(model: onnx_ir.Model, constant: onnx_ir.Value) -> bool:
    data, kind = data_of(constant), type_of(constant)
    if (
        data is None or kind is None or not kind.is_float
    ):  # what is not at hand is as what is computed
        return False
    if is_extreme(data, kind.dtype):
        return True
    known = _ill_conditioned(model)
    return known is None or constant.name in known


def _ill_conditioned(model: onnx_ir.Model) -> frozenset[str] | None:
    """Return the constants that cost a model its digits; None where it cannot be read.

    The model is read once: names stay while it is rewritten.
    """
    if _NOTED not in model.meta:
        try:
            model.meta[_NOTED] = ill_conditioned(from_onnx_model(onnx_ir.to_proto(model)))
        except RelationalTensatError:
            model.meta[_NOTED] = None
    known: frozenset[str] | None = model.meta[_NOTED]
    return known


@cache
def _keeping() -> frozenset[str]:
    """Return the operators of ONNX whose results may be as large, or as small, as their operands."""
    return frozenset(
        name for each in operators().values() if each.keeps_size for name in (*each.onnx, "Mul")
    )
