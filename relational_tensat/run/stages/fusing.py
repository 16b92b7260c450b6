"""With the option ``fuse``: kernels for parts of the model, as rules, costs, and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.paths import check_folder
from relational_tensat.base.watch import Watch
from relational_tensat.run.state import RunState

if TYPE_CHECKING:
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.mugraph.fusion.region_report import RegionReport

#: Of the kernels that are sought: more than one would be two e-nodes.
_MOST_KERNELS = 1


def fuse(state: RunState) -> RunState:
    """Find kernels for parts of the model, if that is wanted; Ctrl-C ends it with those found so far.

    Raises:
        UsageError: costs are measured: no device here runs such kernels; or there is a target, whose
            kernels are others; or there is a folder for kernels, and none are wanted.
    """
    options = state.options.fusion
    if not options.fuse:
        if options.kernels is not None:
            raise UsageError("--kernels goes with --fuse")
        return state
    if state.cost.device is not None:
        raise UsageError(
            "--fuse goes with modelled costs: what is measured runs no such kernels yet"
        )
    if state.options.rules.target is not None:
        raise UsageError("--fuse goes without --target: a target has kernels of its own")
    if state.dynamic is not None:
        raise UsageError(
            "--fuse makes kernels for fixed sizes, and the model has dynamic dimensions: give --static"
        )
    check_folder(options.kernels)
    from relational_tensat.mugraph.fusion.fusing import own_kernels  # few runs need it
    from relational_tensat.mugraph.search.search_options import SearchOptions

    search = SearchOptions(
        max_operators=options.most_operators,
        max_kernels=_MOST_KERNELS,
        time_limit_s=options.time_limit_s,
        seed=state.options.process.seed,
    )
    watch = Watch()  # of its own: what Ctrl-C ends here is not the run
    parts = 0

    def report(region: RegionReport) -> None:
        nonlocal parts
        parts += 1
        state.phases.progress.region(region)

    with state.phases.phase("fuse"), watch.watching():
        kernels = own_kernels(state.graph, state.cost, search, watch, report)
    note = "the search of kernels was interrupted: those found by then are used"
    state = replace(with_kernels(state, kernels), fused_parts=parts)
    return state.noting(note if watch.happened else "")


def with_kernels(state: RunState, kernels: Sequence[OwnKernel]) -> RunState:
    """Return the state with kernels, and their costs."""
    from relational_tensat.mugraph.fusion.kernel_costs import KernelCosts

    modelled = {kernel.key: kernel.cost_us for kernel in kernels if kernel.cost_us is not None}
    return replace(state, kernels=tuple(kernels), cost=KernelCosts(state.cost, modelled))


def remember_kernels(state: RunState) -> None:
    """Write the kernels into the run's database, for whoever resumes it, and for questions."""
    if state.kernels:
        from relational_tensat.mugraph.fusion.stored_kernels import rows_of

        state.egraph.database.append("fused_kernel", list(rows_of(state.kernels)))


def write_kernels(state: RunState) -> RunState:
    """Write the kernels that the chosen graph has, if there is a folder for them.

    Raises:
        InputError: nothing can be written there.
    """
    folder = state.options.fusion.kernels
    if folder is None:
        return state
    from relational_tensat.mugraph.fusion import kernel_files  # few runs need it

    count = kernel_files.write_kernels(state.kernels, state.chosen, folder)
    modelled = ", modelled, not timed" if count else ""
    return state.noting(f"kernels in {folder}: {count}{modelled}")
