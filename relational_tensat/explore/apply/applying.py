"""Applying: build the targets of all applications, node by node, and unite them with their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.rebuild import rebuild
from relational_tensat.explore.apply.targets import (
    bind_text,
    hash_cons_text,
    new_classes_text,
    unions_text,
)

#: How many times the node budget that is left one batch of applications may build before what is too much
#: is removed again: most applications share e-nodes, so the sum of their sizes says little.
OVERBUILD = 4

#: The fewest applications of a batch that is followed by others: it is a statement or two for each step.
FEWEST = 20_000

#: From so many classes on, their labels are joined instead of looked up in a list of them all (CPU ms: 650
#: and 390 at 680,000 classes, 600 and 570 at 890,000, a fifth less and not more at 2,000,000). Below, joins
#: would take a quarter more: 660 instead of 535 ms in all of TENSAT's 18 runs.
MANY_LABELS = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds the building of targets.

    Attributes:
        node_limit: the most e-nodes that the e-graph may have.
        total_nodes: the e-nodes of all targets, if nothing is shared.
        steps: the most nodes that a target has.
        sources: how many the rules have.
        bound: how many bindings an application has before its target is built.
        operands: the most that an e-node of a target has.
        rules: what the first comments of statements report of the rules.
        is_whole: the caller undoes all where the limit leaves something out: so it ends there.
    """

    node_limit: int
    total_nodes: int
    steps: int
    sources: int
    bound: int
    operands: int = CHILD_COLUMNS
    is_whole: bool = False
    rules: str = ""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Applications that a search found: the rows of the table ``application``, as it is now.

    Attributes:
        applications: the highest id among them.
    """

    applications: int
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What applying did.

    Attributes:
        unions: pairs of classes that were asked to be one (congruence included).
        rejected: applications that would have closed a cycle.
        complete: whether every application was carried out within the node limit.
    """

    unions: int
    complete: bool
    rejected: int = 0


def apply_all(
    egraph: EGraph,
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
    database = egraph.database
    unions, rejected, complete = 0, 0, True
    for index, bounds in enumerate(_in_batches(egraph, candidates)):
        rejected += reject(database)
        complete = _build_within(egraph, iteration, bounds)
        if not complete and bounds.is_whole:
            return ApplyReport(unions, complete, rejected)
        unions += _ask_unions(database, bounds, more=index > 0)
        if not complete:
            break
    if unions:
        rebuilt = rebuild(database, iteration=iteration, stamp=egraph.clock, classes=egraph.next_id)
        egraph.e_nodes -= rebuilt.dropped
        egraph.e_classes -= rebuilt.merged
        unions += rebuilt.unions
    return ApplyReport(unions, complete, rejected)


def _in_batches(egraph: EGraph, candidates: Iterable[Candidates]) -> Iterator[Bounds]:
    """Let ``application`` be one batch of the candidates after the other; yield what bounds it."""
    database = egraph.database
    for group in candidates:
        sizes = _batch_sizes(group.applications, egraph.e_nodes, group.bounds)
        if len(sizes) > 1:
            database.run("apply/candidates")
        last = 0
        for size in sizes:
            if len(sizes) > 1:
                database.run("apply/batch", after=last, upto=last + size)
            yield group.bounds
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


def _build_within(egraph: EGraph, iteration: int, bounds: Bounds) -> bool:
    """Build the targets; remove those past the node limit, and return whether there were none.

    Where all of it is undone then (``Bounds.is_whole``), nothing need be removed.
    """
    database = egraph.database
    next_id, before = egraph.next_id, egraph.e_nodes
    hash_cons = f"-- build: {bounds.rules}\n{hash_cons_text(bounds.operands)}"
    for step in range(1, bounds.steps + 1):
        params = {"iteration": iteration, "stamp": egraph.clock, "next_id": egraph.next_id}
        ((added,),) = database.execute(hash_cons, {**params, "step": step}, "hash_cons")
        egraph.next_id += added
        egraph.e_nodes += added
        if bounds.is_whole and egraph.e_nodes > bounds.node_limit:
            return False
        bind = f"-- bind: {bounds.rules}\n{bind_text(bounds.operands, bounds.bound + step - 1)}"
        database.execute(bind, {"step": step}, "bind")
    fits = egraph.e_nodes <= bounds.node_limit
    if not fits:
        _unbuild(egraph, next_id, max(bounds.node_limit - before, 0))
    egraph.e_classes += egraph.e_nodes - before
    if egraph.e_nodes > before:
        _make_classes(egraph, next_id, bounds)
    return fits


def _make_classes(egraph: EGraph, next_id: int, bounds: Bounds) -> None:
    """Give the e-nodes from ``next_id`` on their classes."""
    database = egraph.database
    if egraph.next_id >= MANY_LABELS or database.threads > 1:
        database.run("apply/new_classes_many", next_id=next_id, steps=bounds.steps)
        return
    text = f"-- classes: {bounds.rules}\n{new_classes_text(bounds.bound, bounds.steps)}"
    database.execute(text, {"next_id": next_id}, "new_classes")


def _ask_unions(database: Database, bounds: Bounds, *, more: bool) -> int:
    """Fill ``union_pair`` with what the applications ask for, or add to it; return the unions."""
    verb = "INSERT INTO union_pair" if more else "CREATE OR REPLACE TEMP TABLE union_pair AS"
    text = f"-- unions: {bounds.rules}\n{verb}\n{unions_text(bounds.sources)}"
    return int(database.execute(text, name="root_unions")[0][0])


def _unbuild(egraph: EGraph, next_id: int, node_budget: int) -> None:
    """Of the e-nodes from ``next_id`` on, keep what the first applications need and ``node_budget`` allows.

    The ids of those kept follow on each other: ids are dense.
    """
    database = egraph.database
    last = database.run("apply/last_that_fits", next_id=next_id, budget=node_budget)[0][0]
    count = database.change("apply/unbuild_enodes", next_id=next_id, last=last)
    database.run("apply/keep_applications", last=last)
    database.run("apply/new_ids", next_id=next_id, end_id=egraph.next_id)
    database.run("apply/renumber_enodes", next_id=next_id)
    database.run("apply/renumber_bindings", next_id=next_id)
    egraph.e_nodes -= count
    egraph.next_id -= count
