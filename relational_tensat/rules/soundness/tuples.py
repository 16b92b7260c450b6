"""Variables that may stand for tuples: a result of ``split`` is an operand of ``concat``, too.

A rule is drawn with tensors for its variables. Its claim about tuples is that of its variants, in which a
variable is the tuple of two tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Apply, Expr, Rule, Term, Var, nodes_of, parts_of
from relational_tensat.tensor.operators import get_operator


def tuple_variants(rule: Rule) -> list[Rule]:
    """Return the rule once per variable that may stand for a tuple, with a pair in its place.

    No condition may ask anything of the variable, since conditions on tuples do not hold, and no
    other operator may take it.
    """
    asked = {part for expr in _expressions(rule) for part in parts_of(expr)}
    terms = (*rule.sources, *rule.targets)
    return [
        _with_pair(rule, name)
        for name in tensor_vars(rule)
        if Var(name) not in asked and all(_takes_tuple(term, name) for term in terms)
    ]


def _expressions(rule: Rule) -> Iterator[Expr]:
    yield from rule.conditions
    for target in rule.targets:
        for node in nodes_of(target):
            yield from (value for _, value in node.attrs)


def _takes_tuple(term: Term, name: str) -> bool:
    """Whether every operator in a term that has the variable for an operand takes tuples."""
    if isinstance(term, Var):
        return True
    if Var(name) in term.children and not get_operator(term.op).takes_tuples:
        return False
    return all(_takes_tuple(child, name) for child in term.children)


def _with_pair(rule: Rule, name: str) -> Rule:
    pair = Apply("noop", (Var(f"{name}-0"), Var(f"{name}-1")))

    def put(term: Term) -> Term:
        if isinstance(term, Var):
            return pair if term.name == name else term
        return replace(term, children=tuple(put(child) for child in term.children))

    def put_source(term: Apply) -> Apply:
        return replace(term, children=tuple(put(child) for child in term.children))

    return replace(
        rule,
        sources=tuple(put_source(source) for source in rule.sources),
        targets=tuple(put(target) for target in rule.targets),
    )
