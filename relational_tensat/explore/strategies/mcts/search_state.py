"""The state of a tree search between two decisions, beside the universe.

A tree search leaves the trees, and the subgraphs that matter, in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relational_tensat.egraph.database import Database
from relational_tensat.explore.outcome import DecisionReport
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.tree import History, Rollout, TreeNode
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph
from relational_tensat.explore.subgraphs.node_arrays import Ints
from relational_tensat.explore.subgraphs.universe import Universe


def write_decision(
    database: Database, report: DecisionReport, live: Iterable[int], applications: Ints
) -> None:
    """Write a decision: of which rules it was, and which applications the rule then was."""
    about = (report.decision, report.rule_id, report.rollouts, report.mean_ms, report.cost_us)
    sizes = (report.best_us, report.e_nodes, report.universe)
    applied = (sorted(live), (applications + 1).tolist(), report.seconds)
    database.append("tree_decision", [(*about, *sizes, *applied)])


def write_rollouts(
    database: Database,
    decision: int,
    rollouts: Sequence[Rollout],
    returns_ms: Sequence[float],
) -> None:
    """Write the rollouts of a batch, with what their subgraphs cost."""
    rows = [
        (
            decision,
            rollout.node.number,
            [rule for rule, _ in rollout.steps],
            rollout.costs_us,
            rollout.e_nodes,
            return_ms,
        )
        for rollout, return_ms in zip(rollouts, returns_ms, strict=True)
    ]
    database.append("tree_rollout", rows)


def write_tree(database: Database, decision: int, nodes: Iterable[TreeNode]) -> None:
    """Write the nodes of a tree, but for the root and those that no rollout has come back to."""
    rows = [
        (
            decision,
            node.number,
            node.parent.number,
            node.rule,
            node.visits,
            node.value_ms,
            node.reward_ms,
            node.cost_us,
            len(node.members),
            sorted(node.live),
            _state(node),
        )
        for node in nodes
        if node.parent is not None and node.visits
    ]
    database.append("tree_node", rows)


def write_subgraph(
    universe: Universe, subgraph: int, original: Ints, history: History | None
) -> int:
    """Write the e-nodes of a subgraph, with their reasons; return how many.

    Args:
        original: the e-nodes of the original graph, operands first.
        history: how the subgraph came about.
    """
    arrays, applications = universe.arrays, universe.applications
    place_of = {int(enode): place for place, enode in enumerate(original, start=1)}
    nodes = [(subgraph, enode, place, 0) for enode, place in place_of.items()]
    rows: list[tuple[object, ...]] = []
    for iteration, step in enumerate(_steps(history), start=1):
        places = step.applications
        roots = universe.roots(places)
        for row, place in enumerate(places.tolist()):
            targets = applications.targets[place]
            new = [enode for enode in targets.tolist() if enode and enode not in place_of]
            if not new:
                continue
            number = len(rows) + 1
            rule = int(applications.rules[place])
            leaves = applications.bindings[place, : universe.bindings(place)]
            built = arrays.owner[targets[targets > 0]]
            rows.append(
                (
                    subgraph,
                    number,
                    len(place_of) + 1,
                    iteration,
                    rule,
                    int(applications.instances[place]),
                    _ids(roots[row].tolist()),
                    np.concatenate([leaves, built]).tolist(),
                )
            )
            for enode in dict.fromkeys(new):
                place_of[enode] = len(place_of) + 1
                nodes.append((subgraph, enode, place_of[enode], number))
    database = universe.egraph.database
    database.append("subgraph_application", rows)
    database.append("subgraph_node", nodes)
    return len(nodes)


def _state(node: TreeNode) -> str:
    if node.is_saturated:
        return "saturated"
    return "open" if node.is_whole else "full"


def _ids(values: Iterable[int]) -> list[int]:
    return [value for value in values if value]


def _steps(history: History | None) -> list[History]:
    """Return the steps in which a subgraph came about, from the first on."""
    steps: list[History] = []
    while history is not None:
        steps.append(history)
        history = history.before
    return steps[::-1]


@dataclass(slots=True)
class Best:
    """The cheapest subgraph of any rollout.

    Attributes:
        cost_us: its cost.
        history: how it came about; None: it is the original graph.
        graph: its cheapest graph.
    """

    cost_us: float
    history: History | None
    graph: CheapGraph


@dataclass(slots=True)
class SearchState:
    """Where a search is.

    Attributes:
        root: the real subgraph.
        rng: draws all that is drawn.
        decisions: those so far.
    """

    root: TreeNode
    best: Best
    rng: np.random.Generator
    decisions: list[DecisionReport] = field(default_factory=list)

    def refresh(self, rewards: Rewards) -> None:
        """Name e-nodes and classes as they are by now."""
        root, best = self.root, self.best
        graph = rewards.graph(root)
        root.graph = rewards.graph_of(root.members.tolist(), graph.choice.values(), graph.pairs)
        chosen = list(rewards.current(best.graph).chosen().values())
        best.graph = rewards.graph_of(chosen, chosen)


def first_state(original: Ints, rewards: Rewards, seed: int) -> SearchState:
    """Return where a search begins.

    Args:
        original: the e-nodes of the original graph.
        seed: of all that is drawn.
    """
    graph = rewards.first(original)
    root, best = TreeNode(0, None, 0, original, graph), Best(rewards.cost_us(graph), None, graph)
    return SearchState(root, best, np.random.default_rng(seed))
