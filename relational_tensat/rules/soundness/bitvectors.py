"""Integer laws, element by element: proved by z3, for all numbers of a type and for all shapes.

Only for laws whose two sides are made of operators that compute each element from the operands'
elements at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relational_tensat.rules.instance import Instance, TargetNode
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.solver import has_z3, is_refuted
from relational_tensat.tensor.operators.attributes import float_of
from relational_tensat.tensor.types import TensorType, numpy_dtype

#: The operators that compute element by element, on integers, and that z3 is told of.
ELEMENTWISE = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "relu", "cast", "identity", "dropout", "fill",
})  # fmt: skip
#: What z3 may spend on one law in one type before it is tried on numbers only, in its own unit.
_EFFORT = 1_000_000


def is_elementwise(sides: Sides) -> bool:
    """Whether both sides are made of such operators, on integers and booleans alone."""
    nodes = (*sides.left.nodes, *sides.right.nodes)
    kinds = (*sides.var_types, *(node.type for node in nodes))
    return (
        bool(sides.var_types)
        and all(node.op in ELEMENTWISE for node in nodes)
        and all(isinstance(kind, TensorType) and not kind.is_float for kind in kinds)
    )


def is_proved(sides: Sides) -> bool:
    """Whether z3 proves a law for the element types at hand; no where it is missing or gives up."""
    if not has_z3():
        return False
    import z3

    variables = [
        z3.Bool(f"x{i}") if kind.dtype == "bool" else z3.BitVec(f"x{i}", _bits(kind))
        for i, kind in enumerate(sides.var_types)
    ]
    try:
        left, left_open = _terms(sides.left, variables)
        right, right_open = _terms(sides.right, variables)
    except KeyError:  # an operator without a meaning on these types
        return False
    differs = [
        left_value != right_value for left_value, right_value in zip(left, right, strict=True)
    ]
    return is_refuted([z3.Not(z3.Or(left_open)), z3.Or(*differs, *right_open)], _EFFORT)


def _kind(node: TargetNode) -> TensorType:
    if not isinstance(node.type, TensorType):
        raise KeyError(node.op)
    return node.type


def _number(node: TargetNode) -> int:
    return int(float_of(dict(node.attrs), "value"))


def _bits(kind: TensorType) -> int:
    return numpy_dtype(kind.dtype).itemsize * 8


def _terms(side: Instance, variables: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the results as terms, and the conditions under which they are undefined."""
    values, undefined = list(variables), []
    for node in side.nodes:
        arguments = [values[child] for child in node.children]
        if node.op == "div":
            undefined.append(_open_quotient(node, *arguments))
        values.append(_TERMS[node.op](node, *arguments))
    return [values[root] for root in side.roots], undefined


def _signed(kind: Any) -> bool:
    return bool(kind.dtype.startswith("i"))


def _open_quotient(node: TargetNode, a: Any, b: Any) -> Any:
    import z3

    kind = node.type
    if not _signed(kind):
        return b == 0
    lowest = z3.BitVecVal(1 << (a.size() - 1), a.size())
    return z3.Or(b == 0, z3.And(a == lowest, b == -1))


def _quotient(node: TargetNode, a: Any, b: Any) -> Any:
    import z3

    return a / b if _signed(node.type) else z3.UDiv(a, b)


def _relu(node: TargetNode, a: Any) -> Any:
    import z3

    return z3.If(a < 0, z3.BitVecVal(0, a.size()), a) if _signed(node.type) else a


def _abs(node: TargetNode, a: Any) -> Any:
    import z3

    return z3.If(a < 0, -a, a) if _signed(node.type) else a


def _cast(node: TargetNode, a: Any) -> Any:
    import z3

    (source,), target = node.operand_types, node.type
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        raise KeyError(node.op)
    if target.dtype == "bool":
        return a if source.dtype == "bool" else a != 0
    bits = _bits(target)
    if source.dtype == "bool":
        return z3.If(a, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    if bits <= a.size():
        return z3.Extract(bits - 1, 0, a)
    extra_bits = bits - a.size()
    return z3.SignExt(extra_bits, a) if _signed(source) else z3.ZeroExt(extra_bits, a)


def _fill(node: TargetNode) -> Any:
    import z3

    kind = _kind(node)
    if kind.dtype == "bool":
        return z3.BoolVal(_number(node) != 0)
    return z3.BitVecVal(_number(node), _bits(kind))


_TERMS: dict[str, Callable[..., Any]] = {
    "add": lambda node, a, b: a + b,
    "sub": lambda node, a, b: a - b,
    "mul": lambda node, a, b: a * b,
    "div": _quotient,
    "neg": lambda node, a: -a,
    "abs": _abs,
    "relu": _relu,
    "cast": _cast,
    "identity": lambda node, a: a,
    "dropout": lambda node, a: a,
    "fill": _fill,
}
