"""The search: the e-graph is explored, and the cheapest graph comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relational_tensat.cost import CostSource, ask_for_graph
from relational_tensat.explore.outcome import Observer
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.explore.strategies.strategy import SearchSettings, Strategy
from relational_tensat.extract.anytime.kept import cheapest_by_profile
from relational_tensat.extract.cost_table import forget_costs
from relational_tensat.extract.tables import chosen_graph, extraction_problem, rules_of_chosen
from relational_tensat.rules.targets.as_written import as_written
from relational_tensat.run.progress import write_course
from relational_tensat.run.stages.choice import recall
from relational_tensat.run.state import RunState
from relational_tensat.verify.sensitivity import behind_integers

#: Of values that stay as they were; a note counts the others.
_NAMES_SHOWN = 4


def explore(state: RunState) -> RunState:
    """Grow the e-graph by the rules, or worlds of it, until nothing is left to do or a limit is reached."""
    stopwatch, phases = state.egraph.database.stopwatch, state.phases
    options, extractor = state.options, state.extractor
    observer = Observer(
        progress=phases.progress.iteration, after=extractor.after, watch=state.watch
    )
    search = SearchSettings(
        options.exploration, extractor, observer, options.process.seed, options.tree
    )
    with phases.phase("explore"), stopwatch.phase("explore"):
        strategy: Strategy = STRATEGIES[options.exploration.search]
        exploration = strategy(state.egraph, state.rules, search)
    phases.move(state.extractor.spent_s, source="explore", target="extract")
    return replace(state, exploration=exploration)


def _begun(state: RunState) -> RunState:
    """Return the state with what extraction begins from where costs are measured.

    That is the choice of a run before, or the cheapest graph by the profile, which is measured first.
    """
    if state.settled is None and state.by_profile is None:
        settled = recall(state)
        options, watch = state.options, state.extractor.watch
        by_profile = None
        if not settled:
            by_profile = cheapest_by_profile(
                state.egraph, state.cost, options.extraction, options.process, watch
            )
        state = replace(state, settled=settled, by_profile=by_profile)
    if state.settled is not None:
        state.extractor.note(state.settled.seed, state.exploration.iterations)
    return state


def _with_steps_as_they_were(state: RunState, names: Sequence[str]) -> RunState:
    """Extract no e-node any more that a rule made of what some values are computed from.

    Args:
        names: of results of steps, which outputs of integers depend on.
    """
    made = state.egraph.database.run("run/keep_as_it_was", names=list(names))
    shown = ", ".join(map(repr, names[:_NAMES_SHOWN]))
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    note = f"as it was, as outputs of integers depend on it: all up to {shown}{more}"
    has_note = note in state.notes or not any(by_rule for (by_rule,) in made)
    return state.with_fresh_extractor().noting("" if has_note else note)


def extract(state: RunState) -> RunState:
    """Extract the cheapest graph; once more, where what was measured in between changes estimates.

    What outputs of integers are computed from up to a step of floats, such as a floor, stays as it was.
    """
    egraph = state.egraph
    if names := behind_integers(state.original):
        state = _with_steps_as_they_were(state, names)
    stopwatch = egraph.database.stopwatch
    with state.phases.phase("extract"), stopwatch.phase("extract"):
        extraction_problem(egraph, state.cost, CostSource.at_least)  # what is known is looked up
        if state.cost.renew():
            forget_costs(egraph)
        state = _begun(state)
        extraction = state.extractor.finish(state.exploration.iterations)
        if state.extractor.is_of_last and state.settled is None and state.cost.renew():
            forget_costs(egraph)
            state = replace(state, extractions=tuple(state.extractor.log)).with_fresh_extractor()
            extraction = state.extractor.finish(state.exploration.iterations)
        extracted = as_written(chosen_graph(egraph), state.original)
        e_nodes, e_classes = egraph.counts()
        rules_used = rules_of_chosen(egraph)
    time_spent = stopwatch.spent()
    write_course(egraph.database, state.recording, time_spent)
    state.attention.close()
    with state.phases.phase("price"):
        ask_for_graph(state.cost, extracted)
    return replace(
        state,
        extracted=extracted,
        extraction=extraction,
        extractions=tuple(state.extractor.log),
        rules_used=rules_used,
        e_nodes=e_nodes,
        e_classes=e_classes,
        time_spent=time_spent,
    )
