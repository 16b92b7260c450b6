"""Rollouts a second, by how many subgraphs are side by side, in an empty and in a full universe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from bench.models import MODELS
from relational_tensat.base.plan import carried_out
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.rollouts import Simulator
from relational_tensat.explore.strategies.mcts.search_state import first_state
from relational_tensat.explore.strategies.mcts.tree import TreeNode
from relational_tensat.explore.subgraph import begin_subgraph
from relational_tensat.explore.subgraphs.node_costs import SignatureCosts
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Silent


@dataclass(frozen=True, slots=True)
class Rate:
    """What was measured, in CPU seconds of this process.

    Attributes:
        subgraphs: rollouts side by side, from the original graph.
        state: ``cold`` (nothing is built) or ``warm`` (as many rollouts were there before).
        simulation_s, reward_s: of all of them.
        evaluated: subgraphs that a reward was found for, one for each step.
        built: applications that are built by then.
    """

    model: str
    subgraphs: int
    state: str
    simulation_s: float
    reward_s: float
    evaluated: int
    built: int


def measure_rates(
    model: str, subgraphs: int, limits: ExplorationOptions, rules: Sequence[Rule], profile: Profile
) -> list[Rate]:
    """Roll out from the original graph, twice in one universe."""
    rates = []
    with closing(EGraph.create(MODELS[model]())) as egraph:
        extractor = AnytimeExtractor(
            egraph, profile, ExtractionOptions(), ProcessOptions(), Silent()
        )
        universe = Universe(begin_subgraph(egraph, rules, limits))
        universe.find()
        prices = SignatureCosts(egraph.catalogue, extractor.prices_us)
        rewards = Rewards(universe, extractor, "moves", prices)
        search = first_state(universe.original(), rewards, seed=0)
        simulator = Simulator(
            universe, TreeOptions(), limits.first_subgraph_nodes(), rewards, search
        )
        root = search.root
        for state in ("cold", "warm"):
            live = sorted(carried_out(simulator.live_rules)(universe.arrays.became[root.members]))
            nodes = [
                TreeNode(1, root, int(rule), root.members)
                for rule in search.rng.choice(live, subgraphs)
            ]
            started = time.process_time()
            rollouts = carried_out(simulator.run)(nodes, 1, 1)
            simulated = time.process_time()
            rewards.evaluate(rollouts)
            ended = time.process_time()
            evaluated = sum(len(rollout.costs_us) - 1 for rollout in rollouts if rollout.graph)
            built = int((universe.applications.states == 1).sum())
            rates.append(
                Rate(
                    model,
                    subgraphs,
                    state,
                    simulated - started,
                    ended - simulated,
                    evaluated,
                    built,
                )
            )
    return rates
