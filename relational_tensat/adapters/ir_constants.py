"""Constants in onnx-ir that laws of the reals leave alone; see ``explore.match.extremes``."""

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

#: Keys of the notes in a model, and in a constant.
_NOTED, _EXTREME = "relational_tensat.ill_conditioned", "relational_tensat.is_extreme"


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
    kind = type_of(constant)
    if kind is None or not kind.is_float:
        return False
    tensor, is_found = constant.meta.get(_EXTREME, (None, False))
    if tensor is not constant.const_value:  # its elements are looked at once
        data = data_of(constant)  # what is not at hand is as what is computed
        is_found = data is not None and is_extreme(data, kind.dtype)
        constant.meta[_EXTREME] = constant.const_value, is_found
    if is_found:
        return True
    known = _ill_conditioned(model, constant)
    return known is None or constant.name in known


def _ill_conditioned(model: onnx_ir.Model, constant: onnx_ir.Value) -> frozenset[str] | None:
    """Return the constants that cost a model its digits; None where it cannot be read.

    The model is read once, as names stay while it is rewritten; again for a constant that came since.
    """
    seen, known = model.meta.get(_NOTED, (frozenset(), None))
    is_new = constant.is_initializer() and constant.name not in seen
    if _NOTED not in model.meta or is_new:
        seen = frozenset(model.graph.initializers)
        try:
            known = ill_conditioned(from_onnx_model(onnx_ir.to_proto(model)))
        except RelationalTensatError:
            known = None
        if is_new:  # of a graph within the model
            seen |= {constant.name}
        model.meta[_NOTED] = seen, known
    found: frozenset[str] | None = known
    return found


@cache
def _keeping() -> frozenset[str]:
    """Return the operators of ONNX whose results may be as large, or as small, as their operands."""
    return frozenset(
        name for each in operators().values() if each.keeps_size for name in (*each.onnx, "Mul")
    )
