"""Runs that are those of other limits or seeds, too: the same steps, one by one, and so not run again.

Each rule says why. What CPU seconds end is the same as far as machines are equally fast; all else is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from bench.search.cells import Cell
from bench.search.search_run import GrownSubgraph, SearchRun


def run_for(cell: Cell, run: SearchRun, subgraph_nodes: int) -> SearchRun | None:
    """Return what a cell's run would be, as another run shows; None if it does not show that.

    Args:
        run: of the same model and search, with the same CPU seconds.
        subgraph_nodes: node limit of the first subgraphs of focus; 0 where it depends on the model.
    """
    limits = cell.limits
    others = (
        cell.seed != run.seed,
        limits.k_multi != run.k_multi,
        limits.node_limit != run.node_limit,
    )
    if sum(others) > 1 or limits.cpu_s != run.cpu_limit_s or not _has_subgraphs(run):
        return None
    if cell.seed != run.seed:
        found = run if cell.search == "focus" and _drew_nothing(run) else None
    elif limits.k_multi != run.k_multi:
        found = run if _had_all_multi(run, limits.k_multi) else None
    elif cell.search == "saturation":
        found = run if _is_unlimited(run, limits.node_limit) else None
    elif cell.search == "focus" and subgraph_nodes:
        found = _at_width(run, limits.node_limit, subgraph_nodes)
    else:
        found = None
    if found is None:
        return None
    return replace(found, k_multi=limits.k_multi, node_limit=limits.node_limit, seed=cell.seed)


def _has_subgraphs(run: SearchRun) -> bool:
    """Whether a run of focus has its subgraphs: one from a kept table may not."""
    return run.search != "focus" or len(run.grown) == run.subgraphs


def _had_all_multi(run: SearchRun, k_multi: int) -> bool:
    """Whether saturation ended before it mattered how many iterations multi-pattern rules take part in.

    An iteration asks whether it, and whether the next, is one of these.
    """
    asked = run.iterations + (run.stop_reason != "time")
    return asked <= min(run.k_multi, k_multi)


def _is_unlimited(run: SearchRun, node_limit: int) -> bool:
    """Whether saturation is the same at a larger limit: it says ``nodes`` where one kept anything out."""
    return run.stop_reason == "saturated" and run.node_limit <= node_limit


def _drew_nothing(run: SearchRun) -> bool:
    """Whether focus drew nothing: that begins with its first restart."""
    kinds = [subgraph.kind for subgraph in run.grown]
    has_ended = run.stop_reason in ("focus", "closed", "saturated")
    return has_ended and not any(kind != "chosen" for kind in kinds[1:])


def _at_width(run: SearchRun, node_limit: int, subgraph_nodes: int) -> SearchRun | None:
    """Return a run of focus up to another width: its subgraphs are the same up to the widest of both."""
    own, had = _widths(subgraph_nodes, node_limit), _widths(subgraph_nodes, run.node_limit)
    both = [a for a, b in zip(own, had, strict=False) if a == b]
    if not both:
        return None
    grown = list(takewhile(lambda subgraph: subgraph.node_limit in both, run.grown))
    if len(grown) < len(run.grown):  # it went on with others
        return _first_part(run, grown) if both == own else None
    is_between = not grown or run.iterations > grown[-1].iteration
    if is_between:  # a subgraph was being grown, perhaps a wider one
        return run if not grown or both.index(grown[-1].node_limit) + 1 < len(both) else None
    is_out_of_widths = run.stop_reason in ("focus", "saturated") and both == had
    return None if is_out_of_widths and any(w.stop_reason == "nodes" for w in grown) else run


def _first_part(run: SearchRun, grown: Sequence[GrownSubgraph]) -> SearchRun:
    """Return the run that ended with some of its subgraphs."""
    last = grown[-1]
    whole = [w for w in grown if w.universe == last.universe and w.kind == "universe"] or grown[:1]
    return replace(
        run,
        e_nodes=last.universe,
        subgraphs=len(grown),
        iterations=last.iteration,
        stop_reason="focus",
        cost_after_us=min(subgraph.best_us for subgraph in grown),
        bound_us=whole[-1].bound_us if whole[-1].universe == last.universe else 0.0,
        explore_cpu_s=last.cpu_s,
        cpu_s=last.cpu_s,
        moments=tuple(moment for moment in run.moments if moment.cpu_s <= last.cpu_s + 1e-3),
        grown=tuple(grown),
    )


def _widths(subgraph_nodes: int, node_limit: int) -> list[int]:
    """Return the node limits of subgraphs of focus, in order."""
    widths = [min(subgraph_nodes, node_limit)]
    while widths[-1] < node_limit:
        widths.append(min(2 * widths[-1], node_limit))
    return widths
