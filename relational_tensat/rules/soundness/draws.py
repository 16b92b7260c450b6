"""Random configurations of a rule: operands' types and attributes for which its sources are valid.

A rule's sources are drawn top down: an operator suggests types for its operands from the wanted type and
from operands already drawn. Draws that do not fit in the end are thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.rules.instance import Instance, instantiate, typed_application
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.requirements import Bindings, DrawPlan, SourceTerm
from relational_tensat.rules.soundness.stress_instances import FarHints, further
from relational_tensat.tensor.operators import Attr, Operator
from relational_tensat.tensor.operators.attributes import ints_of, padding_of
from relational_tensat.tensor.operators.samples import Hints, PartialApplication, RandomChoices
from relational_tensat.tensor.operators.windows import resolve_padding
from relational_tensat.tensor.types import (
    AttrItems,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

_ATTRIBUTE_TRIES = 8
_TENSOR_TRIES = 6
#: Nothing larger is tried: laws do not depend on size, and small numbers are quick to read.
_MOST_ELEMENTS = 1 << 14
#: Nor are images with more elements, the border around them included, which far dilations make wide.
_MOST_WITH_BORDER = 1 << 22


@dataclass(frozen=True)
class RuleConfiguration:
    """Operands' types and attributes for which a rule's sources are valid.

    Attributes:
        symbols: operator and canonical attributes per node of ``source_nodes``.
        var_types: per variable of ``tensor_vars``.
        root_types: per source.
    """

    symbols: tuple[tuple[str, Attrs], ...]
    var_types: tuple[TensorType, ...]
    root_types: tuple[ValueType, ...]

    def instantiate(self, rule: Rule) -> Instance | None:
        """Judge the rule here."""
        return instantiate(rule, self.symbols, self.var_types, self.root_types)

    @property
    def key(self) -> tuple[tuple[TensorType, ...], tuple[AttrItems, ...]]:
        """The key that tells it from other configurations of the same rule."""
        return self.var_types, tuple(tuple(attrs.items()) for _, attrs in self.symbols)


class _MisfitError(Exception):
    """The drawn parts do not fit together."""


class _Drawer:
    """Draws one configuration of a rule."""

    def __init__(self, plan: DrawPlan, choices: RandomChoices, far: bool, rank: int | None) -> None:
        self.plan = plan
        self.choices = choices
        self.far = FarHints(choices, plan.landmarks) if far else None
        self.hints = self.far or Hints(choices)
        if plan.landmarks.dtypes and choices.often():
            self.hints.dtype = choices.choice(plan.landmarks.dtypes)
        if rank is not None:
            self.hints.rank = rank
            self.hints.spatial = max(1, min(3, rank - 2))
        self.bindings = Bindings(plan)
        self.attrs: dict[str, AttrValue] = {}
        self.symbols: dict[int, tuple[str, Attrs]] = {}

    def draw(self) -> RuleConfiguration:
        roots = tuple([self._applied(source, None) for source in self.plan.sources])
        symbols = tuple([self.symbols[id(term)] for term in self.plan.terms])
        types = tuple([kind for kind in self.bindings.types if kind is not None])
        return RuleConfiguration(symbols, types, roots)

    def _applied(self, term: SourceTerm, result: ValueType | None) -> ValueType:
        known = {attr: self.attrs[name] for attr, name in term.variables if name in self.attrs}
        attr_values = {**term.constants, **known}
        kinds: list[ValueType | None] = [
            self.bindings.tensor(child) if isinstance(child, str) else None
            for child in term.children
        ]
        for index in sorted(range(len(kinds)), key=lambda i: self._priority(term.children[i])):
            child = term.children[index]
            if not isinstance(child, str):
                partial = PartialApplication(result, kinds, attr_values)
                guess = term.operator.suggest_operand(index, partial, self.hints)
                kinds[index] = self._applied(child, guess)
            elif kinds[index] is None:
                partial = PartialApplication(result, kinds, attr_values)
                kinds[index] = self._variable(child, term.operator, index, partial)
        operands = tuple([kind for kind in kinds if kind is not None])
        return self._finish(term, operands, attr_values, result)

    def _variable(
        self, name: str, operator: Operator, index: int, partial: PartialApplication
    ) -> TensorType:
        """Draw the type of a variable, again where a condition that it completes does not hold."""
        tensor_type = self.bindings.tensor(name)  # the same variable twice in one term
        if tensor_type is not None:
            return tensor_type
        for _ in range(_TENSOR_TRIES):
            guess = operator.suggest_operand(index, partial, self.hints)
            kind = self.hints.tensor_type() if guess is None else guess
            if self.bindings.bind_tensor(name, kind):
                return kind
        raise _MisfitError

    def _priority(self, child: str | SourceTerm) -> int:
        """Operands that are bound, or have something bound inside, come first."""
        if isinstance(child, str):
            return 0 if child in self.bindings.bound else 3
        return 2 if self.bindings.bound.isdisjoint(child.tensors) else 1

    def _finish(
        self,
        term: SourceTerm,
        operands: tuple[ValueType, ...],
        attr_values: Mapping[str, AttrValue],
        result: ValueType | None,
    ) -> ValueType:
        """Draw the attributes that are still open, for operands that are drawn."""
        best: tuple[AttrItems, ValueType] | None = None
        open_attrs = {attr: name for attr, name in term.variables if attr not in attr_values}
        for _ in range(_ATTRIBUTE_TRIES):
            sample = self._sampled(term.operator, operands, attr_values, open_attrs, result)
            typed = typed_application(term.op, sample, operands)
            if typed is not None and self._accepted(typed, attr_values, open_attrs):
                best = typed
                if result is None or typed[1] == result:
                    break
            if not open_attrs:
                break
        if best is None:
            raise _MisfitError
        if sum([part.size for part in tensors_of(best[1])]) > _MOST_ELEMENTS:
            raise _MisfitError
        attrs = dict(best[0])
        if "pad" in attrs and _size_with_border(operands, attrs) > _MOST_WITH_BORDER:
            raise _MisfitError
        variable_values = {name: attrs[attr] for attr, name in open_attrs.items()}
        self.bindings.bind_attrs(variable_values)  # which were accepted
        self.attrs.update(variable_values)
        self.symbols[id(term)] = (term.op, attrs)
        return best[1]

    def _sampled(
        self,
        operator: Operator,
        operands: tuple[ValueType, ...],
        attr_values: Mapping[str, AttrValue],
        open_attrs: Mapping[str, str],
        result: ValueType | None,
    ) -> AttrItems:
        sample = dict(attr_values)
        for attr in operator.attrs if open_attrs else ():
            if attr.name in sample:
                continue
            solutions = self.bindings.solved(open_attrs[attr.name])
            if solutions and self.choices.often():
                sample[attr.name] = self.choices.choice(solutions)
            else:
                partial = PartialApplication(result, operands, sample)
                sample[attr.name] = self._suggested(operator, attr, partial)
                if self.far is not None:
                    sample[attr.name] = further(attr, sample[attr.name], self.far)
        return tuple(sample.items())

    def _suggested(self, operator: Operator, attr: Attr, partial: PartialApplication) -> AttrValue:
        if attr.choices:  # the first, mostly the plainest, twice as often as the others
            return self.choices.choice([attr.choices[0], *attr.choices])
        return operator.suggest_attribute(attr, partial, self.hints)

    def _accepted(
        self,
        typed: tuple[AttrItems, ValueType],
        attr_values: Mapping[str, AttrValue],
        open_attrs: Mapping[str, str],
    ) -> bool:
        """Whether what was known stays as it is, and the conditions hold as far as they can."""
        attrs: dict[str, Any] = dict(typed[0])
        for name, value in attr_values.items():
            if attrs[name] != value:
                return False
        return self.bindings.are_fine({name: attrs[attr] for attr, name in open_attrs.items()})


def draw_configuration(
    rule: Rule | DrawPlan, choices: RandomChoices, *, far: bool = False, rank: int | None = None
) -> RuleConfiguration | None:
    """Draw operands for which the sources are valid; None if this attempt failed.

    Args:
        far: of high rank, with long dimensions and large attributes.
        rank: of most tensors; of any where there is none.
    """
    plan = rule if isinstance(rule, DrawPlan) else DrawPlan(rule)
    try:
        return _Drawer(plan, choices, far, rank).draw()
    except _MisfitError:
        return None


def _size_with_border(operands: tuple[ValueType, ...], attrs: Attrs) -> int:
    """Return how many elements the image has that windows move over."""
    image, *others = (part for kind in operands for part in tensors_of(kind))
    filters = next((kind for kind in others if kind.rank == image.rank), image)
    kernel = ints_of(attrs, "kernel") if "kernel" in attrs else filters.shape[2:]
    dilation = ints_of(attrs, "dilation") or (1,) * len(kernel)
    begins, ends = resolve_padding(
        padding_of(attrs), image.shape[2:], kernel, ints_of(attrs, "stride"), dilation
    )
    sizes = map(sum, zip(begins, image.shape[2:], ends, strict=True))
    return math.prod((*image.shape[:2], *sizes))
