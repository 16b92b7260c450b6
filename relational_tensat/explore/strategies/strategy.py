"""A strategy begins a subgraph, decides which steps it takes, and says how that went.

``explore.step`` takes a step: match, apply, rebuild and filter in one transaction, without policy.
``explore.subgraph.end_exploration`` writes down what is there at the end. ``docs/extending.md`` has an
example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relational_tensat.base.records import record
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions, TreeOptions
from relational_tensat.explore.members import PricingChooser
from relational_tensat.explore.outcome import Exploration, Observer
from relational_tensat.rules.model import Rule


@record
class SearchSettings:
    """The settings that a strategy goes by.

    Attributes:
        options: its limits.
        chooser: says what kernels cost, and extracts from what is shown of the e-graph.
        observer: is called between steps, and may end them all.
        seed: of all that is drawn at random.
        tree: parameters of a tree search.
    """

    options: ExplorationOptions
    chooser: PricingChooser
    observer: Observer = Observer()
    seed: int = 0
    tree: TreeOptions = TreeOptions()


class Strategy(Protocol):
    """Decides which steps an e-graph takes."""

    def __call__(
        self, egraph: EGraph, rules: Sequence[Rule], search: SearchSettings
    ) -> Exploration:
        """Grow an e-graph by rules, until nothing is left to do or a limit is reached.

        Raises:
            UnsoundRuleError: a rule would unite classes of different types.
        """
