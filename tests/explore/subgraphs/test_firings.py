"""Subgraphs side by side: what they have, why, and what e-graphs of their own have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.models import MODELS
from relational_tensat.base.files import resource_dir
from relational_tensat.base.plan import carried_out
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.strategies.mcts.search_state import write_subgraph
from relational_tensat.explore.strategies.mcts.tree import History
from relational_tensat.explore.subgraphs.applications import BUILT, REJECTED, WAITING
from relational_tensat.explore.subgraphs.firings import NO_RULE
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of
from tests.explore.own_egraphs import (
    assert_explained,
    assert_missing_explained,
    extras,
    own_subgraph,
    partial_keys_of,
)
from tests.explore.subgraphs.side_by_side import (
    fire,
    original,
    random_steps,
    subgraphs_of,
    universe_of,
)
from tests.run.resume.models import layers

MIXED = ("negate", "swap", "join-products", "join-sums", "twice", "same")


def assert_written_subgraphs_hold(universe: Universe, histories: list[History | None]) -> None:
    """Fail if a subgraph is not closed under children, or an e-node of one has no reason in it."""
    connection = universe.egraph.connection
    for table in ("subgraph_node", "subgraph_application"):
        connection.execute(f"DELETE FROM {table}")
    for number, history in enumerate(histories, start=1):
        write_subgraph(universe, number, original(universe), history)
    files = sorted((resource_dir("sql") / "invariants" / "subgraphs").glob("*.sql"))
    for path in files:
        assert connection.execute(path.read_text(encoding="utf-8")).fetchall() == [], path.stem


def assert_universe_holds(universe: Universe) -> None:
    """Fail if an invariant of e-graphs is broken, but for those of a cycle filter."""
    universe.subgraph.flush()
    assert_invariants(universe.egraph, "none")


@pytest.mark.parametrize("model", ["mixed", "nasrnn"])
def test_all_holds_after_every_step(model: str) -> None:
    graph, rules = (
        (mixed(), example_rules(*MIXED)) if model == "mixed" else (MODELS[model](), taso_rules())
    )
    universe = universe_of(graph, rules)
    subgraphs = subgraphs_of(universe, 3, 450)
    histories: list[History | None] = [None] * 3
    sizes = subgraphs.masks.sizes()
    for rules_of_step, fired in random_steps(subgraphs, 4, seed=1):
        for subgraph, applications in enumerate(fired.applications):
            histories[subgraph] = History(
                histories[subgraph], int(rules_of_step[subgraph]), applications
            )
        assert_written_subgraphs_hold(universe, histories)
        assert_universe_holds(universe)
        written = universe.egraph.connection.execute(
            "SELECT subgraph, list(enode ORDER BY enode) FROM subgraph_node\n"
            "GROUP BY subgraph ORDER BY subgraph"
        ).fetchall()
        assert [nodes for _, nodes in written] == [
            subgraphs.masks.members(subgraph).tolist() for subgraph in range(3)
        ]
        assert (fired.changed == (subgraphs.masks.sizes() > sizes)).all()
        sizes = subgraphs.masks.sizes()
        assert sizes.max() <= 450
    assert (sizes > len(original(universe))).all()


def test_every_application_is_there_once() -> None:
    universe = universe_of(MODELS["nasrnn"](), load_rules())
    subgraphs = subgraphs_of(universe, 16, 800)
    rules = [rules_of_step for rules_of_step, _ in random_steps(subgraphs, 4, seed=2)]
    applications = universe.applications
    kept = applications.states != REJECTED
    rows = np.hstack([applications.instances[:, None], applications.sources])[kept]
    assert len(np.unique(rows, axis=0)) == len(rows)
    built = applications.states == BUILT
    assert universe.arrays.exists[
        applications.targets[built][applications.targets[built] > 0]
    ].all()
    # No subgraph meets this limit: where one does, what fits is built in so many rounds at the most.
    fire(subgraphs_of(universe, 16, 4_000), rules[0], 1)
    again = subgraphs_of(universe, 16, 4_000)
    statements, version = universe.egraph.database.statements, universe.version
    fire(again, rules[0], 1)  # what is there is neither found nor built again
    assert (universe.egraph.database.statements, universe.version) == (statements, version)


@pytest.mark.parametrize(
    ("graph", "names", "steps"),
    [
        (mixed(), MIXED, 4),
        (sum_of(4), ("swap", "regroup"), 4),
        (separate_sums(3), ("join-sums", "swap"), 2),
        (layers(2, 3), (), 4),
    ],
)
def test_a_subgraph_has_what_an_e_graph_of_its_own_has(
    graph: Graph, names: tuple[str, ...], steps: int
) -> None:
    """But for what equalities of other subgraphs allow earlier, or make one: each such e-node is explained.

    A symmetric rule takes the class of the lower id first, and ids depend on what is built when: so here
    each takes both.
    """
    rules = [
        replace(rule, symmetric=False)
        for rule in (example_rules(*names) if names else taso_rules())
    ]
    unfiltered = ExplorationOptions(cycle_filter="none")
    universe = universe_of(graph, rules, unfiltered)
    egraph = universe.egraph
    subgraphs = subgraphs_of(universe, 6, 50_000)
    histories: list[History | None] = [None] * 6
    for rules_of_step, fired in random_steps(subgraphs, steps, seed=3):
        for subgraph, applications in enumerate(fired.applications):
            histories[subgraph] = History(
                histories[subgraph], int(rules_of_step[subgraph]), applications
            )
    assert_written_subgraphs_hold(universe, histories)
    for number, history in enumerate(histories, start=1):
        sequence = []
        while history is not None:
            sequence.append(history.rule)
            history = history.before
        own = own_subgraph(graph, universe.subgraph, unfiltered)
        for rule in reversed(sequence):
            if rule != NO_RULE:
                step(own, {rule}, StepBudget(50_000))
        own.flush()
        keys, owners, missing, _ = partial_keys_of(own.egraph, egraph)
        assert_missing_explained(own.egraph, missing, owners)
        extra = extras(egraph, number, keys)
        assert len(extra) == int(subgraphs.masks.sizes()[number - 1]) - len(keys)
        assert_explained(egraph, number, extra, owners)


def test_a_full_universe_leaves_the_subgraphs_within_it() -> None:
    universe = universe_of(MODELS["nasrnn"](), taso_rules(), ExplorationOptions(universe_limit=600))
    subgraphs = subgraphs_of(universe, 8, 2_000)
    for _ in random_steps(subgraphs, 3, seed=4):
        pass
    assert universe.is_full
    assert universe.egraph.e_nodes <= 600
    assert subgraphs.is_done.any()
    assert_universe_holds(universe)


def test_rules_are_matched_once_on_what_is_built_at_once() -> None:
    """Multi-pattern rules and others are built apart, but nothing is matched in between."""
    universe = universe_of(layers(2, 3), taso_rules())
    subgraphs_of(universe, 1, 50_000)
    applications = universe.applications
    places = np.flatnonzero(applications.states == WAITING).astype(np.int32)
    patterns = [len(universe.subgraph.rules.rule(r).patterns) for r in applications.rules[places]]
    assert set(patterns) == {1, 2}

    def counts() -> dict[str, int]:
        spent = universe.egraph.database.stopwatch.spent().statements
        return {name: entry.count for (_, name), entry in spent.items()}

    before = counts()
    carried_out(universe.build)(places, 1)
    added = {name: count - before.get(name, 0) for name, count in counts().items()}
    assert (added["subgraphs/nodes"], added["head_edges"]) == (2, 1)
