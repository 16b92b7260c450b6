"""Random configurations of a rule: operands' types and attributes for which its sources are valid.

A rule's sources are drawn top down: an operator suggests types for its operands from the type that
is wanted of it and from operands already drawn; what does not fit in the end is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.rules.instance import Instance, instantiate, source_nodes, typed_application
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.rules.soundness.far import FarHints, further
from relational_tensat.rules.soundness.requirements import Bindings, Plan
from relational_tensat.tensor.choices import Choices
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr, get_operator
from relational_tensat.tensor.operators.sampling import PartialApplication
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


@dataclass(frozen=True)
class Configuration:
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
        """What tells it from other configurations of the same rule."""
        return self.var_types, tuple(tuple(attrs.items()) for _, attrs in self.symbols)


class _MisfitError(Exception):
    """What was drawn does not fit together."""


class _Drawer:
    """Draws one configuration of a rule."""

    def __init__(self, plan: Plan, choices: Choices, far: bool) -> None:
        self.plan = plan
        self.choices = choices
        self.far = FarHints(choices, plan.landmarks) if far else None
        self.hints = self.far or Hints(choices)
        if plan.landmarks.dtypes and choices.often():
            self.hints.dtype = choices.choice(plan.landmarks.dtypes)
        self.bindings = Bindings(plan)
        self.attrs: dict[str, AttrValue] = {}
        self.symbols: dict[int, tuple[str, Attrs]] = {}

    def draw(self) -> Configuration:
        rule = self.plan.rule
        roots = tuple(self._applied(source, None) for source in rule.sources)
        symbols = tuple(self.symbols[id(node)] for node in source_nodes(rule))
        types = tuple(kind for kind in self.bindings.types if kind is not None)
        return Configuration(symbols, types, roots)

    def _applied(self, term: Apply, wanted: ValueType | None) -> ValueType:
        known = self._known_attrs(term)
        kinds: list[ValueType | None] = [
            self.bindings.tensor(child.name) if isinstance(child, Var) else None
            for child in term.children
        ]
        for index in sorted(range(len(kinds)), key=lambda i: self._priority(term.children[i])):
            child = term.children[index]
            if isinstance(child, Apply):
                partial = PartialApplication(wanted, kinds, known)
                guess = get_operator(term.op).suggest_operand(index, partial, self.hints)
                kinds[index] = self._applied(child, guess)
            elif kinds[index] is None:
                partial = PartialApplication(wanted, kinds, known)
                kinds[index] = self._variable(child.name, term.op, index, partial)
        operands = tuple(kind for kind in kinds if kind is not None)
        return self._finish(term, operands, known, wanted)

    def _variable(self, name: str, op: str, index: int, partial: PartialApplication) -> TensorType:
        """Draw the type of a variable, again where a condition that it completes does not hold."""
        found = self.bindings.tensor(name)  # the same variable twice in one term
        if found is not None:
            return found
        for _ in range(_TENSOR_TRIES):
            guess = get_operator(op).suggest_operand(index, partial, self.hints)
            kind = self.hints.tensor_type() if guess is None else guess
            if self.bindings.bind_tensor(name, kind):
                return kind
        raise _MisfitError

    def _priority(self, child: Term) -> int:
        """Operands that are bound, or have something bound inside, come first."""
        if isinstance(child, Var):
            return 0 if child.name in self.bindings.bound else 3
        return 1 if any(name in self.bindings.bound for name in _variables(child)) else 2

    def _known_attrs(self, term: Apply) -> dict[str, AttrValue]:
        written, known = dict(term.attrs), {}
        for attr in get_operator(term.op).attrs:
            match written.get(attr.name, Literal(attr.default)):
                case Literal(value):
                    known[attr.name] = value
                case Var(name) if name in self.attrs:
                    known[attr.name] = self.attrs[name]
        return known

    def _finish(
        self,
        term: Apply,
        operands: tuple[ValueType, ...],
        known: Mapping[str, AttrValue],
        wanted: ValueType | None,
    ) -> ValueType:
        """Draw the attributes that are still open, for operands that are drawn."""
        best: tuple[AttrItems, ValueType] | None = None
        open_attrs = {a: v.name for a, v in term.attrs if isinstance(v, Var) and a not in known}
        for _ in range(_ATTRIBUTE_TRIES):
            typed = typed_application(
                term.op, self._sampled(term.op, operands, known, open_attrs, wanted), operands
            )
            if typed is not None and self._accepted(typed, known, open_attrs):
                best = typed
                if wanted is None or typed[1] == wanted:
                    break
            if not open_attrs:
                break
        if best is None:
            raise _MisfitError
        if sum(part.size for part in tensors_of(best[1])) > _MOST_ELEMENTS:
            raise _MisfitError
        attrs = dict(best[0])
        bound = {name: attrs[attr] for attr, name in open_attrs.items()}
        self.bindings.bind_attrs(bound)
        self.attrs.update(bound)
        self.symbols[id(term)] = (term.op, attrs)
        return best[1]

    def _sampled(
        self,
        op: str,
        operands: tuple[ValueType, ...],
        known: Mapping[str, AttrValue],
        open_attrs: Mapping[str, str],
        wanted: ValueType | None,
    ) -> AttrItems:
        drawn = dict(known)
        for attr in get_operator(op).attrs:
            if attr.name in drawn:
                continue
            solved = self.bindings.solved(open_attrs[attr.name])
            if solved and self.choices.often():
                drawn[attr.name] = self.choices.choice(solved)
            else:
                partial = PartialApplication(wanted, operands, drawn)
                drawn[attr.name] = self._suggested(op, attr, partial)
                if self.far is not None:
                    drawn[attr.name] = further(attr, drawn[attr.name], self.far)
        return tuple(drawn.items())

    def _suggested(self, op: str, attr: Attr, partial: PartialApplication) -> AttrValue:
        if attr.choices:  # the first, mostly the plainest, twice as often as the others
            return self.choices.choice([attr.choices[0], *attr.choices])
        return get_operator(op).suggest_attribute(attr, partial, self.hints)

    def _accepted(
        self,
        typed: tuple[AttrItems, ValueType],
        known: Mapping[str, AttrValue],
        open_attrs: Mapping[str, str],
    ) -> bool:
        """Whether what was known stays as it is, and the conditions hold as far as they can."""
        attrs: dict[str, Any] = dict(typed[0])
        if any(attrs[key] != value for key, value in known.items()):
            return False
        bound = {name: attrs[attr] for attr, name in open_attrs.items()}
        fine = self.bindings.bind_attrs(bound)
        self.bindings.bound.difference_update(bound)
        return fine


def _variables(term: Term) -> Iterator[str]:
    if isinstance(term, Var):
        yield term.name
    else:
        for child in term.children:
            yield from _variables(child)


def draw_configuration(
    rule: Rule | Plan, choices: Choices, *, far: bool = False
) -> Configuration | None:
    """Draw operands for which the sources are valid; None if this attempt failed.

    Args:
        far: of high rank, with long dimensions and large attributes.
    """
    plan = rule if isinstance(rule, Plan) else Plan(rule)
    try:
        return _Drawer(plan, choices, far).draw()
    except _MisfitError:
        return None
