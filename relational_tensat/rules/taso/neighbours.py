"""Configurations beside a known one: what random drawing seldom meets is often one size away.

Only for rules of which all attributes are constants, as those that are imported are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.instance import tensor_vars, typed_application
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.tensor.choices import Choices
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, Attrs, TensorType, ValueType

#: The last is a multiple of the others: whatever groups there are divide it.
_SIZES = (1, 2, 3, 4, 6, 12)
#: How many changes are made; and how many after one that makes ties come apart.
_CHANGES = (1, 1, 2, 2, 3)
_FURTHER_CHANGES = (0, 0, 1, 1, 2)

#: A dimension: the index of the operand, and the axis.
_Place: TypeAlias = tuple[int, int]


class Neighbours:
    """Draws operands that differ from known ones in a few sizes.

    Dimensions that are equal in all that is known mostly have to be: they are changed together as
    often as one alone is.
    """

    def __init__(self, configurations: Sequence[Configuration], choices: Choices) -> None:
        self._known = configurations
        self._choices = choices
        self._tied = _tied(configurations)

    def draw(self) -> tuple[TensorType, ...]:
        """Return the types of operands, which need not fit the rule."""
        types = list(self._choices.choice(self._known).var_types)
        for _ in range(self._choices.choice(_CHANGES)):
            if self._tied and self._choices.below(2):
                self._change(types, self._choices.choice(self._tied))
            else:
                self._change_one(types, range(len(types)))
        return tuple(types)

    def draw_untied(self, operands: Sequence[int]) -> tuple[TensorType, ...]:
        """Return the types of operands: in one of those of given numbers, a size changed alone."""
        types = list(self._choices.choice(self._known).var_types)
        self._change_one(types, operands)
        for _ in range(self._choices.choice(_FURTHER_CHANGES) if self._tied else 0):
            self._change(types, self._choices.choice(self._tied))
        return tuple(types)

    def _change_one(self, types: list[TensorType], operands: Sequence[int]) -> None:
        places = [(i, axis) for i in operands for axis in range(types[i].rank)]
        if places:
            self._change(types, [self._choices.choice(places)])

    def _change(self, types: list[TensorType], places: Sequence[_Place]) -> None:
        """Give dimensions one size, another than the first of them has."""
        index, axis = places[0]
        present = types[index].shape[axis]
        size = self._choices.choice([size for size in _SIZES if size != present])
        for index, axis in places:
            shape = types[index].shape
            shape = (*shape[:axis], size, *shape[axis + 1 :])
            types[index] = replace(types[index], shape=shape)


def _tied(configurations: Sequence[Configuration]) -> list[list[_Place]]:
    """Return the sets of dimensions that are equal to each other in every known configuration."""
    alike: dict[tuple[int, ...], list[_Place]] = {}
    for index in range(len(configurations[0].var_types)):
        kinds = [configuration.var_types[index] for configuration in configurations]
        for axis in range(min(kind.rank for kind in kinds)):
            sizes = tuple(kind.shape[axis] for kind in kinds)
            alike.setdefault(sizes, []).append((index, axis))
    return [places for places in alike.values() if len(places) > 1]


def configured(rule: Rule, types: tuple[TensorType, ...]) -> Configuration | None:
    """Return the configuration of a rule for given operands; None where its sources do not fit."""
    type_of = dict(zip(tensor_vars(rule), types, strict=True))
    symbols: list[tuple[str, Attrs]] = []

    def visit(term: Term) -> ValueType | None:
        if isinstance(term, Var):
            return type_of[term.name]
        place = len(symbols)
        symbols.append((term.op, {}))
        operands = tuple(kind for kind in map(visit, term.children) if kind is not None)
        if len(operands) < len(term.children):
            return None
        typed = typed_application(term.op, _attrs(term), operands)
        if typed is None:
            return None
        symbols[place] = (term.op, dict(typed[0]))
        return typed[1]

    roots = tuple(kind for kind in map(visit, rule.sources) if kind is not None)
    if len(roots) < len(rule.sources):
        return None
    return Configuration(tuple(symbols), types, roots)


def _attrs(term: Apply) -> AttrItems:
    """Return an operator's attributes, with their defaults.

    Raises:
        UsageError: one of them is no constant.
    """
    exprs = dict(term.attrs)
    attrs = []
    for attr in get_operator(term.op).attrs:
        value = exprs.get(attr.name, Literal(attr.default))
        if not isinstance(value, Literal):
            raise UsageError(
                f"{term.op}: the attribute {attr.name} is no constant; rules are only"
                " judged here where all attributes are"
            )
        attrs.append((attr.name, value.value))
    return tuple(attrs)
