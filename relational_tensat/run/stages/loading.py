"""The first stages: model and rules are read, and the graph goes into the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relational_tensat.base.paths import check_output
from relational_tensat.cost import ask_for_graph
from relational_tensat.egraph import EGraph
from relational_tensat.explore.schedule import parse_schedule
from relational_tensat.explore.schedule.rulesets import check_rulesets
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.gate import check_trust
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.tensor.sharing import share_equal_weights
from relational_tensat.verify.real_inputs import load_inputs


def load(state: RunState) -> RunState:
    """Read the model, the rules and the inputs, and check where the result is to go."""
    state = replace(state, graph=read_model(state, state.source))
    return check_plan(replace(state, rules=read_rules(state)))


def share(state: RunState) -> RunState:
    """Let equal weights be one, and put the graph into the database."""
    state = share_weights(state)
    options = state.options
    with state.phases.phase("explore"):
        egraph = EGraph.create(state.original, options.output.db, options.process)
    state = state.with_egraph(egraph)
    if options.output.db is not None:
        _record(state)
    return state


def read_model(state: RunState, source: Graph | str | Path) -> Graph:
    """Return a graph that was given, or read it from its file."""
    if isinstance(source, Graph):
        return source
    with state.phases.phase("load"):
        return load_model(Path(source), dict(state.options.model.dims))


def read_rules(state: RunState) -> list[Rule]:
    """Read the rules that the options name."""
    with state.phases.phase("load"):
        options = state.options.rules
        rules = load_rules(options.files or None, options.only, options.skip)
        if schedule := state.options.exploration.schedule:
            check_rulesets(parse_schedule(schedule), rules)
        return rules


def check_plan(state: RunState) -> RunState:
    """Check where the result goes, read the inputs to verify with, and reject unsound rules."""
    target = check_output(state.output, state.source)
    inputs = load_inputs(state.graph, state.options.verification.inputs)
    with state.phases.phase("load"):
        untrusted = _check_rules(state)
    return replace(state, target=target, inputs=inputs, untrusted=untrusted)


def share_weights(state: RunState) -> RunState:
    """Let equal weights be one; all that the graph costs is measured now, if it is measured at all."""
    original = share_equal_weights(state.graph)
    state.cost.suit(original)
    ask_for_graph(state.cost, state.graph)
    return replace(state, original=original)


def _check_rules(state: RunState) -> Mapping[str, str]:
    """Reject unsound rules, or note why some are not known to be sound, if that is allowed."""

    def verify(rules: Sequence[Rule]) -> list[Verdict]:
        from relational_tensat.rules.soundness import verify_rules

        state.phases.progress.phase("verify rules")
        return verify_rules(rules, shrink=False)

    allow_unsound = state.options.rules.allow_unsound
    return check_trust(state.rules, allow_unsound=allow_unsound, verify=verify).untrusted


def _record(state: RunState) -> None:
    """Write what another process would need to resume the run."""
    from relational_tensat.run.resume.record import RunRecord, write_record  # few runs need it

    record = RunRecord.of(
        state.options, state.source, state.graph, state.target, own_costs=state.has_own_costs
    )
    write_record(state.egraph.database, record)
