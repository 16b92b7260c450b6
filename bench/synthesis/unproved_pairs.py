"""Pairs of terms in one e-graph: which of them laws do not prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TypeAlias

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.derivation.derivation import (
    DerivationEffort,
    NodeBuilder,
    Value,
    as_graph,
    explored,
    unproven,
)
from relational_tensat.rules.model import Literal, Rule, Term, Var
from relational_tensat.tensor.types import TensorType

#: Two terms over inputs, by their names.
TermPair: TypeAlias = tuple[Term, Term]


def unproved_pairs(
    pairs: Sequence[TermPair],
    inputs: Mapping[str, TensorType],
    laws: Sequence[Rule],
    effort: DerivationEffort | None = None,
) -> list[int]:
    """Return the indices of the pairs that laws do not make one class.

    Args:
        laws: taken wherever they hold, whether or not rewriting is worth it there.

    Raises:
        KeyboardInterrupt: the exploration was interrupted.
    """
    builder, known = NodeBuilder("pair."), dict[Term, Value]()

    def value(term: Term) -> Value:
        if isinstance(term, Var):
            return (term.name,), inputs[term.name]
        if term not in known:
            operands = [value(child) for child in term.children]
            attrs = {key: own.value for key, own in term.attrs if isinstance(own, Literal)}
            known[term] = builder.apply(term.op, attrs, operands)
        return known[term]

    names = []
    for left, right in pairs:
        (one,), (other,) = value(left)[0], value(right)[0]
        names.append(((one, other),))
    sides, effort = as_graph("pairs", inputs, builder.nodes, names), effort or DerivationEffort()
    with closing(EGraph.create(sides.graph)) as egraph:
        explored(sides, egraph, [law.everywhere for law in laws], effort, effort.seconds)
        return unproven(sides, egraph)
