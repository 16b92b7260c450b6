"""What can be chosen for a tree search."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.option import OptionGroup, option

#: What ``--tree-policy`` may be; see ``rollouts``.
POLICIES = ("live", "uniform", "average", "look-ahead", "near")

#: What ``--tree-extractor`` may be; see ``rewards``.
EXTRACTORS = ("moves", "greedy", "greedy-dag", "ilp")


@dataclass(frozen=True, slots=True)
class TreeOptions(OptionGroup):
    """The parameters of ``--search mcts``; by default the paper's, as its source has them.

    Attributes:
        variant: where the paper and its source differ. ``source``: the root has all its live children
            before any other is expanded, rewards are discounted, and expansion counts as a step.
            ``paper``: any node is expanded with the expansion probability, and rewards are summed.
        budget: rollouts for each decision.
        steps: the most rules that a simulation applies after the expansion.
        policy: how a simulation chooses its rules: ``uniform`` among all rules, dead ones included (a dead
            one takes a step and does nothing), among those that are ``live`` (change the world), by
            ``average`` reward so far, by ``look-ahead`` (the best of five), or ``near`` (live ones that
            apply to the root's cheapest graph or to what the simulation has added).
        extractor: what a world costs: ``moves`` on the graph of the world before, or by ``greedy``,
            ``greedy-dag`` (from the leaves up, as the paper's Algorithm 2) or ``ilp`` (the paper's main
            extraction; the final one is ``--extractor``).
        expansion: the probability that selection ends at a node that can be expanded.
        exploration_constant: of UCB1, for rewards in ms; the source's is 2·√2.
        discount: of rewards, by step; only of ``source``.
        decisions: the most rules that are applied to the real world.
        threshold_us: a graph that costs less than this ends the search, after a decision.
        at_once: rollouts that run side by side: from as many new nodes as selection has, where those under
            way count as visits without reward (virtual loss), and several from each if there are fewer.
            1 is the paper's way, one rollout after the other.
    """

    variant: str = option(
        "source", "where the paper and its source differ", name="tree_variant",
        choices=("source", "paper"),
    )  # fmt: skip
    budget: int = option(
        128, "rollouts for each decision", name="tree_budget", metavar="N", minimum=1
    )
    steps: int = option(
        11, "at most so many rules in a rollout, after its first", name="tree_steps", metavar="N"
    )
    policy: str = option("live", "how rollouts choose rules", name="tree_policy", choices=POLICIES)
    extractor: str = option(
        "moves", "what a world in a rollout costs", name="tree_extractor", choices=EXTRACTORS
    )
    expansion: float = option(
        0.5, "probability that a node is expanded where it can be", name="tree_expansion",
        metavar="P",
    )  # fmt: skip
    exploration_constant: float = option(
        2.83, "UCB1's, for rewards in ms", name="tree_exploration", metavar="C"
    )
    discount: float = option(0.99, "of rewards, by step", name="tree_discount", metavar="G")
    decisions: int = option(200, "at most so many decisions", name="tree_decisions", metavar="N")
    threshold_us: float = option(
        100.0, "a graph that costs less ends the search", name="tree_threshold", metavar="US"
    )
    at_once: int = option(64, "rollouts side by side", name="tree_at_once", metavar="N", minimum=1)
