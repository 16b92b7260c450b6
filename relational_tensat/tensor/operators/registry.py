"""The operators by name: registering one makes it known to the whole system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from relational_tensat.base.errors import ShapeError, UsageError, unknown
from relational_tensat.tensor.operators.base import Operator
from relational_tensat.tensor.operators.onnx_form import Mapped, OnnxNode
from relational_tensat.tensor.types import Attrs, AttrValue, TensorType, ValueType

_REGISTRY: dict[str, Operator] = {}
_OperatorClass = TypeVar("_OperatorClass", bound=type[Operator])


def register(cls: _OperatorClass) -> _OperatorClass:
    """Class decorator: make the operator known under its name."""
    if cls.name in _REGISTRY:
        raise UsageError(f"the operator {cls.name!r} is described twice")
    _REGISTRY[cls.name] = cls()
    return cls


def unregister(name: str) -> None:
    """Forget an operator that was registered for a while only (in tests, notebooks)."""
    del _REGISTRY[name]


def get_operator(name: str) -> Operator:
    """Return the operator of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        raise unknown("operator", name, _REGISTRY) from None


def operators() -> dict[str, Operator]:
    """Return all operators by name."""
    return dict(sorted(_REGISTRY.items()))


def typed(
    operator: Operator, operands: tuple[ValueType, ...], attrs: Attrs
) -> tuple[dict[str, AttrValue], ValueType]:
    """Return canonical attributes, not to be changed, and the type of the result.

    They are computed once: equal layers ask the same, and a model is read at many sizes.

    Raises:
        ShapeError: the operator does not take these operands or attributes.
    """
    return _typed(operator, operands, _AttrsByText(attrs))


class _AttrsByText:
    """Attributes that are the same if they are written alike: 0.0 is not -0.0, nor is 1 True."""

    __slots__ = ("attrs", "text")

    def __init__(self, attrs: Attrs) -> None:
        self.attrs = attrs
        self.text = repr(attrs)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AttrsByText) and self.text == other.text


@lru_cache(maxsize=1 << 13)
def _typed(
    operator: Operator, operands: tuple[ValueType, ...], written: _AttrsByText
) -> tuple[dict[str, AttrValue], ValueType]:
    operator.check_operands(operands)
    attrs = operator.canonical(operands, written.attrs)
    return attrs, operator.infer(operands, attrs)


def map_onnx(operator: Operator, node: OnnxNode) -> Mapped | None:
    """Return what an ONNX node of ``operator.onnx`` becomes, attributes canonical.

    None where the node cannot be expressed exactly: it stays opaque. So does one whose operands or
    attributes are of a rank, length or size that its operator cannot have: ONNX's own inference says so, as
    it knows the rules of every version.
    """
    types = dict(zip(node.inputs, node.input_types, strict=True))
    try:
        mapped = operator.read_onnx(node)
        return None if mapped is None else _checked(mapped, types)[0]
    except (ShapeError, IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError):
        return None


def _checked(mapped: Mapped, types: Mapping[str, TensorType | None]) -> tuple[Mapped, ValueType]:
    """Type-check a translation, operands first; return it with canonical attributes, and its type.

    Raises:
        ShapeError: an operator does not take its operands or attributes.
    """
    operands: list[str | Mapped] = []
    types_of_operands: list[ValueType] = []
    for operand in mapped.inputs:
        if isinstance(operand, Mapped):
            inner, kind = _checked(operand, types)
            operands.append(inner)
            types_of_operands.append(kind)
            continue
        declared = types[operand]
        if declared is None:
            raise ShapeError(f"the type of {operand!r} is not known")
        operands.append(operand)
        types_of_operands.append(declared)
    attrs, kind = typed(get_operator(mapped.op), tuple(types_of_operands), mapped.attrs)
    return Mapped(mapped.op, tuple(operands), attrs), kind
