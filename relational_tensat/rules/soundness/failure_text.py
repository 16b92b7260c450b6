"""A configuration where a law fails, as a counterexample with plain numbers in it: a snippet of Python.

Snippets use the words ``tensor`` and ``apply``: typed tensors and operators on them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.instance import (
    Instance,
    attr_vars,
    source_nodes,
    tensor_vars,
    type_text,
)
from relational_tensat.rules.model import Rule, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.element_types import Failure
from relational_tensat.rules.soundness.judgement import LawOutcome, compared_in_floats
from relational_tensat.rules.soundness.machine import compared
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.tensor_values import Values
from relational_tensat.rules.soundness.verdict import Counterexample, Difference
from relational_tensat.tensor.floats import rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import FLOAT_DTYPES, Array, AttrValue, TensorType, ValueType


@dataclass(frozen=True, slots=True)
class Typed:
    """A value and the type that a graph declares for it; floats are computed in float64.

    Attributes:
        value: an array, or a tuple of arrays.
    """

    type: ValueType
    value: Any


def tensor(dtype: str, shape: Sequence[int], numbers: Sequence[float | bool]) -> Typed:
    """Return a tensor of given elements, in C order.

    Raises:
        UsageError: the numbers do not fill the shape.
    """
    kind = TensorType(dtype, tuple(shape))
    if len(numbers) != kind.size:
        raise UsageError(f"tensor: {len(numbers)} numbers for {kind}, expected {kind.size}")
    numpy_type = "float64" if dtype in FLOAT_DTYPES else "bool" if dtype == "bool" else "int64"
    return Typed(kind, np.array(numbers, dtype=numpy_type).reshape(kind.shape))


def apply(op: str, *operands: Typed, **attrs: AttrValue) -> Typed:
    """Apply an operator.

    Raises:
        ShapeError: it does not take these operands or attributes.
        UsageError: there is no such operator.
    """
    return _apply(
        op, operands, attrs,
        lambda values, kinds, canonical, _: get_operator(op).evaluate_typed(values, kinds, canonical),
    )  # fmt: skip


def tensor_typed(dtype: str, shape: Sequence[int], numbers: Sequence[float | bool]) -> Typed:
    """Return a tensor of given elements as a machine holds it: floats rounded, integers in their type.

    Raises:
        UsageError: the numbers do not fill the shape.
    """
    untyped = tensor(dtype, shape, numbers)
    if dtype in FLOAT_DTYPES:
        return Typed(untyped.type, rounded(untyped.value, dtype))
    return Typed(untyped.type, np.array(numbers).astype(dtype).reshape(tuple(shape)))


def apply_typed(op: str, *operands: Typed, **attrs: AttrValue) -> Typed:
    """Apply an operator as a machine does, in the operands' element types.

    Raises:
        ShapeError: it does not take these operands or attributes.
        UsageError: there is no such operator.
    """
    return _apply(op, operands, attrs, partial(computed, op))


def _apply(
    op: str, operands: Sequence[Typed], attrs: Mapping[str, AttrValue], compute: Callable[..., Any]
) -> Typed:
    """Infer an operator's result and compute it, of values, their types, attributes and its own type."""
    operator = get_operator(op)
    kinds = tuple(operand.type for operand in operands)
    operator.check_arity(len(kinds))
    canonical = operator.canonical(kinds, attrs)
    kind = operator.infer(kinds, canonical)
    values = [operand.value for operand in operands]
    with np.errstate(all="ignore"):
        return Typed(kind, compute(values, kinds, canonical, kind))


#: Draws of small numbers, then of any, before operands that show a difference are given up.
_TRIES = 40
#: Functions that snippets have names for already.
_SNIPPET_NAMES = ("apply", "tensor", "print")


def counterexample(
    rule: Rule, configuration: RuleConfiguration, sides: Sides
) -> Counterexample | None:
    """Return the counterexample; None if no operands were found that show it in float64."""
    for operands in _candidates(configuration, sides):
        difference = _difference(sides, operands)
        if difference is not None:
            names = tensor_vars(rule)
            return Counterexample(
                rule=rule.name,
                law=rule.law,
                shapes=dict(zip(names, configuration.var_types, strict=True)),
                parameters=_parameters(rule, configuration),
                difference=difference,
                snippet=_snippet(rule, sides, operands, difference),
            )
    return None


def machine_counterexample(rule: Rule, failure: Failure) -> Counterexample:
    """Return the counterexample that a failure in machine arithmetic is."""
    sides, operands = failure.sides, failure.operands
    pairs = list(zip(sides.types(sides.left), sides.types(sides.right), strict=True))
    _, element = compared(sides, operands, failure.what)
    source = 0 if element is None else element.source
    names = [type_text(kind) for kind in pairs[source]]
    difference = Difference(source, names[0], names[1], undefined=True)
    if element is not None:
        difference = Difference(
            source, names[0], names[1], element.index, element.left, element.right, element.part
        )
    return Counterexample(
        rule=rule.name,
        law=rule.law,
        shapes=dict(zip(tensor_vars(rule), sides.var_types, strict=True)),
        parameters=_parameters(rule, failure.configuration),
        difference=difference,
        snippet=_snippet(rule, sides, operands, difference, arithmetic="_typed"),
    )


def _candidates(configuration: RuleConfiguration, sides: Sides) -> Iterator[list[Array]]:
    """Yield operands, the plainest first: counting up, small whole numbers, any."""
    values = Values(configuration, sides.left, 0)
    yield values.counting()
    for _ in range(_TRIES):
        yield values.reals("whole")
    for _ in range(_TRIES):
        for kind in ("positive", "normal", "negative"):
            yield [_rounded(array) for array in values.reals(kind)]


def _rounded(array: Array) -> Array:
    return np.asarray(array, np.float64).round(2) if array.dtype.kind == "f" else array


def _difference(sides: Sides, operands: Sequence[Any]) -> Difference | None:
    pairs = list(zip(sides.types(sides.left), sides.types(sides.right), strict=True))
    for source, (left, right) in enumerate(pairs):
        if left != right:
            return Difference(source, type_text(left), type_text(right))
    outcome, element = compared_in_floats(sides, operands)
    if outcome is not LawOutcome.FAILS:
        return None
    names = [type_text(kind) for kind in pairs[0 if element is None else element.source]]
    if element is None:
        return Difference(0, names[0], names[1], undefined=True)
    return Difference(
        element.source, names[0], names[1], element.index, element.left, element.right, element.part
    )


def _parameters(rule: Rule, configuration: RuleConfiguration) -> dict[str, AttrValue]:
    parameters: dict[str, AttrValue] = {}
    for node, (_, attrs) in zip(source_nodes(rule), configuration.symbols, strict=True):
        for name, value in node.attrs:
            if isinstance(value, Var):
                parameters.setdefault(value.name, attrs[name])
    return {name: parameters[name] for name in attr_vars(rule)}


# --- the snippet ---


def _snippet(
    rule: Rule, sides: Sides, operands: Sequence[Any], difference: Difference, arithmetic: str = ""
) -> str:
    """Return the snippet.

    Args:
        arithmetic: "_typed" for machine arithmetic, "" for float64.
    """
    names = list(tensor_vars(rule))
    imported = [
        f"{name}{arithmetic} as {name}" if arithmetic else name for name in ("apply", "tensor")
    ]
    lines = [
        f"# {rule.name} does not hold here: {rule.law}",
        f"from relational_tensat.rules.soundness import {', '.join(imported)}",
        "",
    ]
    texts = [_number(v) for value in operands for v in value.reshape(-1).tolist()]
    if any("inf" in text or "nan" in text for text in texts):
        lines[1:1] = ["from math import inf, nan"]
    for name, kind, value in zip(names, sides.var_types, operands, strict=True):
        numbers = ", ".join(map(_number, value.reshape(-1).tolist()))
        lines.append(f"{_name(name)} = tensor({kind.dtype!r}, {list(kind.shape)}, [{numbers}])")
    operand_names = [_name(name) for name in names]
    for side, instance in (("left", sides.left), ("right", sides.right)):
        lines += ["", *_side(side, instance, operand_names, instance.roots[difference.source])]
    shown = "" if difference.index is None else f", {{}}.value{_place(difference)}"
    lines.append("")
    lines += [f'print("{side}:", {side}.type{shown.format(side)})' for side in ("left", "right")]
    return "\n".join(lines) + "\n"


def _side(side: str, instance: Instance, operand_names: Sequence[str], root: int) -> Iterator[str]:
    """Yield the assignments that lead to one result, which is called as its side is."""
    needed = {root}
    base = len(operand_names)
    for place in range(base + len(instance.nodes) - 1, base - 1, -1):
        if place in needed:
            needed.update(instance.nodes[place - base].children)
    names = list(operand_names)
    for place, node in enumerate(instance.nodes, start=base):
        names.append(side if place == root else f"{side}_{place - base}")
        if place in needed:
            arguments = [names[child] for child in node.children]
            arguments += [f"{key}={value!r}" for key, value in node.attrs]
            yield f"{names[-1]} = apply({', '.join([repr(node.op), *arguments])})"
    if root < base:
        yield f"{side} = {operand_names[root]}"


def _place(difference: Difference) -> str:
    part = "" if difference.part is None else f"[{difference.part}]"
    return f"{part}[{', '.join(map(str, difference.index or ())) or '()'}]"


def _name(variable: str) -> str:
    """A Python name for a variable of a rule; none that the snippet uses itself."""
    name = re.sub(r"\W", "_", variable)
    is_reserved = (
        keyword.iskeyword(name) or name in _SNIPPET_NAMES or name.startswith(("left", "right"))
    )
    return f"x_{name}" if is_reserved or not name.isidentifier() else name


def _number(value: float | bool) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
