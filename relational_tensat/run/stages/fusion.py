"""With the option ``fuse``: kernels for parts of the model, as e-nodes, costs, and files.

They come after exploration: its e-graph is the one that it would be without, so that no result is slower
than without; and parts of the cheapest graph so far, and of others of it, can have kernels, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import check_folder
from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.explore import RuleStats
from relational_tensat.explore.step import apply_further
from relational_tensat.extract import ExtractionOptions
from relational_tensat.run.state import RunState

if TYPE_CHECKING:
    from relational_tensat.extract.varied_graphs import VariedGraphs
    from relational_tensat.mugraph.fusion.candidates import Version
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.mugraph.regions.regions import RegionRow

#: Of the first graph beside the model whose parts kernels are sought for: any cheap one will do.
_EXTRACTION = ExtractionOptions(time_limit_s=10.0)
#: Where kernels were measured as C.
_AS_PLAIN = "costs are of kernels in C; the file has them as local functions of plain operators"

_NOT_DRAWN = "no graph whose parts kernels were sought for has this e-node"
_NOT_YET_DRAWN = "the time was over before a graph with this e-node was drawn"


def check_fusing(state: RunState) -> RunState:
    """Check that kernels can be had, if they are wanted; from now on, costs can be theirs.

    Raises:
        UsageError: costs are measured on a GPU: no kernels are there yet; or there is a target, whose
            kernels are others; or sizes are dynamic, and kernels are for fixed ones; or there is a folder
            for kernels that cannot be, or none are wanted.
        MissingDependencyError: they are measured on the processor, and there is no C compiler.
    """
    options = state.options.fusion
    if not options.fuse:
        if options.kernels is not None:
            raise UsageError("--kernels goes with --fuse")
        if options.torch:
            raise UsageError("kernels-torch goes with --fuse and --kernels")
        return state
    if options.torch and options.kernels is None:
        raise UsageError("kernels-torch goes with --kernels")
    if state.cost.device is not None:
        _check_measured(state.cost.device.key.kind)
    if state.options.rules.target is not None:
        raise UsageError("--fuse goes without --target: a target has kernels of its own")
    if state.stays_dynamic:
        raise UsageError(
            "--fuse makes kernels for fixed sizes, and the model has dynamic dimensions: give --static"
        )
    check_folder(options.kernels)
    from relational_tensat.mugraph.fusion.own_kernel import KernelCosts  # few runs need it

    costs = KernelCosts(state.cost)
    return replace(state, cost=costs, kernel_costs=costs)


def _check_measured(kind: str) -> None:
    """Check that kernels can be measured on a kind of device.

    Raises:
        UsageError: they cannot.
        MissingDependencyError: there is no C compiler.
    """
    if kind != "cpu":
        raise UsageError(
            f"--fuse goes with modelled costs, or with --cost cpu: on {kind} no kernels are measured yet"
        )
    from relational_tensat.mugraph.kernels.emit_c import compiler

    compiler()


def fuse(state: RunState) -> RunState:
    """Find kernels for parts of the model and of graphs of its e-graph, and add their e-nodes.

    Ctrl-C ends it with those found so far. Kernels that a resumed run had found are not sought again.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types.
    """
    if not state.options.fusion.fuse or state.has_fused:
        return state
    if state.watch.happened or state.exploration.stop_reason == "interrupted":
        return state.noting("no kernels were sought: the run was interrupted before")
    with state.phases.phase("fuse"), state.egraph.database.stopwatch.phase("fuse"):
        if not state.kernels:
            state = _with_kernels(state)
        return _with_e_nodes(state)


def _with_kernels(state: RunState) -> RunState:
    """Search kernels."""
    from relational_tensat.mugraph.candidate_cache import CandidateCache
    from relational_tensat.mugraph.fusion.kernel_fusion import own_kernels
    from relational_tensat.mugraph.fusion.savings import profile_of
    from relational_tensat.mugraph.search.search_options import SearchOptions

    options = state.options.fusion
    search = SearchOptions(
        max_operators=options.most_operators,
        max_kernels=options.most_kernels,
        libraries=False,  # beside an e-node, they are other e-nodes
        time_limit_s=options.time_limit_s,
        seed=state.options.process.seed,
    )
    watch = Watch()  # of its own: what Ctrl-C ends here is not the run
    assert state.kernel_costs is not None
    costs = state.kernel_costs.operators
    from relational_tensat.extract.varied_graphs import VariedGraphs  # few runs need it

    varied = VariedGraphs(state.egraph, state.cost, _EXTRACTION)
    with watch.watching():
        sought = own_kernels(
            _rounds(state, varied), costs, search, watch, state.phases.progress.region,
            CandidateCache.of_user(),
        )  # fmt: skip
    why = "Ctrl-C" if watch.happened else "fuse-time-limit"
    note = f"{why} ended the search of kernels after {sought.parts} of {sought.total} parts of the model"
    state = replace(state, kernels=sought.kernels, fused_parts=sought.parts)
    has_all = profile_of(costs) is not None
    left = _left(varied, sought.is_complete) if has_all else ()
    database = state.egraph.database
    database.execute("DELETE FROM fused_region", name="fuse/regions")  # of a run that was killed
    database.append("fused_region", [row.values() for row in (*sought.regions, *left)])
    return state.noting(note if sought.parts < sought.total else "")


def _rounds(state: RunState, varied: VariedGraphs) -> Iterator[list[Version]]:
    """Yield the model with the cheapest graph, and then other graphs of the e-graph, one at a time."""
    from relational_tensat.mugraph.fusion.candidates import Version, with_numbers

    names = state.egraph.database.run("egraph/value_names")
    classes = {str(name): int(class_id) for class_id, name, _, _ in names}
    graphs = varied.graphs()
    cheapest = next(graphs)
    yield [
        Version(state.original, "model", classes),
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


def _with_e_nodes(state: RunState) -> RunState:
    """Apply the kernels' rules, and remember the kernels in the database: both, or none."""
    from relational_tensat.mugraph.fusion.own_kernel import rows_of

    assert state.kernel_costs is not None
    skipped = state.options.rules.skip
    rules = [r for kernel in state.kernels for r in kernel.rules if r.name not in skipped]
    if not rules:
        return state
    masks = {name: own for kernel in state.kernels for name, own in kernel.masks.items()}
    exploration, egraph = state.exploration, state.egraph
    try:
        with egraph.transaction():
            further = apply_further(egraph, rules, state.options.exploration, masks)
            egraph.database.append("fused_kernel", list(rows_of(state.kernels)))
    except (Interrupted, OutOfMemory) as error:
        return replace(state, kernels=()).noting(f"no kernels are used: {error}")
    state.kernel_costs.learn(state.kernels)
    state.phases.progress.iteration(further.report)
    exploration = replace(
        exploration,
        iterations=further.report.iteration,
        rules={**exploration.rules, **further.rules},
        log=(*exploration.log, further.report),
        statements=exploration.statements + further.report.statements,
    )
    return replace(state, exploration=exploration).noting(_unplaced(state.kernels, further.rules))


def _unplaced(kernels: Sequence[OwnKernel], rules: Mapping[str, RuleStats]) -> str:
    """Return how many kernels no rule has put into the e-graph; "" for none.

    Each was found for operators that are there. A rule leaves some out: what has extreme constants as
    operands that the kernel was not tested with, what would close a cycle.
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


def write_kernels(state: RunState) -> RunState:
    """Write the kernels that the chosen graph has, if there is a folder for them.

    Raises:
        InputError: nothing can be written there.
    """
    folder, costs = state.options.fusion.kernels, state.kernel_costs
    is_measured = costs is not None and costs.is_measured and has_kernels(state)
    if folder is None:
        if not is_measured:
            return state
        return state.noting(f"{_AS_PLAIN}; give --kernels DIR to have them in C")
    from relational_tensat.mugraph.fusion import kernel_files  # few runs need it

    has_torch = state.options.fusion.torch
    count = kernel_files.write_kernels(state.kernels, state.chosen, folder, has_torch=has_torch)
    if is_measured:
        state = state.noting(f"{_AS_PLAIN}; in C they run by relational_tensat.kernels.load")
    modelled = ", modelled, not timed" if count and not is_measured else ""
    return state.noting(f"kernels in {folder}: {count}{modelled}")


def has_kernels(state: RunState) -> bool:
    """Whether the chosen graph has kernels of the model's own."""
    return any(node.op == "fused" for node in state.chosen.nodes)
