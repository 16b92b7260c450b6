"""Which graph a run returns: the optimized one, unless the original is as cheap, or faster whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import VerificationError
from relational_tensat.cost import CostModel, Unmeasurable, graph_cost_us
from relational_tensat.cost.end_to_end import WholeTiming
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.result import WholeRun
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import count_inference_ops
from relational_tensat.verify import Verification

#: Folds a graph and compares it with the original.
Check: TypeAlias = Callable[[Graph], tuple[Graph, Verification]]
#: Times the original and a folded graph whole; None where that is not wanted, or not possible.
TimeWhole: TypeAlias = Callable[[Graph], WholeTiming | Unmeasurable | None]


@dataclass(frozen=True, slots=True)
class Settled:
    """The graph that a run returns.

    Attributes:
        graph: the original itself, if that is kept.
        folded: the same as it is written.
        verification: of what is written.
        whole: how long the extracted graph and the original take; None where that was not timed.
        notes: why it is this one, or what could not be found out.
    """

    graph: Graph
    folded: Graph
    verification: Verification
    whole: WholeRun | None = None
    notes: tuple[str, ...] = ()

    @property
    def keeps_original(self) -> bool:
        """Whether ``graph`` is the original because what was extracted is slower whole."""
        return self.whole is not None and self.whole.keeps_original


def settle(
    original: Graph, optimized: Graph, cost: CostModel, check: Check, time_whole: TimeWhole
) -> Settled:
    """Choose between original and optimized graph; what is chosen is verified.

    The optimized graph is timed only where it is to be returned, and once it was verified. Ctrl-C ends
    the timing: then it is returned untimed.

    Raises:
        VerificationError: the optimized graph computes something else.
    """
    chosen, notes = _cheaper(original, optimized, cost)
    settled = Settled(chosen, *_checked(chosen, check), notes=notes)
    if chosen is original:
        return settled
    try:
        timed = time_whole(settled.folded)
    except KeyboardInterrupt:
        timed = Unmeasurable("interrupted")
    if timed is None:
        return settled
    if isinstance(timed, Unmeasurable):
        return replace(settled, notes=(*notes, f"not run whole on {cost.name}: {timed.reason}"))
    whole = WholeRun(timed, graph_cost_us(original, cost), graph_cost_us(optimized, cost))
    if not timed.is_loss:
        return replace(settled, whole=whole)
    return Settled(original, *_checked(original, check), whole, (*notes, _loss(whole, cost.name)))


def _checked(graph: Graph, check: Check) -> tuple[Graph, Verification]:
    """Return what checking a graph gives.

    Raises:
        VerificationError: it computes something else than the original.
    """
    folded, verification = check(graph)
    if verification.failure():
        raise VerificationError(verification.failure())
    return folded, verification


def _loss(whole: WholeRun, source: str) -> str:
    """Return what was hoped for, what was found, and what was done about it."""
    timing = whole.timing
    return (
        f"the extracted graph should take {whole.modelled_after_us:,.2f} µs under {source}, the original "
        f"{whole.modelled_before_us:,.2f}, but run whole it takes {timing.after_us:,.2f}, the original "
        f"{timing.before_us:,.2f} ({timing.speedup:.3f}x): the original is kept"
    )


def _cheaper(original: Graph, optimized: Graph, cost: CostModel) -> tuple[Graph, tuple[str, ...]]:
    """Return the optimized graph unless the original is as good, and what to say about it."""
    before, after = graph_cost_us(original, cost), graph_cost_us(optimized, cost)
    if after < before * (1 - COST_TOLERANCE):
        return optimized, ()
    if after > before * (1 + COST_TOLERANCE):
        return original, (
            f"the extracted graph costs {after:.3f} µs, more than the original's {before:.3f}: "
            "the original is kept",
        )
    n_before = sum(count_inference_ops(original).values())
    if sum(count_inference_ops(optimized).values()) < n_before:
        return optimized, ()
    return original, ("no cheaper graph was found: the original is kept",)
