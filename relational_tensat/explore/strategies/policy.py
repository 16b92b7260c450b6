"""The decisions of saturation: rules of an iteration, the limits of their targets, and the end.

Multi-pattern rules may take a part of the node limit. A variation grows a subgraph otherwise than
saturation would, so that it holds other graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from relational_tensat.base.records import record
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.step import Delta, StepBudget
from relational_tensat.explore.subgraph import Subgraph


def multi_budget(e_nodes: int, limit: int) -> int:
    """Return the most e-nodes that multi-pattern rules may grow an e-graph to in one iteration.

    Args:
        e_nodes: how many there are before the iteration.
        limit: the most there may be.
    """
    return (e_nodes + 3 * limit) // 4


def scarce_budget(original: int, limit: int) -> int:
    """Return the same once that much has starved single-pattern rules: the bound of all iterations then.

    Single-pattern rules make several e-nodes of each that multi-pattern rules add (three to four on
    NasRNN and BERT with the shipped rules, next to none with TASO's).

    Args:
        original: e-nodes of the original graph.
        limit: the most there may be.
    """
    return max(limit // 4, (7 * original + limit) // 8)


@record
class Variation:
    """The e-nodes that a node limit keeps out of a subgraph, and those that it lets in.

    Attributes:
        order: a seed: applications of multi-pattern rules come in a random order; None: of each rule,
            those of the youngest classes first.
        multi_share: the part of the room left in the subgraph that multi-pattern rules may take in an
            iteration; single-pattern rules' part is not looked at. None: as saturation has it
            (``node_budgets``).
        multi_iterations: iterations in which multi-pattern rules take part, each but the first once
            single-pattern rules have nothing left to add; None: as the options have it.
    """

    order: int | None = None
    multi_share: float | None = None
    multi_iterations: int | None = None


#: As saturation grows it.
PLAIN = Variation()


@dataclass(slots=True)
class SaturationState:
    """Where saturation is, in the e-graph or in a subgraph of it.

    Attributes:
        iteration: the last one that is done.
        original: e-nodes there were before the first iteration.
        stopped: why the last is the last: saturated, nodes, or closed (saturated, and more iterations of
            multi-pattern rules would add nothing either); empty if it is not.
        multi_done: iterations with multi-pattern rules.
        quiet: whether the last iteration added nothing.
        left_out: whether a limit kept multi-pattern matches from being applied.
        scarce: whether the node budget is: see ``scarce_budget``.
    """

    iteration: int
    original: int
    stopped: str = ""
    multi_done: int = 0
    quiet: bool = False
    left_out: bool = False
    scarce: bool = False


class Policy:
    """Decides by the subgraph and by where its exploration is.

    Attributes:
        options: those that hold now: see ``vary``.
        offset: iterations in subgraphs, and in explorations, before this one.
        more: iterations beyond those of the options.
    """

    def __init__(self, subgraph: Subgraph, options: ExplorationOptions) -> None:
        self.options = self._given = options
        self.offset = subgraph.steps
        self.more = 0
        self._subgraph = subgraph
        self._variation = PLAIN

    def vary(self, node_limit: int, variation: Variation) -> None:
        """Grow within a node limit from now on, and in another way."""
        self._variation = variation
        self.options = replace(self._given, node_limit=node_limit)
        if variation.multi_iterations is not None:
            self.options = replace(
                self.options,
                multi_iterations=variation.multi_iterations,
                multi_schedule="saturated",
            )

    @property
    def last(self) -> int:
        """The last iteration that there may be."""
        return self.offset + self.options.iterations + self.more

    def rules(self, iteration: int, state: SaturationState) -> frozenset[int]:
        """Return the rules that take part in an iteration."""
        rules = self._subgraph.rules
        return rules.all_rules if self.wants_multi(iteration, state) else rules.single_rules

    def wants_multi(self, iteration: int, state: SaturationState) -> bool:
        """Whether multi-pattern rules take part in an iteration."""
        iteration -= self.offset
        if state.scarce and self._multi_budget(state) <= self._subgraph.e_nodes:
            return False
        if self.options.multi_schedule == "first":
            return iteration <= self.options.multi_iterations
        has_iterations = state.multi_done < self.options.multi_iterations
        return has_iterations and (iteration == 1 or state.quiet)

    def budget(self, state: SaturationState) -> StepBudget:
        """Return what the next iteration may build: multi-pattern rules leave some of it to the others."""
        limit = self.options.node_limit
        if self._variation.multi_share is not None:
            return StepBudget(limit, self._multi_budget(state))
        whole_above = max(scarce_budget(state.original, limit), self._subgraph.e_nodes)
        return StepBudget(
            limit, self._multi_budget(state), whole_above=None if state.scarce else whole_above
        )

    def _multi_budget(self, state: SaturationState) -> int:
        """Return the most e-nodes that multi-pattern rules may leave."""
        share, limit, e_nodes = (
            self._variation.multi_share,
            self.options.node_limit,
            self._subgraph.e_nodes,
        )
        if share is not None:
            return e_nodes + int(share * (limit - e_nodes))
        if state.scarce:
            return scarce_budget(state.original, limit)
        return multi_budget(e_nodes, limit)

    def reason_to_stop(self, delta: Delta, rules: frozenset[int], state: SaturationState) -> str:
        """Return why exploration ends after a complete iteration; nothing if it does not.

        It is closed where all rules took part and none had anything to add, multi-pattern rules neither.

        Args:
            rules: those that took part.
        """
        if not delta.single_complete:
            return "nodes"
        if state.quiet and not state.left_out and rules == self._subgraph.rules.all_rules:
            return "closed"
        if not state.quiet or self.wants_multi(state.iteration + 1, state):
            return ""
        return "nodes" if state.left_out else "saturated"
