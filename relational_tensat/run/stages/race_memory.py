"""The choice that races ended with, remembered for runs that repeat this one: they race no more.

A run repeats another one if model, rules, backend, search, costs and inputs are the same, and the device.
"""

from __future__ import annotations

import json

from relational_tensat.cost import CostSource
from relational_tensat.cost.earlier_runs import SettledChoice
from relational_tensat.explore.members import Seed
from relational_tensat.extract.families import FamilyChoice
from relational_tensat.extract.kept_choice import find_choice, text_of_choice
from relational_tensat.extract.problem import dag_cost_us
from relational_tensat.extract.tables import (
    TableProblem,
    choice_of,
    enodes_in_order,
    extraction_problem,
)
from relational_tensat.run.stages.contenders import Contestant, TimedGraphs, graph_of
from relational_tensat.run.values import CachedChoice, ExploredRun, LoadedRun

#: Costs are others by now if a choice costs so much more or less beside the original than when it was made.
_OTHER_COSTS = 0.05


def recall(explored: ExploredRun) -> CachedChoice | None:
    """Return the choice of an earlier run that this one repeats; None if there is none, or its costs were
    others.

    It returns None, too, if something else is asked for: new races, no races, more measuring, or more
    seconds of races than were enough.

    Raises:
        InputError: the cache cannot be used.
    """
    loaded = explored.loaded
    costs, device = loaded.run.options.costs, loaded.cost.device
    is_repeated = not (costs.race_again or explored.refused)
    is_raced = costs.end_to_end and costs.budget_s != 0 and costs.measure_time_limit_s is None
    if device is None or not (loaded.run_hash and is_repeated and is_raced):
        return None
    timed = TimedGraphs.of(loaded, device)
    saved = timed.before.settled(loaded.run_hash, timed.setting)
    if saved is None or saved.graph not in timed.known:
        return None
    if costs.budget_s is not None and not saved.has_held:
        return None
    return _in_egraph(loaded, saved)


def remember(loaded: LoadedRun, timed: TimedGraphs, winner: str, *, has_held: bool) -> None:
    """Remember who won the races of a run.

    Args:
        winner: hash of its graph.
        has_held: there was nothing left to race; else the time was over.
    """
    table = extraction_problem(loaded.egraph, loaded.cost, CostSource.about)
    candidate = timed.candidates[winner]
    enodes = enodes_in_order(table, candidate.found.choice)
    text = json.dumps(
        {
            "without": candidate.without,
            "is_by_profile": candidate.is_by_profile,
            "enodes": text_of_choice(loaded.egraph, enodes),
        }
    )
    ratio = dag_cost_us(table.problem, candidate.found.choice) / loaded.original_us
    saved = SettledChoice(winner, text, ratio > 1.0, ratio, has_held)
    timed.before.settle(loaded.run_hash, timed.setting, saved)


def candidate_of(
    loaded: LoadedRun, table: TableProblem, settled: CachedChoice
) -> Contestant | None:
    """Return a choice of before as a candidate; None where it is not in the problem."""
    choice = choice_of(table, settled.seed.enodes)
    if choice is None:
        return None
    found = FamilyChoice(choice, dag_cost_us(table.problem, choice), frozenset(), frozenset())
    graph = graph_of(loaded, table, choice)
    return Contestant(graph, found, settled.without, settled.is_by_profile)


def _in_egraph(loaded: LoadedRun, saved: SettledChoice) -> CachedChoice | None:
    """Return a choice as the e-graph of a run has it."""
    content = json.loads(saved.choice)
    enodes = find_choice(loaded.egraph, content["enodes"])
    if enodes is None:
        return None
    table = extraction_problem(loaded.egraph, loaded.cost, CostSource.about)
    choice = choice_of(table, enodes)
    if choice is None:
        return None
    cost_us = dag_cost_us(table.problem, choice)
    ratio = cost_us / loaded.original_us
    if abs(ratio / saved.cost_ratio - 1) > _OTHER_COSTS:
        return None
    return CachedChoice(
        saved.graph,
        Seed(cost_us, enodes),
        tuple(content["without"]),
        content["is_by_profile"],
        saved.is_dearer,
    )
