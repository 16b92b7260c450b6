"""Random operands, attributes and instances of rules, for property tests.

Everything is drawn from a ``random.Random``: seeded in tests that count, or Hypothesis's own
(``st.randoms``) in tests that shrink. A rule's sources are drawn top down: an operator suggests
types for its operands from the type that is wanted of it and from operands already drawn; what does
not fit in the end is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from relational_tensat.errors import ShapeError
from relational_tensat.graph.ir import Attrs, AttrValue
from relational_tensat.graph.types import FLOAT_DTYPES, TensorType, ValueType
from relational_tensat.ops import Attr, get_operator
from relational_tensat.rules.instance import Instance, instantiate, source_nodes, tensor_vars
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from tests.suggestions import Hints, sample_attribute, suggest

_ATTRIBUTE_TRIES = 12


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


class _MisfitError(Exception):
    """What was drawn does not fit together."""


class _Drawer:
    """Draws one configuration of a rule."""

    def __init__(self, rule: Rule, random: Random) -> None:
        self.rule = rule
        self.hints = Hints(random)
        self.types: dict[str, TensorType] = {}
        self.attrs: dict[str, AttrValue] = {}
        self.symbols: dict[int, tuple[str, Attrs]] = {}

    def draw(self) -> Configuration:
        roots = tuple(self.value(source, None) for source in self.rule.sources)
        symbols = tuple(self.symbols[id(node)] for node in source_nodes(self.rule))
        types = tuple(self.types[name] for name in tensor_vars(self.rule))
        return Configuration(symbols, types, roots)

    def value(self, term: Term, wanted: ValueType | None) -> ValueType:
        if isinstance(term, Var):
            if term.name not in self.types:
                fits = isinstance(wanted, TensorType)
                self.types[term.name] = wanted if fits else self.hints.tensor_type()  # type: ignore[assignment]
            return self.types[term.name]
        known = self._known_attrs(term)
        kinds: list[ValueType | None] = [
            self.types.get(child.name) if isinstance(child, Var) else None
            for child in term.children
        ]
        for index in sorted(range(len(kinds)), key=lambda i: self._priority(term.children[i])):
            if kinds[index] is None:
                guess = suggest(term.op, index, wanted, kinds, known, self.hints)
                kinds[index] = self.value(term.children[index], guess)
        operands = tuple(kind for kind in kinds if kind is not None)
        return self._apply(term, operands, known, wanted)

    def _priority(self, child: Term) -> int:
        """Operands that are bound, or have something bound inside, come first."""
        if isinstance(child, Var):
            return 0 if child.name in self.types else 3
        return 1 if any(name in self.types for name in _variables(child)) else 2

    def _known_attrs(self, term: Apply) -> dict[str, AttrValue]:
        written, known = dict(term.attrs), {}
        for attr in get_operator(term.op).attrs:
            match written.get(attr.name, Literal(attr.default)):
                case Literal(value):
                    known[attr.name] = value
                case Var(name) if name in self.attrs:
                    known[attr.name] = self.attrs[name]
        return known

    def _apply(
        self,
        term: Apply,
        operands: tuple[ValueType, ...],
        known: Mapping[str, AttrValue],
        wanted: ValueType | None,
    ) -> ValueType:
        operator = get_operator(term.op)
        best: tuple[dict[str, AttrValue], ValueType] | None = None
        for _ in range(_ATTRIBUTE_TRIES):
            drawn = dict(known)
            for attr in operator.attrs:
                if attr.name not in drawn:
                    drawn[attr.name] = sample_attribute(
                        term.op, attr, wanted, operands, drawn, self.hints
                    )
            try:
                attrs = operator.canonical(operands, drawn)
                result = operator.infer(operands, attrs)
            except ShapeError:
                result = None
            if result is not None and all(attrs[key] == value for key, value in known.items()):
                best = (attrs, result)
                if wanted is None or result == wanted:
                    break
            if len(known) == len(operator.attrs):
                break
        if best is None:
            raise _MisfitError
        for key, expr in term.attrs:
            if isinstance(expr, Var):
                self.attrs[expr.name] = best[0][key]
        self.symbols[id(term)] = (term.op, best[0])
        return best[1]


def _variables(term: Term) -> Iterator[str]:
    if isinstance(term, Var):
        yield term.name
    else:
        for child in term.children:
            yield from _variables(child)


def draw_configuration(rule: Rule, random: Random) -> Configuration | None:
    """Draw operands for which the sources are valid; None if this attempt failed."""
    try:
        return _Drawer(rule, random).draw()
    except _MisfitError:
        return None


def draw_values(rule: Rule, configuration: Configuration, random: Random) -> dict[str, Any]:
    """Draw the tensors of a configuration, by variable; positive where the sources need it."""
    generator = np.random.default_rng(random.getrandbits(32))
    positive = _positive_variables(rule)
    values: dict[str, Any] = {}
    for name, kind in zip(tensor_vars(rule), configuration.var_types, strict=True):
        if kind.dtype in FLOAT_DTYPES:
            array = generator.normal(size=kind.shape)
            values[name] = np.abs(array) + 0.5 if name in positive else np.asarray(array)
        elif kind.dtype == "bool":
            values[name] = generator.integers(0, 2, size=kind.shape).astype(bool)
        else:
            values[name] = generator.integers(-5, 6, size=kind.shape).astype(kind.dtype)
    return values


def _positive_variables(rule: Rule) -> set[str]:
    """Return the variables that stand for variances."""
    found = set()
    for node in source_nodes(rule):
        if node.op == "batch_norm" and isinstance(node.children[4], Var):
            found.add(node.children[4].name)
    return found


def evaluate_sources(
    rule: Rule, configuration: Configuration, values: Mapping[str, Any]
) -> list[Any]:
    """Compute the sources' results."""
    symbols = iter(configuration.symbols)
    types = dict(zip(tensor_vars(rule), configuration.var_types, strict=True))

    def visit(term: Term) -> tuple[Any, ValueType]:
        if isinstance(term, Var):
            return values[term.name], types[term.name]
        op, attrs = next(symbols)
        children = [visit(child) for child in term.children]
        operator = get_operator(op)
        kinds = tuple(kind for _, kind in children)
        result = operator.evaluate_typed([value for value, _ in children], kinds, attrs)
        return result, operator.infer(kinds, attrs)

    return [visit(source)[0] for source in rule.sources]


def evaluate_targets(rule: Rule, instance: Instance, values: Mapping[str, Any]) -> list[Any]:
    """Compute the targets' results."""
    results = [values[name] for name in tensor_vars(rule)]
    for node in instance.nodes:
        operands = [results[child] for child in node.children]
        operator = get_operator(node.op)
        results.append(operator.evaluate_typed(operands, node.operand_types, dict(node.attrs)))
    return [results[root] for root in instance.roots]


def agree(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two lists of results (arrays, or tuples of arrays) are equal up to rounding."""
    return all(_agree(a, b) for a, b in zip(left, right, strict=True))


def _agree(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return isinstance(a, tuple) and isinstance(b, tuple) and agree(a, b)
    if np.shape(a) != np.shape(b) or np.asarray(a).dtype != np.asarray(b).dtype:
        return False
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


@dataclass(frozen=True)
class Trial:
    """One configuration on which a rule applies, with operands, and whether its law held."""

    configuration: Configuration
    instance: Instance
    holds: bool


def trials(rule: Rule, random: Random, count: int, attempts: int) -> Iterator[Trial]:
    """Draw up to ``count`` trials of a rule in at most ``attempts`` attempts.

    Raises:
        UnsoundRuleError: the two sides differ in type.
    """
    for _ in range(attempts):
        configuration = draw_configuration(rule, random)
        instance = None if configuration is None else configuration.instantiate(rule)
        if configuration is None or instance is None:
            continue
        values = draw_values(rule, configuration, random)
        with np.errstate(all="ignore"):
            left = evaluate_sources(rule, configuration, values)
            right = evaluate_targets(rule, instance, values)
        yield Trial(configuration, instance, agree(left, right))
        count -= 1
        if not count:
            return


# --- Hypothesis ---


def shapes(max_rank: int = 4, max_size: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of small tensors."""
    return st.lists(st.integers(1, max_size), max_size=max_rank).map(tuple)


def tensor_types(max_rank: int = 4) -> st.SearchStrategy[TensorType]:
    """Types of small tensors."""
    dtypes = st.sampled_from(["float32", "float64", "int64", "bool"])
    return st.builds(TensorType, dtypes, shapes(max_rank))


def configurations(rule: Rule) -> st.SearchStrategy[Configuration]:
    """Configurations for which a rule's sources are valid."""
    drawn = st.randoms(use_true_random=False).map(lambda random: draw_configuration(rule, random))
    return drawn.flatmap(lambda found: st.nothing() if found is None else st.just(found))


def attribute_values(attr: Attr) -> st.SearchStrategy[AttrValue]:
    """Values of an attribute's kind."""
    if attr.choices:
        return st.sampled_from(attr.choices)
    ints = st.lists(st.integers(-3, 9), max_size=4).map(tuple)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(-3, 9),
        "float": st.floats(allow_nan=False),
        "str": st.text(max_size=4),
        "bool": st.booleans(),
        "ints": ints,
        "floats": st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
        "dtype": st.sampled_from(["float32", "int64"]),
        "padding": st.one_of(st.sampled_from(["same", "valid"]), ints),
    }
    return kinds[attr.kind]
