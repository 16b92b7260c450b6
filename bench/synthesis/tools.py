"""What a synthesis takes of the program: runs of models, modelled costs, derivations from laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.synthesis.unproved_pairs import unproved_pairs
from relational_tensat.cost.opener import open_source
from relational_tensat.cost.source import graph_cost_us
from relational_tensat.explore.derivation import DerivationEffort, derive_rules
from relational_tensat.rules.model import Rule, Term
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.types import AttrItems, TensorType, ValueType

#: Of the run that a model is mined after: seconds of exploration.
_RUN_S = 20.0
_TOGETHER = DerivationEffort(iterations=4, multi_iterations=1, e_nodes=20_000)
_ALONE = DerivationEffort(configurations=2, iterations=6, e_nodes=4_000, seconds=10.0)


class SynthesisTools:
    """The program, with costs of a profile and some laws.

    Args:
        dims: sizes of the models' dynamic dimensions.
    """

    def __init__(
        self, profile: str, laws: Sequence[Rule], dims: Mapping[str, int] | None = None
    ) -> None:
        self._profile, self._laws, self._dims = profile, laws, dims or {}
        self._source = open_source(profile)

    def optimized(self, path: Path) -> Graph:
        """Return a model's graph after a run."""
        options = Options.of(time_limit_s=_RUN_S, cost=self._profile, dims=self._dims)
        return optimize(path, options).graph

    def cost_us(
        self, op: str, kinds: tuple[ValueType, ...], result: ValueType, attrs: AttrItems
    ) -> float:
        """Return what an operator costs, modelled."""
        return self._source.cost_us(op, kinds, result, dict(attrs))

    def whole_us(self, graph: Graph) -> float:
        """Return what a graph costs."""
        return graph_cost_us(graph, self._source)

    def unproved(
        self, pairs: Sequence[tuple[Term, Term]], inputs: Mapping[str, TensorType]
    ) -> list[int]:
        """Return which pairs of terms over inputs the laws do not prove."""
        return unproved_pairs(pairs, inputs, self._laws, _TOGETHER)

    def derived(self, rule: Rule, more: Sequence[Rule]) -> bool:
        """Whether the laws and more rules prove a rule."""
        (derivation,) = derive_rules([rule], [*self._laws, *more], _ALONE)
        return derivation.derived
