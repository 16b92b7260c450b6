"""Matching by trying every value for every source: slow, simple."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from bench.taso.graphs import State
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.tensor.operators import get_operator

#: Variables by name and operator nodes by term, each with its value.
Binding = Mapping[str | Apply, int]


def slow_matches(state: State, rule: Rule) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return (roots, values of the tensor variables) of every match."""
    matches = set()
    for roots in product(state.entries, repeat=len(rule.sources)):
        binding: Binding | None = {}
        for source, root in zip(rule.sources, roots, strict=True):
            binding = _match(state, source, root, binding)
        if binding is not None and _is_injective(binding):
            matches.add((roots, tuple(binding[name] for name in tensor_vars(rule))))
    return matches


def _match(state: State, term: Term, value: int, binding: Binding | None) -> Binding | None:
    if binding is None:
        return None
    key = term.name if isinstance(term, Var) else term
    if binding.get(key, value) != value:
        return None
    binding = {**binding, key: value}
    if isinstance(term, Apply):
        symbol, *children = state.entries[value]
        op, attrs = state.universe.symbols[symbol]
        if op != term.op or not _fits(term, dict(attrs)):
            return None
        for child, operand in zip(term.children, children, strict=True):
            binding = _match(state, child, operand, binding)
    return binding


def _fits(term: Apply, attrs: Mapping[str, object]) -> bool:
    written = dict(term.attrs)
    attrs_of_pattern = {
        a.name: written.get(a.name, Literal(a.default)) for a in get_operator(term.op).attrs
    }
    return all(
        expr.value == attrs[k] for k, expr in attrs_of_pattern.items() if isinstance(expr, Literal)
    )


def _is_injective(binding: Binding) -> bool:
    nodes = [value for key, value in binding.items() if isinstance(key, Apply)]
    return len(set(nodes)) == len(nodes)
