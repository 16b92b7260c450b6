"""What a tree search leaves in the tables: the tree, the universe's applications, worlds that matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from relational_tensat.egraph.database import Database
from relational_tensat.explore.outcome import DecisionReport
from relational_tensat.explore.strategies.mcts.tree import History, Rollout, TreeNode
from relational_tensat.explore.worlds.applications import STATES
from relational_tensat.explore.worlds.building import root_classes
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.universe import Universe

if TYPE_CHECKING:
    import pyarrow as pa


def write_decision(database: Database, report: DecisionReport, live: Iterable[int]) -> None:
    """Write a decision."""
    about = (report.decision, report.rule_id, report.rollouts, report.mean_ms, report.cost_us)
    sizes = (report.best_us, report.e_nodes, report.universe, sorted(live), report.seconds)
    database.append("tree_decision", [(*about, *sizes)])


def write_rollouts(
    database: Database,
    decision: int,
    rollouts: Sequence[Rollout],
    costs_us: Sequence[list[float]],
    returns_ms: Sequence[float],
) -> None:
    """Write the rollouts of a batch."""
    rows = [
        (
            decision,
            rollout.node.number,
            [rule for rule, _ in rollout.steps],
            costs,
            rollout.e_nodes,
            return_ms,
        )
        for rollout, costs, return_ms in zip(rollouts, costs_us, returns_ms, strict=True)
    ]
    database.append("tree_rollout", rows)


def write_tree(database: Database, decision: int, nodes: Iterable[TreeNode]) -> None:
    """Write the nodes of a tree, but for the root."""
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
        if node.parent is not None
    ]
    database.append("tree_node", rows)


def write_applications(universe: Universe) -> None:
    """Write all applications that were found."""
    applications = universe.applications
    database = universe.egraph.database
    database.execute("-- of the search so far\nDELETE FROM universe_application", name="worlds")
    if applications.count:
        columns = {
            "id": np.arange(1, applications.count + 1, dtype=np.int32),
            "rule": applications.rules,
            "instance": applications.instances,
            "state": np.array(STATES)[applications.states],
            "sources": _lists(applications.sources),
            "targets": _lists(applications.targets),
        }
        database.insert_arrays("universe_application", columns, "insert universe_application")


def write_world(universe: Universe, world: int, original: Ints, history: History | None) -> int:
    """Write the e-nodes of a world, with their reasons; return how many.

    Args:
        original: the e-nodes of the original graph, operands first.
        history: how the world came about.
    """
    arrays, applications = universe.arrays, universe.applications
    place_of = {int(enode): place for place, enode in enumerate(original, start=1)}
    nodes = [(world, enode, place, 0) for enode, place in place_of.items()]
    rows: list[tuple[object, ...]] = []
    for iteration, places in _fired(history):
        roots = root_classes(universe.world, applications, places, arrays)
        for row, place in enumerate(places.tolist()):
            targets = applications.targets[place]
            new = [enode for enode in targets.tolist() if enode and enode not in place_of]
            if not new:
                continue
            number = len(rows) + 1
            rule = int(applications.rules[place])
            bound = len(universe.world.rules.rule(rule).patterns)
            leaves = applications.bindings[place, : bound * universe.world.rules.leaf_columns]
            built = arrays.owner[targets[targets > 0]]
            rows.append(
                (
                    world,
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
                nodes.append((world, enode, place_of[enode], number))
    database = universe.egraph.database
    database.append("world_application", rows)
    database.append("world_node", nodes)
    return len(nodes)


def _fired(history: History | None) -> list[tuple[int, Ints]]:
    """Return the applications of a world's history, from the first rule on, with the index of each."""
    fired: list[Ints] = []
    while history is not None:
        fired.append(history.applications)
        history = history.before
    return list(enumerate(reversed(fired), start=1))


def _state(node: TreeNode) -> str:
    if node.is_saturated:
        return "saturated"
    return "open" if node.is_whole else "full"


def _lists(rows: Ints) -> pa.Array:
    """Return rows of ids as lists, without what fills them up."""
    import pyarrow as pa  # here: a run without a tree search does not need it

    ends = np.cumsum((rows > 0).sum(axis=1), dtype=np.int32)
    return pa.ListArray.from_arrays(np.concatenate([[0], ends]).astype(np.int32), rows[rows > 0])


def _ids(values: Iterable[int]) -> list[int]:
    return [value for value in values if value]
