"""Many pairs of terms in one e-graph: which of them the laws prove, at the price of a few.

All pairs stand on the same inputs, so what they have in common is there once, and every law is matched
once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.explore.derivation.derivation import DerivationEffort
from relational_tensat.rules.model import Literal, Rule, Term, Var
from relational_tensat.tensor.graph import Node, build_graph
from relational_tensat.tensor.types import AttrValue, TensorType

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
    effort = effort or DerivationEffort()
    builder = _PairBuilder()
    names = [(builder.value(left), builder.value(right)) for left, right in pairs]
    outputs = dict.fromkeys(name for pair in names for name in pair)
    graph = build_graph("pairs", inputs, {}, builder.nodes, list(outputs), where="pairs")
    egraph = EGraph.create(graph)
    options = ExplorationOptions(
        iterations=effort.iterations,
        multi_iterations=effort.multi_iterations,
        multi_schedule="saturated",
        node_limit=effort.e_nodes,
        time_limit_s=effort.seconds,
    )

    def unproved(current: EGraph) -> list[int]:
        class_of = dict(current.database.run("egraph/output_classes"))
        return [i for i, (left, right) in enumerate(names) if class_of[left] != class_of[right]]

    try:
        exploration = explore(
            egraph,
            [law.everywhere for law in laws],
            options,
            observer=Observer(until=lambda current: not unproved(current)),
        )
        if exploration.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return unproved(egraph)
    finally:
        egraph.close()


class _PairBuilder:
    """Builds the nodes of terms, equal ones once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._names: dict[Term, str] = {}
        self._splits: dict[Term, int] = {}

    def value(self, term: Term) -> str:
        """Return the name of a term's value."""
        if isinstance(term, Var):
            return term.name
        if term not in self._names:
            if term.op == "part":
                return self._part(term)
            children = tuple(self.value(child) for child in term.children)
            self._names[term] = name = f"pair.{len(self.nodes)}"
            attrs = {key: value.value for key, value in term.attrs if isinstance(value, Literal)}
            self.nodes.append(Node(term.op, children, (name,), attrs, name))
        return self._names[term]

    def _part(self, term: Term) -> str:
        assert not isinstance(term, Var)
        (split,) = term.children
        index = dict(term.attrs)["index"]
        assert not isinstance(split, Var) and isinstance(index, Literal)
        if split not in self._splits:
            children = tuple(self.value(child) for child in split.children)
            attrs: dict[str, AttrValue] = {
                key: value.value for key, value in split.attrs if isinstance(value, Literal)
            }
            number = len(self.nodes)
            count = len(attrs["sizes"])  # type: ignore[arg-type]
            names = tuple(f"pair.{number}.{part}" for part in range(count))
            self.nodes.append(Node(split.op, children, names, attrs, f"pair.{number}"))
            self._splits[split] = number
        return f"pair.{self._splits[split]}.{index.value}"
