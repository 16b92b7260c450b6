"""The first stage of a run that is resumed: its state comes from its database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from relational_tensat.run.resume.stored import StoredRun
from relational_tensat.run.stages.fusing import check_fusing
from relational_tensat.run.stages.loading import (
    check_plan,
    on_target,
    open_model,
    read_rules,
    share_weights,
)
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph


def restore(stored: StoredRun, model: Graph | str | Path | None, state: RunState) -> RunState:
    """Open what another process left: the model, the e-graph, the cheapest graph so far, kernels.

    Args:
        model: where it is now, if not where it was, or the graph that it was.

    Raises:
        InputError: the model has changed, or another process uses the database.
    """
    opened = state

    def read(path: Path) -> Graph:
        nonlocal opened
        opened = on_target(open_model(state, path))
        return opened.graph

    found_model = stored.find_model(model, read)
    state = replace(
        opened if found_model.graph is opened.graph else state,
        source=found_model.model,
        graph=found_model.graph,
    )
    state = check_fusing(state)
    if stored.kernel_rows:
        state = replace(state, kernels=tuple(stored.kernels()), has_fused=True)
        assert state.kernel_costs is not None
        state.kernel_costs.learn(state.kernels)
    state = share_weights(check_plan(replace(state, rules=read_rules(state))))
    with state.phases.phase("explore"):
        egraph = stored.open(state.original, state.options)
    note = f"resumed after iteration {stored.iteration}"
    state = state.with_egraph(egraph).noting(note, found_model.note)
    state.extractor.go_on()
    return replace(state, resumed_after=stored.iteration)
