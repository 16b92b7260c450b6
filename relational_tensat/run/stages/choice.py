"""Which graph is returned: the extracted one, unless the original is as cheap.

The choice is remembered once races have ended: a run that repeats another one (the same model, rules,
target, search, costs and inputs, on the same device) begins extraction from it, and races no more.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.cost import CostModel, CostSource, graph_cost_us
from relational_tensat.explore.members import Seed
from relational_tensat.extract.problem import COST_TOLERANCE, dag_cost_us
from relational_tensat.extract.tables import (
    TableProblem,
    choice_of,
    enodes_in_order,
    extraction_problem,
)
from relational_tensat.run.state import RunState, Settled
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops

if TYPE_CHECKING:
    from relational_tensat.cost.earlier_runs import SettledChoice
    from relational_tensat.run.stages.contenders import Contestant, TimedGraphs

#: Costs are others by now if a choice costs so much more or less beside the original than when it was made.
_OTHER_COSTS = 0.05


def recall(state: RunState) -> Settled | None:
    """Return what a run that this repeats has chosen; None where there is none, or its costs were others.

    There is none either where something else is asked for: races again, or none, more measuring, more time
    of races than was enough.

    Raises:
        InputError: the cache cannot be used.
    """
    costs, device = state.options.costs, state.cost.device
    is_repeated = not (costs.race_again or state.rejections or state.n_left_out)
    is_raced = costs.end_to_end and costs.budget_s != 0 and costs.measure_time_limit_s is None
    if device is None or not (state.run and is_repeated and is_raced):
        return None
    from relational_tensat.run.stages.contenders import TimedGraphs  # not all runs race

    timed = TimedGraphs.of(state, device)
    saved = timed.before.settled(state.run, timed.setting)
    if saved is None or saved.graph not in timed.known:
        return None
    if costs.budget_s is not None and not saved.has_held:
        return None
    return _in_egraph(state, saved)


def remember(state: RunState, timed: TimedGraphs, winner: str, *, has_held: bool) -> None:
    """Remember who won the races of a run.

    Args:
        winner: hash of its graph.
        has_held: there was nothing left to race; else the time was over.
    """
    from relational_tensat.cost.earlier_runs import SettledChoice
    from relational_tensat.extract.written_choice import text_of_choice

    table = extraction_problem(state.egraph, state.cost, CostSource.about)
    candidate = timed.candidates[winner]
    enodes = enodes_in_order(table, candidate.found.choice)
    text = json.dumps(
        {
            "without": candidate.without,
            "is_by_profile": candidate.is_by_profile,
            "enodes": text_of_choice(state.egraph, enodes),
        }
    )
    ratio = dag_cost_us(table.problem, candidate.found.choice) / graph_cost_us(
        state.original, state.cost
    )
    saved = SettledChoice(winner, text, ratio > 1.0, ratio, has_held)
    timed.before.settle(state.run, timed.setting, saved)


def candidate_of(state: RunState, table: TableProblem, settled: Settled) -> Contestant | None:
    """Return a choice of before as a candidate; None where it is not in the problem."""
    from relational_tensat.extract.families import FamilyChoice
    from relational_tensat.run.stages.contenders import Contestant, graph_of

    choice = choice_of(table, settled.seed.enodes)
    if choice is None:
        return None
    found = FamilyChoice(choice, dag_cost_us(table.problem, choice), frozenset(), frozenset())
    graph = graph_of(state, table, choice)
    return Contestant(graph, found, settled.without, settled.is_by_profile)


def _in_egraph(state: RunState, saved: SettledChoice) -> Settled | None:
    """Return a choice as the e-graph of a run has it."""
    from relational_tensat.extract.written_choice import find_choice

    content = json.loads(saved.choice)
    enodes = find_choice(state.egraph, content["enodes"])
    if enodes is None:
        return None
    table = extraction_problem(state.egraph, state.cost, CostSource.about)
    choice = choice_of(table, enodes)
    if choice is None:
        return None
    cost_us = dag_cost_us(table.problem, choice)
    ratio = cost_us / graph_cost_us(state.original, state.cost)
    if abs(ratio / saved.cost_ratio - 1) > _OTHER_COSTS:
        return None
    return Settled(
        saved.graph,
        Seed(cost_us, enodes),
        tuple(content["without"]),
        content["is_by_profile"],
        saved.is_dearer,
    )


#: How notes end that the original is returned.
_KEPT = ": the original is kept"


def choose(state: RunState) -> RunState:
    """Choose between original and extracted graph, by their costs, unless only one may be returned."""
    if state.returns_original:
        return replace(state, chosen=state.original)
    graph, note = _cheaper(state.original, state.extracted, state.cost)
    return replace(state, chosen=graph).noting(note)


def choose_other(state: RunState, graph: Graph) -> RunState:
    """Choose a graph that is faster than the original, whatever notes say by the sums."""
    notes = tuple(note for note in state.notes if not note.endswith(_KEPT))
    return replace(state, chosen=graph, notes=notes)


def _cheaper(original: Graph, extracted: Graph, cost: CostModel) -> tuple[Graph, str]:
    """Return the extracted graph unless the original is as good, and a note about it."""
    original_us, extracted_us = graph_cost_us(original, cost), graph_cost_us(extracted, cost)
    if extracted_us < original_us * (1 - COST_TOLERANCE):
        return extracted, ""
    if extracted_us > original_us * (1 + COST_TOLERANCE):
        return original, (
            f"the extracted graph costs {extracted_us:.3f} µs, more than the original's "
            f"{original_us:.3f}{_KEPT}"
        )
    n_before = sum(count_inference_ops(original).values())
    if sum(count_inference_ops(extracted).values()) < n_before:
        return extracted, ""
    return original, f"no cheaper graph was found{_KEPT}"
