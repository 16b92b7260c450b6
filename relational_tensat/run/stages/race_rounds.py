"""The cheapest graphs that differ race whole against the original; costs are corrected, and again.

A race says how far costs are off. They are corrected, and the cheapest graph is extracted again from the
same e-graph. If it has been timed, the choice holds; else it races, with the others that have not been
timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from relational_tensat.base.plan import Plan
from relational_tensat.base.runner import undisturbed
from relational_tensat.cost import CostSource, Device, ask_for_graph, graph_cost_us
from relational_tensat.cost.earlier_runs import PROBING
from relational_tensat.cost.key import graph_configurations
from relational_tensat.cost.race import LEAST_HEATS, SHORT_BUDGET_S, RaceResult, heat_rounds
from relational_tensat.cost.source import Race
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.extract.tables import TableProblem, extraction_problem, forget_costs
from relational_tensat.run.end_to_end import RaceClock, TimedTask, inputs_to_time
from relational_tensat.run.reports import NOT_RACED_ON, Contender, RaceReport, RaceRound
from relational_tensat.run.stages.contenders import (
    Contestant,
    TimedGraphs,
    candidates,
    costed_by_now,
    fixed_share,
    with_candidate,
)
from relational_tensat.run.stages.extract import extract_again, without_kept
from relational_tensat.run.stages.heats import (
    IN_LAST_HEATS,
    Heats,
    NotRacedError,
    RaceTask,
    TooSlowError,
    first_heats_s,
    run_race,
    too_slow,
)
from relational_tensat.run.stages.race_memory import candidate_of, remember
from relational_tensat.run.values import CachedChoice, ExtractedRun, LoadedRun
from relational_tensat.tensor import Graph

#: More graphs are never raced at once: the order of what is alike is never clear.
_MOST_GRAPHS = 6
#: More races are never run.
_MOST_ROUNDS = 4
#: The share of a race's time to find the graphs.
_FINDING = 0.25
#: The share of what is left that a race may take after which costs may be others.
_OF_THE_REST = 0.7
#: In fewer seconds nothing is found out that was not known before.
_LEAST_RACE_S = 10.0
#: Each graph that is to race is extracted within so many seconds.
_EXTRACTION_S = 2.0
#: To extract again takes so many seconds in any case.
_LEAST_EXTRACTION_S = 2.0
#: No race begins with a smaller share of the time.
_TOO_LITTLE = 0.1


_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


def race_in_rounds(
    extracted: ExtractedRun,
    device: Device,
    budget_s: float,
    *,
    is_total: bool = False,
    has_others: bool = True,
    is_short: bool = False,
) -> Plan[ExtractedRun]:
    """Choose the graph that is fastest whole, among the original and those that raced.

    Args:
        has_others: whether other graphs than the chosen one take part.
        is_short: nothing is raced of which too few heats fit into ``SHORT_BUDGET_S``.
        is_total: earlier runs of the same hash have spent a part of the budget; when it is spent, the
            fastest of those that raced then is chosen.

    Raises:
        InputError: there are no values that graphs could be run on, or the cache cannot be used.
        KeyboardInterrupt: Ctrl-C before anything was known.
        NotRacedError: the device cannot run one.
    """
    loaded, run, settled = extracted.loaded, extracted.loaded.run, extracted.start.settled
    if is_short:
        _check_modelled(loaded)
    timed = TimedGraphs.of(loaded, device)
    if settled is not None:
        with run.phases.phase("whole"):
            return (yield from _settled_before(extracted, settled, timed))
    clock = RaceClock(budget_s - (timed.seconds_before if is_total else 0.0))
    learns = loaded.cost.is_lazy and extracted.explored.extractor.chose_latest
    most_graphs = _MOST_GRAPHS if has_others else 1
    is_ended = True
    try:
        for number in range(1, _MOST_ROUNDS + 1):
            lap = RaceClock(clock.left_s * (_OF_THE_REST if learns else 1.0), within=clock)
            with run.phases.phase("whole"):
                has_raced = yield from _race(
                    extracted, device, timed, lap, number, most_graphs, is_short=is_short
                )
            timed.spent(lap.passed_s if has_raced else 0.0)
            if not (has_raced and learns and loaded.cost.renew()):
                break
            extracted = yield from _extracted_again(extracted, clock)
            if extracted.is_unchanged or run.watch.happened or clock.is_over(1 - _TOO_LITTLE):
                break
    except KeyboardInterrupt:
        if not timed.winners:
            raise
        # Costs may be others than those that were extracted by: nothing is proven.
        extraction = replace(extracted.extraction, bound_us=0.0, gap=1.0, optimal=False)
        extracted = replace(extracted, extraction=extraction).noting(NOT_RACED_ON)
        is_ended = False
    if not timed.winners:
        return extracted
    with run.phases.phase("whole"):
        concluded, winner = yield from _concluded(extracted, timed)
        has_held = extracted.is_unchanged or timed.hash_of(extracted.chosen) in timed.known
        # runs that repeat this one have what time is left; where a faster graph is known they need none
        is_enough = has_held or (is_total and not concluded.is_unchanged)
        if is_enough and is_ended and loaded.run_hash and not run.watch.happened:
            remember(loaded, timed, winner, has_held=has_held)
    return concluded


def _settled_before(
    extracted: ExtractedRun, settled: CachedChoice, timed: TimedGraphs
) -> Plan[ExtractedRun]:
    """Choose what a run has chosen that this repeats, without a race."""
    loaded = extracted.loaded
    table = extraction_problem(loaded.egraph, loaded.cost, CostSource.about)
    candidate = candidate_of(loaded, table, settled)
    if candidate is None:
        raise NotRacedError("the choice of the run before is not in the e-graph")
    timed.candidates[settled.digest] = candidate
    is_costlier = settled.is_costlier
    return (
        yield from _with_winner(extracted, table, timed, settled.digest, is_costlier=is_costlier)
    )


def _race(
    extracted: ExtractedRun,
    device: Device,
    timed: TimedGraphs,
    clock: RaceClock,
    number: int,
    most_graphs: int,
    *,
    is_short: bool,
) -> Plan[bool]:
    """Race what is not timed yet of the cheapest graphs; return whether there was any.

    There is none if one that won is among them, and the cheapest by the sums and by the profile have been
    timed, or the time is over.
    """
    loaded = extracted.loaded
    least_s = timed_before = None
    if is_short and timed.hash_of(extracted.graph) not in timed.known:
        # before others are extracted, which would be in vain
        least_s, timed_before = _first_heats(extracted, device, timed, clock)
    table = extraction_problem(loaded.egraph, loaded.cost, CostSource.about)
    finding = RaceClock(clock.budget_s if is_short else max(clock.budget_s, _LEAST_RACE_S))
    limit_s = min(_EXTRACTION_S, _FINDING / 2 * clock.budget_s) if is_short else _EXTRACTION_S
    found = yield from candidates(
        extracted,
        table,
        lambda found: len(found) >= most_graphs or _is_enough(timed, found),
        lambda: finding.is_over(_FINDING),
        limit_s,
    )
    found = [each for each in found if timed.meet(each) != timed.original]
    others = [each for each in found if timed.hash_of(each.graph) not in timed.known]
    decisive = [each for each in others if each is found[0] or each.is_by_profile]
    if not found or (timed.winners and (not decisive or clock.budget_s < _LEAST_RACE_S)):
        return False
    for each in others or found:  # what it is run by is known then
        yield partial(loaded.cost.as_timed, each.graph)
    raced, result = _heats_of(loaded, device, others or found, clock, least_s, timed_before)
    timed.add(raced, result, number)
    graphs = [_contender(timed, timed.hash_of(each.graph), each) for each in raced]
    final = result.final
    loaded.run.phases.progress.raced(RaceRound(number, graphs, result.winner - 1, final))
    loaded.cost.learn_races((yield from _outcomes(loaded, timed, raced, result)))
    return True


def _first_heats(
    extracted: ExtractedRun, device: Device, timed: TimedGraphs, clock: RaceClock
) -> tuple[float, TimedTask]:
    """Return how long as few heats take as say something, and what was run for that.

    Raises:
        NotRacedError: too few heats fit into ``SHORT_BUDGET_S``, or did not on an idle machine before.
    """
    loaded = extracted.loaded
    of_both = " ".join((timed.original, timed.hash_of(extracted.graph), timed.setting))
    is_asked = not loaded.run.options.costs.race_again
    known_s = timed.before.seconds(of_both, PROBING) if is_asked else 0.0
    if known_s > SHORT_BUDGET_S:
        raise NotRacedError(too_slow(known_s))
    heats = _heats(loaded, device, [loaded.original, extracted.graph], clock)
    try:
        return _undisturbed(loaded, clock, first_heats_s, heats), heats.timed
    except TooSlowError as error:
        if is_asked and (idle_s := error.idle_s(loaded.cost.n_threads)) > SHORT_BUDGET_S:
            timed.before.add_seconds(of_both, PROBING, idle_s)
        raise


def _is_enough(timed: TimedGraphs, found: Sequence[Contestant]) -> bool:
    """Whether no more graphs are wanted, as it is known already who wins."""
    is_known = {each: timed.meet(each) in (*timed.known, timed.original) for each in found}
    are_known = all(is_known[each] for each in found if each is found[0] or each.is_by_profile)
    return are_known and timed.is_settled


def _heats_of(
    loaded: LoadedRun,
    device: Device,
    found: Sequence[Contestant],
    clock: RaceClock,
    least_s: float | None,
    before: TimedTask | None,
) -> tuple[Sequence[Contestant], RaceResult]:
    """Race graphs, as many as there is time for; return these, and the result.

    Args:
        least_s: of ``RaceTask``.
        before: of which some were run.
    """
    graphs = [loaded.original, *(candidate.graph for candidate in found)]
    at_least = 1 + any(each.is_by_profile for each in found[1:])
    task = RaceTask(_heats(loaded, device, graphs, clock, before), least_s, at_least)
    result = _undisturbed(loaded, clock, run_race, task)
    return found[: len(result.standings)], result


def _undisturbed(
    loaded: LoadedRun, clock: RaceClock, compute: Callable[[_Task], _Answer], task: _Task
) -> _Answer:
    """Time something where nothing disturbs it; to wait for that counts for nothing."""
    answer, waited_s = undisturbed(compute, task)
    clock.skip(waited_s)
    loaded.run.phases.skip("whole", waited_s)
    return answer


def _check_modelled(loaded: LoadedRun) -> None:
    """Check that heats of the original are not sure to take too long, before one is run.

    Raises:
        NotRacedError: they are, by its costs.
    """
    round_s = IN_LAST_HEATS * graph_cost_us(loaded.original, loaded.cost) / 1e6
    least_s = LEAST_HEATS * round_s * (1 + heat_rounds(round_s))  # one warms up
    if least_s > SHORT_BUDGET_S:
        raise NotRacedError(too_slow(least_s))


def _heats(
    loaded: LoadedRun,
    device: Device,
    graphs: Sequence[Graph],
    clock: RaceClock,
    before: TimedTask | None = None,
) -> Heats:
    """Return heats of graphs, some of which may have been run before.

    Raises:
        InputError: there are no values that they could be run on.
    """
    as_timed = tuple(map(loaded.cost.as_timed, graphs))
    if before is not None:
        return Heats(replace(before, graphs=as_timed), clock.budget_s, clock.passed_s)
    seed = loaded.run.options.process.seed
    inputs = inputs_to_time(loaded.original, loaded.inputs, seed)
    task = TimedTask(device, device.key, as_timed, inputs, seed)
    return Heats(task, clock.budget_s, clock.passed_s)


def _outcomes(
    loaded: LoadedRun, timed: TimedGraphs, raced: Sequence[Contestant], result: RaceResult
) -> Plan[list[Race]]:
    """Return what a race said of each graph."""
    before = list(graph_configurations(loaded.cost.as_run(loaded.original)))
    source = loaded.model.source
    name = source.name if isinstance(source, Graph) else Path(source).name
    races = []
    for number, (candidate, standing) in enumerate(zip(raced, result.standings, strict=True), 1):
        known = result.final if number == result.winner else standing
        kernels = yield partial(loaded.cost.as_run, candidate.graph)
        after = list(graph_configurations(kernels))
        model = f"{name}: {timed.original[:16]} to {timed.hash_of(candidate.graph)[:16]}"
        races.append(Race(model, before, after, known.speedup, known.error))
    return races


def _extracted_again(extracted: ExtractedRun, clock: RaceClock) -> Plan[ExtractedRun]:
    """Extract by costs that are others now, within what is left of the time, or a little."""
    loaded = extracted.loaded
    forget_costs(loaded.egraph)
    yield partial(loaded.cost.as_run, loaded.original)
    ask_for_graph(loaded.cost, loaded.original)
    limits = loaded.run.options.extraction
    limit_s = min(limits.time_limit_s, max(clock.left_s, _LEAST_EXTRACTION_S))
    limits = replace(limits, time_limit_s=limit_s)
    again: ExtractedRun = yield partial(
        extract_again, extracted, start=extracted.start, limits=limits
    )
    return replace(again, notes=extracted.notes)


def _concluded(extracted: ExtractedRun, timed: TimedGraphs) -> Plan[tuple[ExtractedRun, str]]:
    """Choose the fastest of those that won a race, or the original; return the hash of the former, too.

    One that costs more than the original has to be faster beyond the noise.
    """
    loaded = extracted.loaded
    table = extraction_problem(loaded.egraph, loaded.cost, CostSource.about)
    most_us = loaded.original_us * (1 + COST_TOLERANCE)
    costed = costed_by_now(table, [timed.candidates[each] for each in timed.winners])
    costlier = {
        digest
        for digest, each in zip(timed.winners, costed, strict=True)
        if each.found.cost_us > most_us
    }
    eligible = [
        each
        for each in timed.winners
        if each not in costlier or timed.known[each].standing.is_faster
    ]
    winner = (eligible or timed.winners)[0]
    is_costlier = winner in costlier
    own = yield from _with_winner(extracted, table, timed, winner, is_costlier=is_costlier)
    return own, winner


def _with_winner(
    extracted: ExtractedRun,
    table: TableProblem,
    timed: TimedGraphs,
    winner: str,
    *,
    is_costlier: bool,
) -> Plan[ExtractedRun]:
    """Choose the fastest, or the original where it is not known to be as fast; report on all.

    Args:
        winner: hash of its graph.
        is_costlier: it costs more than the original.
    """
    loaded, original_us = extracted.loaded, extracted.loaded.original_us
    costed = costed_by_now(table, list(timed.candidates.values()))
    by_digest = dict(zip(timed.candidates, costed, strict=True))
    order = sorted(by_digest, key=lambda digest: by_digest[digest].found.cost_us)
    known = timed.known[winner]
    report = RaceReport(
        original_us,
        [_contender(timed, digest, by_digest[digest]) for digest in order],
        order.index(winner),
        known.standing,
        known.noise,
        fixed_share(table, original_us),
        is_dearer=is_costlier,
        rounds=max(timed.round_of.values(), default=0),
        timed_before="" if winner in timed.round_of else known.date,
        is_remembered=extracted.start.settled is not None,
    )
    if report.keeps_original:
        loss = f"raced whole, {report.outcome}: the original is kept"
        loaded.egraph.database.run("run/set_kept_original", why=loss)
        return replace(extracted.keeping_original(), race=report).noting(loss)
    extracted = yield partial(with_candidate, extracted, table, by_digest[winner])
    yield partial(loaded.cost.as_run, extracted.chosen)  # what it costs is known then
    notes = without_kept(extracted.notes)  # it is faster, whatever they say by the sums
    return replace(extracted, race=report, raced=extracted.chosen, notes=notes)


def _contender(timed: TimedGraphs, digest: str, candidate: Contestant) -> Contender:
    return Contender(
        candidate.without,
        candidate.found.cost_us,
        timed.known[digest].standing,
        timed.round_of.get(digest, 0),
        candidate.is_by_profile,
    )
