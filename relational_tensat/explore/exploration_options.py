"""The options of an exploration, and of a tree search."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import OptionGroup, option
from relational_tensat.explore.strategies import STRATEGIES

#: What ``tree-policy`` may be; see ``rollouts``.
POLICIES = ("live", "uniform")

#: What ``tree-extractor`` may be; see ``rewards``.
EXTRACTORS = ("moves", "greedy", "ocf", "greedy-dag", "ilp")


@dataclass(frozen=True, slots=True)
class TreeOptions(OptionGroup):
    """The parameters of ``--search mcts``; by default the paper's, as its source has them.

    Attributes:
        variant: where the paper and its source differ. ``source``: the root has all its live children
            before any other is expanded, rewards are discounted, and expansion counts as a step.
            ``paper``: any node is expanded with the expansion probability, and rewards are summed.
        budget: rollouts for each decision.
        steps: the most rules that a simulation applies after the expansion.
        policy: the choice of rules in a simulation: ``uniform`` among all rules, dead ones included (a dead
            one takes a step and does nothing), or among those that are ``live`` (change the subgraph).
        extractor: the cost of a subgraph: ``moves`` on the graph of the subgraph before, or by ``greedy``,
            ``ocf`` (the paper's Algorithm 2), ``greedy-dag`` (from the leaves up, shared work charged once)
            or ``ilp``. The paper's main extraction is one of ``greedy``, ``ocf`` and ``ilp``; the final one
            is ``--extractor``.
        expansion: the probability that selection ends at a node that can be expanded.
        exploration_constant: of UCB1, for rewards in ms; the source's is 2·√2.
        discount: of rewards, by step; only of ``source``.
        decisions: the most rules that are applied to the real subgraph.
        threshold_us: a graph that costs less than this ends the search, after a decision.
        at_once: rollouts that run side by side: from as many new nodes as selection has, where those under
            way count as visits without reward (virtual loss), and several from each if there are fewer.
            1 is the paper's way, one rollout after the other.
    """

    variant: str = option(
        "source", "which to follow where the paper and its source code differ", name="tree_variant",
        choices=("source", "paper"),
        is_rare=True,
    )  # fmt: skip
    budget: int = option(
        128,
        "rollouts for each decision",
        name="tree_budget",
        metavar="N",
        minimum=1,
        is_rare=True,
    )
    steps: int = option(
        11,
        "the most rules in a rollout, after its first",
        name="tree_steps",
        metavar="N",
        is_rare=True,
    )
    policy: str = option(
        "live", "how rollouts choose rules", name="tree_policy", choices=POLICIES, is_rare=True
    )
    extractor: str = option(
        "moves",
        "how the cost of an e-graph in a rollout is found",
        name="tree_extractor",
        choices=EXTRACTORS,
        is_rare=True,
    )
    expansion: float = option(
        0.5, "probability that a node is expanded if it can be", name="tree_expansion",
        metavar="P",
        is_rare=True,
    )  # fmt: skip
    exploration_constant: float = option(
        2.83,
        "the constant of UCB1, for rewards in ms",
        name="tree_exploration",
        metavar="C",
        is_rare=True,
    )
    discount: float = option(
        0.99, "discount of rewards, by step", name="tree_discount", metavar="G", is_rare=True
    )
    decisions: int = option(
        200, "the most decisions", name="tree_decisions", metavar="N", is_rare=True
    )
    threshold_us: float = option(
        100.0,
        "a graph that costs less ends the search",
        name="tree_threshold",
        metavar="US",
        is_rare=True,
    )
    at_once: int = option(
        64,
        "rollouts that run side by side",
        name="tree_at_once",
        metavar="N",
        minimum=1,
        is_rare=True,
    )


#: E-nodes of the first subgraphs of a search, as in the TENSAT+MCTS paper (section 5); and of focus's for
#: each e-node of the original graph, if that is more.
_SUBGRAPH_NODES, _ROOM = 2_000, 5


@dataclass(frozen=True, slots=True)
class ExplorationOptions(OptionGroup):
    """The end of an exploration, and its way until then.

    Attributes:
        multi_iterations: TENSAT's k_multi.
        multi_schedule: the ``first`` iterations, as in TENSAT; or (``saturated``) the first and then each
            time that single-pattern rules have nothing left to add, so that more of them only ever add to
            the e-graph of fewer.
        node_limit: holds at any moment; of a search, in each of its subgraphs.
        time_limit_s: wall seconds; None for no limit.
        cycle_filter: ``efficient`` (height labels, then a search where they are violated), ``vanilla``
            (TENSAT's first method: all descendants recomputed before each multi-pattern application) or
            ``none``.
        search: the strategy, which decides on the growth. ``saturation``: one e-graph. ``auto``: the same,
            then ``focus`` from there, for as long as that is worth the wait, unless fewer ``iterations``
            than by default ended it. (``explore`` has no costs, so nothing goes on there.) ``focus``:
            subgraphs, parts of one universe, from the original graph and from the cheapest found in the
            subgraph before; it extracts from each, so it needs costs. ``focus-mcts``: the same. Once the
            first width's restarts find nothing, a tree search of the same universe follows, within half of
            the time that is left. Then focus goes on from the graph that it found. ``mcts``: subgraphs of a
            tree of rules, by which it decides what to apply next to the real one. It needs costs, too.
        subgraph_nodes: the first subgraphs of a search have no more e-nodes, later ones of ``focus`` twice
            as many each time, up to ``node_limit``; see ``first_subgraph_nodes`` for the default.
        universe_limit: of all subgraphs of a search together.
        restarts: at each width, a search by focus ends after so many restarts in a row that found nothing
            cheaper; four are one of each kind (the original graph twice, that beside the cheapest, the
            cheapest with more iterations of multi-pattern rules).
    """

    iterations: int = option(15, "the most iterations", metavar="N")
    multi_iterations: int = option(
        1, "iterations in which rules with several patterns take part", metavar="N"
    )
    multi_schedule: str = option(
        "first",
        "when rules with several patterns take part",
        choices=("saturated", "first"),
        is_rare=True,
    )
    node_limit: int = option(50_000, "the most e-nodes", metavar="N", minimum=1)
    time_limit_s: float | None = option(
        60.0,
        "seconds of exploration",
        metavar="S",
        default_text="60, or 7 where the result is timed here",
    )
    cycle_filter: str = option(
        "efficient", "how cycles are kept out", choices=("efficient", "vanilla", "none")
    )
    search: str = option(
        "auto",
        "saturation: one e-graph; focus: small e-graphs, each grown from the cheapest graph so far; auto: "
        "saturation, then focus until that gains too little; mcts: a tree search over rules; "
        "focus-mcts: focus, then a tree search",
        choices=STRATEGIES,
    )
    subgraph_nodes: int | None = option(
        None,
        "the most e-nodes in the first small e-graphs of a search, doubled later, up to --node-limit",
        metavar="N",
        minimum=1,
        default_text="2000, or 5 for each node of a model that focus searches",
        is_rare=True,
    )
    universe_limit: int = option(
        50_000,
        "the most e-nodes in all small e-graphs of a search together",
        metavar="N",
        minimum=1,
        is_rare=True,
    )
    restarts: int = option(
        4,
        "restarts in a row that find nothing cheaper, after which focus ends",
        metavar="N",
        minimum=0,
        is_rare=True,
    )

    def __post_init__(self) -> None:
        """Check all values.

        Raises:
            UsageError: a value does not exist or cannot be; names the nearest.
        """
        OptionGroup.__post_init__(self)
        if self.is_search and self.cycle_filter == "vanilla":
            raise UsageError(
                f"search = {self.search} and cycle_filter = vanilla, expected one of the two"
            )

    @property
    def is_search(self) -> bool:
        """Whether costs decide what is grown."""
        return self.search not in ("saturation", "auto")

    @property
    def ends_early(self) -> bool:
        """Whether searches and proofs end once their gain is not worth the wait: of a default search."""
        return self.search == "auto" and self.time_limit_s is not None

    def first_subgraph_nodes(self, n_original: int = 0) -> int:
        """Return how many e-nodes the first subgraphs of a search have at most.

        Args:
            n_original: e-nodes of the original graph, where subgraphs must have room beside these: a
                decoder of 24 layers has 891, and one of 2,000 ends after two iterations.
        """
        width = self.subgraph_nodes or max(_SUBGRAPH_NODES, _ROOM * n_original)
        return min(width, self.node_limit)
