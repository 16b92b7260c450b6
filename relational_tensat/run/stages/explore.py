"""The second stage: the e-graph grows by the rules, or subgraphs of it; with the option ``fuse``, kernels
for parts of the model join it.

Kernels come after exploration. Its e-graph is the one that it would be without, so that no result is slower
than without; and parts of the cheapest graph so far, and of others of it, can have kernels, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import check_folder
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.explore import RuleStats
from relational_tensat.explore.outcome import Observer
from relational_tensat.explore.step import apply_further
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.explore.strategies.strategy import SearchSettings, Strategy
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.run.options import Options, fuses_what_is_written
from relational_tensat.run.values import ExploredRun, LoadedRun, Model, Refused

if TYPE_CHECKING:
    from relational_tensat.extract.families import VariedGraphs
    from relational_tensat.mugraph.fusion.candidates import Version
    from relational_tensat.mugraph.fusion.own_kernel import KernelCosts, OwnKernel
    from relational_tensat.mugraph.regions.regions import RegionRow

#: Of the first graph beside the model whose parts kernels are sought for: any cheap one will do.
_EXTRACTION = ExtractionOptions(time_limit_s=10.0)

_NOT_DRAWN = "no graph whose parts kernels were sought for has this e-node"
_NOT_YET_DRAWN = "the time was over before a graph with this e-node was drawn"


def explore(loaded: LoadedRun, before: ExploredRun | None = None) -> ExploredRun:
    """Grow the e-graph by the rules until nothing is left to do or a limit is reached; add kernels.

    Args:
        before: of the same model with a rule that was at fault: its kernels are not sought again.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types.
    """
    extractor = extractor_of(loaded)
    if loaded.resumed_after is not None and before is None:
        extractor.go_on()
    run, egraph, rules = loaded.run, loaded.egraph, loaded.rules
    progress = run.phases.progress
    observer = Observer(progress=progress.iteration, after=extractor.after, watch=run.watch)
    search = SearchSettings(
        run.options.exploration, extractor, observer, run.options.process.seed, run.options.tree
    )
    with run.phases.phase("explore"), egraph.database.stopwatch.phase("explore"):
        strategy: Strategy = STRATEGIES[run.options.exploration.search]
        exploration = strategy(egraph, rules, search)
    run.phases.move(extractor.spent_s, source="explore", target="extract")
    explored = ExploredRun(loaded, exploration, extractor, loaded.notes, loaded.kernels)
    if before is not None:
        refused = Refused(before.refused.rejections, before.refused.n_left_out)
        explored = replace(
            explored, notes=before.notes, kernels=before.kernels,
            fused_parts=before.fused_parts, refused=refused,
        )  # fmt: skip
    if loaded.kernel_costs is None or loaded.kernels:
        return explored
    if run.watch.happened or exploration.stop_reason == "interrupted":
        return explored.noting("no kernels were sought: the run was interrupted before")
    with run.phases.phase("fuse"), egraph.database.stopwatch.phase("fuse"):
        return _with_e_nodes(explored if explored.kernels else _with_kernels(explored))


def extractor_of(
    loaded: LoadedRun,
    log: Sequence[ExtractionEntry] = (),
    options: ExtractionOptions | None = None,
) -> AnytimeExtractor:
    """Return an extractor that knows of no graph so far.

    Args:
        log: the outcomes of earlier extractions.
        options: of extraction, if not the run's.
    """
    run = loaded.run
    extractor = AnytimeExtractor(
        loaded.egraph,
        loaded.cost,
        options or run.options.extraction,
        run.options.process,
        run.phases.progress,
        run.watch,
        is_patient=not run.options.exploration.ends_early,
    )
    extractor.log += log
    return extractor


def with_kernel_costs(options: Options, model: Model, cost: CostSource) -> KernelCosts | None:
    """Return costs that can be kernels', if kernels are wanted and can be had.

    Raises:
        UsageError: costs are measured on a GPU, where no kernels are there yet; the backend is not
            onnxruntime; sizes are dynamic, and kernels are for fixed ones; or the folder for kernels cannot
            be one, or none are wanted.
        MissingDependencyError: they are measured on the processor, and there is no C compiler.
    """
    fusion = options.fusion
    if not fusion.fuse:
        if fusion.kernels is not None:
            raise UsageError("--kernels goes with --fuse")
        if fusion.torch:
            raise UsageError("kernels-torch goes with --fuse and --kernels")
        return None
    if fusion.torch and fusion.kernels is None:
        raise UsageError("kernels-torch goes with --kernels")
    if cost.device is not None and not fuses_what_is_written(options):
        kind = cost.device.key.kind
        if kind != "cpu":
            raise UsageError(
                "--fuse goes with modelled costs, or with --cost cpu: "
                f"on {kind} no kernels are measured yet"
            )
        from relational_tensat.mugraph.kernels.emit_c import compiler

        compiler()
    if options.rules.backend is not None and not fuses_what_is_written(options):
        raise UsageError("--fuse goes without --backend: a backend has kernels of its own")
    if model.stays_dynamic and (fusion.kernels is not None or not fuses_what_is_written(options)):
        what = "--fuse" if fusion.kernels is None else "--kernels"
        raise UsageError(
            f"{what} makes kernels for fixed sizes, and the model has dynamic dimensions: give --static"
        )
    check_folder(fusion.kernels)
    if fuses_what_is_written(options):
        return None
    from relational_tensat.mugraph.fusion.own_kernel import KernelCosts  # few runs need it

    return KernelCosts(cost)


def _with_kernels(explored: ExploredRun) -> ExploredRun:
    """Search kernels for parts of the model and of graphs of its e-graph; Ctrl-C ends it with those."""
    from relational_tensat.mugraph.candidate_cache import CandidateCache
    from relational_tensat.mugraph.fusion.kernel_fusion import own_kernels
    from relational_tensat.mugraph.fusion.savings import profile_of
    from relational_tensat.mugraph.search.search_options import SearchOptions

    loaded, run = explored.loaded, explored.loaded.run
    options = run.options.fusion
    search = SearchOptions(
        max_operators=options.most_operators,
        max_kernels=options.most_kernels,
        libraries=False,  # beside an e-node, they are other e-nodes
        time_limit_s=options.time_limit_s,
        seed=run.options.process.seed,
    )
    watch = Watch()  # of its own: what Ctrl-C ends here is not the run
    assert loaded.kernel_costs is not None
    costs = loaded.kernel_costs.operators
    from relational_tensat.extract.families import VariedGraphs  # few runs need it

    varied = VariedGraphs(loaded.egraph, loaded.cost, _EXTRACTION)
    with watch.watching():
        sought = own_kernels(
            _rounds(loaded, varied), costs, search, watch, run.phases.progress.region,
            CandidateCache.of_user(),
        )  # fmt: skip
    why = "Ctrl-C" if watch.happened else "fuse-time-limit"
    note = f"{why} ended the search of kernels after {sought.parts} of {sought.total} parts of the model"
    has_all = profile_of(costs) is not None
    left = _left(varied, sought.is_complete) if has_all else ()
    database = loaded.egraph.database
    database.execute("DELETE FROM fused_region", name="fuse/regions")  # of a run that was killed
    database.append("fused_region", [row.values() for row in (*sought.regions, *left)])
    explored = replace(explored, kernels=sought.kernels, fused_parts=sought.parts)
    return explored.noting(note if sought.parts < sought.total else "")


def _rounds(loaded: LoadedRun, varied: VariedGraphs) -> Iterator[list[Version]]:
    """Yield the model with the cheapest graph, and then other graphs of the e-graph, one at a time."""
    from relational_tensat.mugraph.fusion.candidates import Version, with_numbers

    names = loaded.egraph.database.run("egraph/value_names")
    classes = {str(name): int(class_id) for class_id, name, _, _ in names}
    graphs = varied.graphs()
    cheapest = next(graphs)
    yield [
        Version(loaded.original, "model", classes),
        Version(with_numbers(cheapest.graph), "cheapest", cheapest.classes),
    ]
    for other in graphs:
        yield [Version(with_numbers(other.graph), "other", other.classes)]


def _left(varied: VariedGraphs, is_complete: bool) -> Iterator[RegionRow]:
    """Yield the e-nodes that no graph had whose parts kernels were sought for."""
    from relational_tensat.mugraph.regions.regions import RegionRow

    fate, reason = ("left out", _NOT_DRAWN) if is_complete else ("no time", _NOT_YET_DRAWN)
    for class_id, op in varied.left():
        yield RegionRow("other", (f"class {class_id}",), (op,), fate, reason)


def _with_e_nodes(explored: ExploredRun) -> ExploredRun:
    """Apply the kernels' rules, and remember the kernels in the database: both, or none."""
    from relational_tensat.mugraph.fusion.own_kernel import rows_of

    loaded, kernels = explored.loaded, explored.kernels
    assert loaded.kernel_costs is not None
    options = loaded.run.options
    skipped = options.rules.skip
    rules = [r for kernel in kernels for r in kernel.rules if r.name not in skipped]
    if not rules:
        return explored
    masks = {name: own for kernel in kernels for name, own in kernel.masks.items()}
    exploration, egraph = explored.exploration, loaded.egraph
    try:
        with egraph.transaction():
            further = apply_further(egraph, rules, options.exploration, masks)
            egraph.database.append("fused_kernel", list(rows_of(kernels)))
    except (Interrupted, OutOfMemory) as error:
        return replace(explored, kernels=()).noting(f"no kernels are used: {error}")
    loaded.kernel_costs.learn(kernels)
    loaded.run.phases.progress.iteration(further.report)
    exploration = replace(
        exploration,
        iterations=further.report.iteration,
        rules={**exploration.rules, **further.rules},
        log=(*exploration.log, further.report),
        statements=exploration.statements + further.report.statements,
    )
    return replace(explored, exploration=exploration).noting(_unplaced(kernels, further.rules))


def _unplaced(kernels: Sequence[OwnKernel], rules: Mapping[str, RuleStats]) -> str:
    """Return how many kernels no rule has put into the e-graph; "" for none.

    Each was found for operators that are there. A rule leaves some out: extreme constants as operands that
    the kernel was not tested with, and applications that would close a cycle.
    """
    tried = [kernel for kernel in kernels if any(rule.name in rules for rule in kernel.rules)]
    placed = [
        kernel
        for kernel in tried
        if any(rule.name in rules and rules[rule.name].applied for rule in kernel.rules)
    ]
    count = len(tried) - len(placed)
    if not count:
        return ""
    return (
        f"{count} of {len(tried)} kernels have no place in the e-graph: their operators have constants "
        "beyond what kernels are tested with, or they would close cycles"
    )
