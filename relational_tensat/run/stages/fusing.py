"""With the option ``fuse``: kernels for parts of the model, as rules, costs, and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.watch import Watch
from relational_tensat.run.state import RunState

if TYPE_CHECKING:
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel

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
    from relational_tensat.mugraph.fusion.fusing import own_kernels  # few runs need it
    from relational_tensat.mugraph.search.search_options import SearchOptions

    search = SearchOptions(
        max_operators=options.most_operators,
        max_kernels=_MOST_KERNELS,
        time_limit_s=options.time_limit_s,
        seed=state.options.process.seed,
    )
    watch = Watch()  # of its own: what Ctrl-C ends here is not the run
    with state.phases.phase("fuse"), watch.watching():
        kernels = own_kernels(state.graph, state.cost, search, watch, state.phases.progress.region)
    note = "the search of kernels was interrupted: those found by then are used"
    return with_kernels(state, kernels).noting(note if watch.happened else "")


def with_kernels(state: RunState, kernels: Sequence[OwnKernel]) -> RunState:
    """Return the state with kernels, and their costs."""
    from relational_tensat.mugraph.fusion.kernel_costs import KernelCosts

    modelled = {kernel.key: kernel.cost_us for kernel in kernels if kernel.cost_us is not None}
    return replace(state, kernels=tuple(kernels), cost=KernelCosts(state.cost, modelled))


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
    return state.noting(f"{count} kernels, modelled, not timed, are in {folder}")
