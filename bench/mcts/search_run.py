"""One measured tree search, beside saturation at the same limit of e-nodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from bench.common.reference import join_ms
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.explore.strategies.mcts.deciding import explore_tree
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.models import MODELS
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Silent


@dataclass(frozen=True, slots=True)
class TreeRun:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        planning_cpu_s: CPU seconds until the last decision: what the paper counts.
        all_cpu_s: with the final extractions from two worlds and from the universe.
        world_us, rollout_us: cheapest graph, by ILP, of the real world and of the cheapest of any rollout;
            infinite where the time limit kept them from being extracted from.
        universe_us: of all worlds together.
        saturation_us: of an e-graph of the same limit, the best of k_multi 1 and 2.
        join_ms: how fast the machine was just before (``bench.common.reference``).
    """

    model: str
    seed: int
    decisions: int
    rollouts: int
    stop_reason: str
    planning_cpu_s: float
    all_cpu_s: float
    before_us: float
    world_us: float
    rollout_us: float
    universe_us: float
    saturation_us: float
    e_nodes: int
    rules: tuple[str, ...]
    join_ms: float


def measure(
    model: str,
    seed: int,
    limits: ExplorationOptions,
    tree_options: TreeOptions,
    extraction_options: ExtractionOptions,
    rules: Sequence[Rule],
    profile: Profile,
) -> TreeRun:
    """Search one model with one thread.

    Args:
        limits: of the worlds, and (``world_nodes``) of saturation.
    """
    saturation_us = min(
        _saturated_us(model, k_multi, limits, extraction_options, rules, profile)
        for k_multi in (1, 2)
    )
    reference_ms, started = join_ms(), time.process_time()
    planned_s = [0.0]
    with closing(EGraph.create(MODELS[model]())) as egraph:
        extractor = _extractor(egraph, extraction_options, profile)
        observer = Observer(lambda _: planned_s.append(time.process_time() - started))
        exploration = explore_tree(
            egraph, rules, limits, tree_options, extractor, seed=seed, observer=observer
        )
        extraction = extractor.finish(exploration.iterations)
        costs_us = {world.kind: world.best_us for world in exploration.worlds}
        return TreeRun(
            model,
            seed,
            len(exploration.decisions),
            sum(decision.rollouts for decision in exploration.decisions),
            exploration.stop_reason,
            planned_s[-1],
            time.process_time() - started,
            extractor.original_us,
            costs_us.get("decision", float("inf")),
            costs_us.get("rollout", costs_us.get("decision", float("inf"))),
            extraction.cost_us,
            saturation_us,
            egraph.e_nodes,
            tuple(decision.rule for decision in exploration.decisions),
            reference_ms,
        )


def _saturated_us(
    model: str,
    k_multi: int,
    limits: ExplorationOptions,
    extraction_options: ExtractionOptions,
    rules: Sequence[Rule],
    profile: Profile,
) -> float:
    options = ExplorationOptions(multi_iterations=k_multi, node_limit=limits.world_nodes)
    with closing(EGraph.create(MODELS[model]())) as egraph:
        explore(egraph, rules, options)
        return _extractor(egraph, extraction_options, profile).finish(1).cost_us


def _extractor(egraph: EGraph, options: ExtractionOptions, profile: Profile) -> AnytimeExtractor:
    return AnytimeExtractor(egraph, profile, options, ProcessOptions(), Silent())
