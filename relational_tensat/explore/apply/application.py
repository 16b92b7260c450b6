"""Applying: build the targets of all applications, node by node, and unite them with their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.rebuild import drop_equal, rebuild
from relational_tensat.explore.apply.direct import MANY_LABELS, build_direct
from relational_tensat.explore.apply.targets import (
    Bounds,
    Candidates,
    bind_text,
    hash_cons_text,
    new_classes_text,
    unions_text,
)
from relational_tensat.explore.subgraph import Subgraph

#: How many times the remaining node budget one batch of applications may build before the excess is removed
#: again: most applications share e-nodes, so the sum of their sizes says little.
OVERBUILD = 4

#: The fewest applications of a batch that is followed by others: it is a statement or two for each step.
FEWEST = 20_000


@record
class ApplyReport:
    """The counts of an apply.

    Attributes:
        unions: pairs of classes that were asked to be one (congruence included).
        rejected: applications that would have closed a cycle.
        complete: whether every application was carried out within the node limit.
        entered: e-nodes that came into the subgraph, where it does not have all.
    """

    unions: int
    complete: bool
    rejected: int = 0
    entered: int = 0


def apply_all(
    subgraph: Subgraph,
    candidates: Iterable[Candidates],
    iteration: int,
    reject: Callable[[Database], int] = lambda _: 0,
) -> ApplyReport:
    """Carry out applications in their order, as far as the node limit allows, then rebuild.

    Args:
        candidates: one search at a time, asked for when those before it are carried out.
        reject: drops rows of ``application`` that must not be carried out, and returns how many. Asked
            for those only whose turn comes: until the rebuild, nothing changes below the classes that
            there were.
    """
    egraph, members = subgraph.egraph, subgraph.members
    database = egraph.database
    direct, unions, rejected, complete = 0, 0, 0, True
    before = 0 if members is None else members.size
    has_labels = subgraph.options.cycle_filter != "none"
    for batch in chain.from_iterable(map(partial(_batches, subgraph), candidates)):
        rejected += reject(database)
        bounds, built = batch.bounds, None
        # Whether later applications of several sources close cycles is asked of the e-graph as it was.
        if batch.is_all or bounds.sources == 1 or not has_labels:
            built = build_direct(subgraph, iteration, bounds, batch.applications)
        complete = built is not None
        if not complete:
            if bounds.is_whole:  # all of it is undone: nothing need be removed
                return ApplyReport(unions, complete, rejected)
            next_id, e_nodes = egraph.next_id, egraph.e_nodes
            last = _build_beside(subgraph, iteration, bounds)
            complete = last is None
            if last is not None:
                _unbuild(subgraph, next_id, last)
            egraph.e_classes += egraph.e_nodes - e_nodes
            if egraph.e_nodes > e_nodes:
                _make_classes(egraph, next_id, bounds)
        if members is not None:
            members.enter(iteration)
        direct += built or 0
        unions += _ask_unions(database, bounds, more=unions > 0)
        if not complete:
            break
    entered = 0 if members is None else members.size - before
    if unions:
        rebuilt = rebuild(
            database,
            iteration=iteration,
            stamp=egraph.clock,
            classes=egraph.next_id,
            has_labels=has_labels,
        )
        if rebuilt.has_equal:
            if members is not None:
                members.merge_equal()
            egraph.e_nodes -= drop_equal(database)
        egraph.e_classes -= rebuilt.merged
        unions += rebuilt.unions
    return ApplyReport(direct + unions, complete, rejected, entered)


@record
class _Batch:
    """Applications that are carried out together.

    Attributes:
        applications: at most so many.
        is_all: whether they are all of the phase.
    """

    bounds: Bounds
    applications: int
    is_all: bool


def _batches(subgraph: Subgraph, group: Candidates) -> Iterator[_Batch]:
    """Let ``application`` be one batch of the candidates after the other; yield it."""
    database = subgraph.egraph.database
    sizes = _batch_sizes(group.applications, subgraph.e_nodes, group.bounds)
    if len(sizes) == 1:
        yield _Batch(group.bounds, sizes[0], is_all=not group.has_rest)
        return
    database.run("apply/candidates")
    last = 0
    for size in sizes:
        database.run("apply/batch", after=last, upto=last + size)
        yield _Batch(group.bounds, size, is_all=False)
        last += size


def _batch_sizes(applications: int, e_nodes: int, bounds: Bounds) -> list[int]:
    """Return how many applications to carry out at a time: as many as fill the node budget, then
    twice that.

    None may build more than ``OVERBUILD`` times the node limit, which bounds memory; where half of that
    may fill the node budget, all is built at once.
    """
    most = -(-applications // (1 + bounds.total_nodes // (OVERBUILD * bounds.node_limit)))
    node_budget = max(bounds.node_limit - e_nodes, 0)
    fill = applications * OVERBUILD * node_budget // max(bounds.total_nodes, 1)
    size = max(fill, FEWEST)
    if 2 * size >= most:
        size = most
    sizes: list[int] = []
    remainder = applications
    while remainder > 0:
        sizes.append(min(size, remainder))
        remainder -= size
        size = min(2 * size, most)
    return sizes


def _build_beside(subgraph: Subgraph, iteration: int, bounds: Bounds) -> int | None:
    """Build the targets in classes of their own; return the last application up to which all is within
    the limits; 0 for no application, None where all are.
    """
    egraph, members = subgraph.egraph, subgraph.members
    database = egraph.database
    first, before = egraph.next_id, egraph.e_nodes
    limit = bounds.node_limit if members is None else members.universe_limit
    hash_cons = f"-- build: {bounds.rules}\n{hash_cons_text(bounds.operands)}"
    for step in range(1, bounds.steps + 1):
        params = {"iteration": iteration, "stamp": egraph.clock, "next_id": egraph.next_id}
        ((added,),) = database.execute(hash_cons, {**params, "step": step}, "hash_cons")
        egraph.next_id += added
        egraph.e_nodes += added
        bind = bind_text(bounds.operands, bounds.bound + step - 1, bounds.roots)
        database.execute(f"-- bind: {bounds.rules}\n{bind}", {"step": step}, "bind")
    last = None
    if egraph.e_nodes > limit:
        budget = max(limit - before, 0)
        ((last,),) = database.run("apply/last_that_fits", next_id=first, budget=budget)
    if members is not None:
        budget = bounds.node_limit - members.size
        if database.change("subgraphs/entering", subgraph=members.subgraph) > budget:
            ((last_in,),) = database.run("subgraphs/last_that_fits", budget=budget)
            last = last_in if last is None else min(last, last_in)
    return None if last is None else int(last)


def _make_classes(egraph: EGraph, next_id: int, bounds: Bounds) -> None:
    """Give the e-nodes from ``next_id`` on their classes."""
    database = egraph.database
    if egraph.next_id >= MANY_LABELS:
        database.run("apply/new_classes_many", next_id=next_id, steps=bounds.steps)
        return
    text = f"-- classes: {bounds.rules}\n{new_classes_text(bounds.bound, bounds.steps)}"
    database.execute(text, {"next_id": next_id}, "new_classes")


def _ask_unions(database: Database, bounds: Bounds, *, more: bool) -> int:
    """Fill ``union_pair`` with what the applications ask for, or add to it; return the unions."""
    verb = "INSERT INTO union_pair" if more else "CREATE OR REPLACE TEMP TABLE union_pair AS"
    text = f"-- unions: {bounds.rules}\n{verb}\n{unions_text(bounds.sources)}"
    return int(database.execute(text, name="root_unions")[0][0])


def _unbuild(subgraph: Subgraph, next_id: int, last: int) -> None:
    """Of the e-nodes from ``next_id`` on, keep what the applications up to the last one need.

    The ids of those kept follow on each other: ids are dense.
    """
    egraph, members = subgraph.egraph, subgraph.members
    database = egraph.database
    count = database.change("apply/unbuild_enodes", next_id=next_id, last=last)
    database.run("apply/keep_applications", last=last)
    database.run("apply/new_ids", next_id=next_id, end_id=egraph.next_id)
    database.run("apply/renumber_enodes", next_id=next_id)
    database.run("apply/renumber_bindings", next_id=next_id)
    egraph.e_nodes -= count
    egraph.next_id -= count
    if members is not None:
        database.run("subgraphs/entering", subgraph=members.subgraph)
