"""A run: its stages in order, each a function from the run's state to the next, and the result of it all.

``STAGES`` says what a run does. One that is resumed begins with another first stage, which opens the
database, and continues with ``explore``.

An inference takes more time than its kernels. A file with dynamic dimensions computes shapes at inference
that its graph has as constants. How many nodes are left of that, onnxruntime knows: it folds, merges and
removes some of them before it runs any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from relational_tensat.base.outputs import (
    DefaultOutput,
    check_database,
    check_options,
    check_page,
)
from relational_tensat.cost import CostModel, costs_by_kind_us, graph_cost_us
from relational_tensat.extract import relative_gap
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.formats.frontend import MODEL
from relational_tensat.run.options import Options
from relational_tensat.run.progress import Progress, Silent
from relational_tensat.run.reports import FusionReport, fusion_report
from relational_tensat.run.result import ExtractionSummary, Result
from relational_tensat.run.stages.choice import choose
from relational_tensat.run.stages.exploration import explore, extract
from relational_tensat.run.stages.fusion import fuse
from relational_tensat.run.stages.load import load, share
from relational_tensat.run.stages.race import run_race
from relational_tensat.run.stages.result_file import time, write
from relational_tensat.run.stages.verdict import verify
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.verify.runtime import optimized_graph, runtime_errors
from relational_tensat.view.document import RunTables

if TYPE_CHECKING:
    import onnx


class BesideKernels(NamedTuple):
    """What the original and the result take beside kernels, in microseconds, and what is not in it."""

    before_us: float
    after_us: float
    note: str = ""


def beside_kernels(state: RunState, values: int) -> BesideKernels:
    """Return what an inference takes beside kernels, before and after; 0 where costs do not tell.

    Args:
        values: how many inputs and outputs the model has.
    """
    run_us = state.cost.run_us(values)
    if not run_us or state.dynamic is None:
        return BesideKernels(run_us, run_us)
    model = state.dynamic
    try:
        with state.phases.phase("price"):
            before = after = count_size_nodes(model.frame, model.data)
            if state.sized is not None and not state.copies_file:
                after = count_size_nodes(*state.sized.file)
    except runtime_errors() as error:
        reason = " ".join(str(error).split())
        note = f"what computes sizes is in no time: onnxruntime does not take the graph: {reason}"
        return BesideKernels(run_us, run_us, note)
    return BesideKernels(state.cost.run_us(values, before), state.cost.run_us(values, after))


def count_size_nodes(model: onnx.ModelProto, large: Iterable[str]) -> int:
    """Count the nodes that compute sizes in what onnxruntime makes of a model.

    Args:
        model: a skeleton.
        large: the weights that have a placeholder in it.

    Raises:
        Exception: one of ``runtime_errors``.
    """
    from relational_tensat.formats.onnx_external import with_weights_as_inputs
    from relational_tensat.formats.onnx_sizes import size_nodes

    skeleton = with_weights_as_inputs(model, large).SerializeToString()
    return len(size_nodes(optimized_graph(skeleton)))


#: Tables in memory are kept with a result up to so many e-nodes: what is explored by default, some 20 MB.
MOST_KEPT_ENODES = 50_000


def show(state: RunState) -> RunState:
    """Write the page of the run, if it was requested."""
    target = state.options.output.view
    if target is None or state.tables is None:
        return state
    page = state.tables.page()
    page.save(target)
    no_film = page.data.no_film
    return state.noting(f"the page has no steps: {no_film}" if no_film else "")


def kept_tables(state: RunState) -> RunTables | None:
    """Return the tables that stay with the result; None for those in memory that are too large."""
    tables = state.tables
    is_large = state.e_nodes > MOST_KEPT_ENODES
    return None if tables is not None and tables.memory is not None and is_large else tables


def save_for_machine(state: RunState) -> RunState:
    """Save the result for this machine, if that was requested: see ``machine_file``."""
    if not state.options.output.this_machine:
        return state
    from relational_tensat.run.stages import machine_file  # few runs need it

    return machine_file.save_for_machine(state)


Stage: TypeAlias = Callable[[RunState], RunState]

STAGES: tuple[Stage, ...] = (
    load,  # model, rules and inputs are read
    share,  # equal weights become one, and the graph goes into the database
    explore,  # the e-graph grows by the rules
    fuse,  # with the option fuse: kernels for parts of the model join it
    extract,  # the cheapest graph comes out
    choose,  # between that and the original, by their costs
    run_race,  # where graphs are timed here: the fastest of the cheapest that differ, or the original
    verify,  # the chosen graph computes what the original computes
    time,  # where costs are measured here: the chosen graph is no slower end to end
    save_for_machine,  # with the option this_machine: the result as onnxruntime saves it, if it is faster
    write,  # the result goes into its file
    show,  # with the option view: the page of it all
)


def optimize(
    model: Graph | str | Path,
    options: Options | None = None,
    *,
    output: str | Path | DefaultOutput | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the cheapest graph that computes the same as ``model``, and prove both.

    Args:
        model: a graph, or the path of a ``.json`` or ``.onnx`` model.
        options: rules, limits, extractor, cost profile, …; see ``Options``.
        output: where the optimized model is written, ``.json`` or ``.onnx``; None writes nothing.
        cost_model: one's own source of costs, instead of the one in ``options``.
        progress: every step is reported to it.

    Returns:
        The graph, its cost before and after, and how it was found. It never costs more than the
        original: where nothing cheaper is found, or what was found is slower whole on the device that
        costs are measured on, computes something else, or could not be compared, the original is
        returned.

    Raises:
        UsageError: a rule, profile, dimension or input does not exist, or a path is unusable.
        InputError: the model, a rule file, a profile or an input file cannot be used.
        VerificationError: with the option ``strict``, the optimized graph computes something else;
            nothing is written.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
        MissingDependencyError: the device that costs are to be measured on is not here.
        KeyboardInterrupt: Ctrl-C while measuring; what was measured is kept, as its text says.
    """
    options = options or Options()
    _check_paths(options, model, output)
    check_database(options.output.db, force=options.output.force)
    check_page(options.output.view)
    state = RunState.begin(options, model, output, cost_model, progress or Silent())
    return carry_out(state, STAGES)


def resume(
    db: str | Path,
    model: Graph | str | Path | None = None,
    *,
    output: str | Path | DefaultOutput | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Result:
    """Go on with a run that had the option ``db``, whether its process ended or was killed.

    The e-graph that is in the database is explored further, by the run's own options but for changes, all
    limits of time and of iterations counted from now on. The result costs no more than the cheapest graph
    that was known then.

    Args:
        db: the run's database.
        model: where the run's model is now, if not where it was, or the graph that it was.
        output: where the optimized model is written; None writes nothing. Where the run was to write
            it, or anything else, does not count: a database may be from anybody.
        cost_model: the run's own source of costs, if it had one.
        progress: every step is reported to it.
        changes: options that are not the run's: those of exploration, also another ``search``, of tree
            search and of extraction, ``memory_limit``, ``threads``, and all that name a place to write.

    Raises:
        UsageError, InputError, VerificationError, NoSolutionError, UnsoundRuleError: as ``optimize``.
        InputError: also, ``db`` is no run's database, another process is using it, the run was killed
            before its e-graph was there, or its model, or the file that its costs are from, has changed.
    """
    from relational_tensat.run import resume as resuming  # most runs are no others' continuation

    stored = resuming.read_run(Path(db))
    options = stored.options(**changes)
    stored.check_costs(own=cost_model is not None)
    _check_paths(options, model, output)
    check_page(options.output.view)
    state = RunState.begin(options, stored.path, output, cost_model, progress or Silent())
    opened = partial(resuming.restore, stored, model)
    return carry_out(state, (opened, *STAGES[STAGES.index(explore) :]))


def _check_paths(
    options: Options,
    model: Graph | str | Path | None,
    output: str | Path | DefaultOutput | None,
) -> None:
    """Check that nothing is written over what is read, over another output, or over another kind of file.

    Raises:
        UsageError: a file would be lost.
    """
    place = output.path if isinstance(output, DefaultOutput) else output
    check_options(
        options,
        [] if place is None else [(Path(place), MODEL)],
        [Path(model)] if isinstance(model, str | Path) else [],
    )


def carry_out(state: RunState, stages: Sequence[Stage]) -> Result:
    """Go through stages in order; return what they brought. What they have opened is closed at last."""
    with state.files, state.resources, state.attention:
        for stage in stages:
            state = stage(state)
    return _result(state)


def _result(state: RunState) -> Result:
    cost, extraction, exploration = state.cost, state.extraction, state.exploration
    before = graph_cost_us(state.extracted if state.has_same_file else state.priced, cost)
    after = before if state.copies_file else graph_cost_us(state.chosen, cost)
    bound = min(extraction.bound_us, after)
    is_bettered = state.is_unchanged and extraction.cost_us < before * (1 - COST_TOLERANCE)
    optimal = extraction.optimal and not (state.keeps_original or is_bettered)
    has_all = exploration.is_exhaustive and not state.rejections and not state.n_left_out
    original, graph = state.graph, state.folded
    if state.dynamic is not None:
        from relational_tensat.run.dynamic import as_constants  # few models need it

        original, graph = (as_constants(g, state.dynamic) for g in (original, graph))
    beside = beside_kernels(state, len(original.inputs) + len(original.outputs))
    return Result(
        model=state.source.name if isinstance(state.source, Graph) else str(state.source),
        graph=graph,
        original=original,
        runs_on=state.runs_on,
        cost_profile=cost.name,
        cost_before_us=before,
        cost_after_us=after,
        run_us=beside.before_us,
        run_after_us=beside.after_us,
        bound_us=bound,
        gap=relative_gap(after, bound),
        optimal=optimal,
        exhaustive=optimal and has_all,
        extractor=extraction.method,
        e_nodes=state.e_nodes,
        e_classes=state.e_classes,
        iterations=exploration.iterations,
        statements=exploration.statements,
        stop_reason=exploration.stop_reason,
        rules=exploration.rules,
        rules_used={} if state.is_unchanged else state.rules_used,
        log=exploration.log,
        worlds=exploration.worlds,
        decisions=exploration.decisions,
        extraction=ExtractionSummary.of(extraction),
        extractions=state.extractions,
        time_spent=state.time_spent,
        fusion=_fusion(state),
        seconds=state.phases.seconds | {"measure": cost.measuring_s, "total": state.phases.total_s},
        verification=state.verification,
        output=state.target,
        notes=state.noting(extraction.note, *cost.notes, beside.note).notes,
        resumed_after=state.resumed_after,
        untrusted_rules=state.untrusted,
        costs=cost.counts,
        kernels_us=_kernels_us(state),
        lists_kernels=cost.gives_kernels or cost.counts.are_found_out,
        whole=state.whole,
        race=state.race,
        machine=state.machine,
        unchanged=state.is_unchanged,
        rejections=state.rejections,
        change=state.change,
        tables=kept_tables(state),
    )


def _kernels_us(state: RunState) -> dict[str, tuple[float, float]]:
    """Return what kernels cost in the original and in the result, by operator, the costliest first."""
    before = costs_by_kind_us(state.priced, state.cost)
    after = before if state.copies_file else costs_by_kind_us(state.chosen, state.cost)
    both = {op: (before.get(op, 0.0), after.get(op, 0.0)) for op in {**before, **after}}
    return dict(sorted(both.items(), key=lambda item: (-max(item[1]), item[0])))


def _fusion(state: RunState) -> FusionReport | None:
    if not state.options.fusion.fuse:
        return None
    return fusion_report(state.fused_parts, state.kernels, state.chosen, state.cost)
