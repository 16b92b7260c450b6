"""The choice is timed: the cheapest graphs that differ against the original, whole; the fastest is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.cost import CostSource, Device, Unmeasurable, graph_cost_us, open_device
from relational_tensat.cost.configurations import graph_configurations
from relational_tensat.cost.race import LEAST_HEATS, Heat, RaceResult, race
from relational_tensat.cost.source import Race
from relational_tensat.extract.tables import TableProblem, extraction_problem
from relational_tensat.run.end_to_end import inputs_to_time, with_drawn_weights
from relational_tensat.run.race_report import Contender, RaceReport
from relational_tensat.run.stages.contenders import (
    Candidate,
    candidates,
    fixed_share,
    with_candidate,
)
from relational_tensat.run.stages.fusing import has_kernels
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.verify.quantized import is_quantized

#: With measured costs, so many seconds unless the options say.
DEFAULT_BUDGET_S = 60.0
#: With modelled costs, of quantized models.
_QUANTIZED_BUDGET_S = 20.0
#: More graphs are never raced: the order of what is alike is never clear.
_MOST_GRAPHS = 6
#: Shares of the time: to find the graphs; and for the first heats, which all of them are in.
_FINDING = 0.25
_FIRST_HEATS = 0.5


class _NotRacedError(Exception):
    """A heat cannot be run; says why."""


def run_race(state: RunState) -> RunState:
    """Choose the graph that is fastest whole, among the original and the cheapest that differ.

    That is done where costs are measured here, or seconds for it are given, and a graph other than the
    original was chosen; of quantized models for onnxruntime always, where that is installed. Ctrl-C ends
    it: then the cheapest graph stays chosen.
    """
    budget_s = _budget_s(state)
    if not budget_s or state.is_unchanged:
        return state
    if has_kernels(state):
        return state.noting("not raced: onnxruntime runs kernels by their plain operators")
    try:
        device = _device(state)
        if device is None:
            return state
        with state.phases.phase("whole"):
            return _raced(state, device, budget_s)
    except KeyboardInterrupt:
        return state.noting("not raced: interrupted")
    except MissingDependencyError as error:
        if state.options.costs.budget_s is not None:
            raise
        return state.noting(f"not raced: {error}")
    except (InputError, _NotRacedError) as error:
        return state.noting(f"not raced: {error}")


def _raced(state: RunState, device: Device, budget_s: float) -> RunState:
    is_over = _clock(budget_s)
    table = extraction_problem(state.egraph, state.cost, CostSource.about)
    found = candidates(state, table, _MOST_GRAPHS, lambda: is_over(_FINDING))
    if not found:
        return state
    heat = _heats(state, device, [state.original, *(candidate.graph for candidate in found)])
    start_s = time.perf_counter()
    heat([0, 1, 0])  # counts for nothing: libraries are loaded, memory is taken
    graph_s = (time.perf_counter() - start_s) / 3
    fitting = int(_FIRST_HEATS * budget_s / (LEAST_HEATS * graph_s)) - 2
    found = found[: max(1, fitting)]
    result = race(heat, len(found), is_over)
    report = _report(state, table, found, result)
    state.cost.learn_races(_outcomes(state, found, result))
    if not result.is_won:
        loss = f"raced whole, {report.outcome}: the original is kept"
        state.egraph.database.run("run/set_kept_original", why=loss)
        return replace(state, chosen=state.original, race=report).noting(loss)
    winner = found[result.winner - 1]
    state = with_candidate(state, table, winner)
    return replace(state, race=report, raced=state.chosen)


def _clock(budget_s: float) -> Callable[[float], bool]:
    start_s = time.perf_counter()
    return lambda share: time.perf_counter() - start_s > share * budget_s


def _device(state: RunState) -> Device | None:
    """Return what graphs are run on: what costs are measured on, or what the target is."""
    costs = state.options.costs
    if not costs.end_to_end:
        return None
    if state.cost.device is None and state.options.rules.target == "onnxruntime":
        return open_device("cpu")
    return state.cost.device


def _budget_s(state: RunState) -> float:
    """Return how long graphs may race.

    Costs of a profile do not tell how fast kernels on integers are: a model of which only a part runs on
    other integers than before may be slower. So what such costs choose of a quantized model is timed.
    """
    given_s = state.options.costs.budget_s
    if given_s is not None:
        return given_s
    if state.cost.device is not None:
        return DEFAULT_BUDGET_S
    is_for_runtime = state.options.rules.target == "onnxruntime"
    return _QUANTIZED_BUDGET_S if is_for_runtime and is_quantized(state.original) else 0.0


def _heats(state: RunState, device: Device, graphs: Sequence[Graph]) -> Heat:
    """Return what runs heats of graphs.

    Raises:
        InputError: there are no values that they could be run on.
    """
    seed = state.options.process.seed
    inputs = inputs_to_time(state.original, state.inputs, seed)
    drawn = [with_drawn_weights(graph, seed) for graph in graphs]
    seeds: Iterator[int] = count(seed)

    def heat(numbers: Sequence[int]) -> Sequence[float]:
        ratios = device.heat([drawn[number] for number in numbers], inputs, next(seeds))
        if isinstance(ratios, Unmeasurable):
            raise _NotRacedError(ratios.reason)
        return ratios

    return heat


def _outcomes(state: RunState, found: Sequence[Candidate], result: RaceResult) -> list[Race]:
    """Return what a race said of each graph."""
    before = list(graph_configurations(state.cost.as_run(state.original)))
    model = state.source.name if isinstance(state.source, Graph) else Path(state.source).name
    races = []
    for number, (candidate, standing) in enumerate(zip(found, result.standings, strict=True), 1):
        known = result.final if number == result.winner else standing
        after = list(graph_configurations(state.cost.as_run(candidate.graph)))
        races.append(Race(model, before, after, known.speedup, known.error))
    return races


def _report(
    state: RunState, table: TableProblem, found: Sequence[Candidate], result: RaceResult
) -> RaceReport:
    contenders = [
        Contender(candidate.without, candidate.found.cost_us, standing)
        for candidate, standing in zip(found, result.standings, strict=True)
    ]
    original_us = graph_cost_us(state.original, state.cost)
    return RaceReport(
        original_us,
        contenders,
        result.winner - 1,
        result.final,
        result.noise,
        fixed_share(table, original_us),
    )
