"""The cycle filter: keep the e-graph of unfiltered e-nodes acyclic (TENSAT section 5.2).

Every class has a height label above those of its kept children. Where labels are violated, they are lifted,
for which the e-nodes between the lowest class violated and a step above the highest offending child are
enough, as a rule. Where lifting does not converge soon, cycles are searched for among these: an e-node
that closes a cycle with older ones is filtered, so the original graph always stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.cycle_search import break_cycles
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.lifting import Lifting
from relational_tensat.egraph.loading import CHILD_COLUMNS

#: Gap between the labels of a node and its operands in the original graph. Rewritten forms of a class
#: fit below it without lifting the classes above.
HEIGHT_STEP = 4096

#: No label is higher: that of the column.
_HIGHEST = np.iinfo(np.int32).max


def filter_cycles(database: Database, world: int = 0) -> int:
    """Filter e-nodes until the kept ones are acyclic; return how many were filtered.

    Args:
        world: of whose e-nodes, whose ages are when they came into it; 0 for all, by when they were made.
    """
    with database.stopwatch.phase("filter cycles"):
        return _filter_cycles(database, world)


def _filter_cycles(database: Database, world: int) -> int:
    check = database.check_interrupt
    edges = _cycle_edges(database, HEIGHT_STEP, world)
    if not len(edges["enode"]):
        return 0
    highest = int(edges["child_height"][edges["child_height"] >= edges["height"]].max())
    lifting = Lifting(edges)
    filtered: list[int] = []
    if not lifting.converges(check, soon=True):
        low_enough = (edges["height"] <= highest) & (edges["child_height"] <= highest)
        broken = break_cycles(_only(edges, low_enough), check)
        filtered = broken.enodes
        if filtered:
            if world:
                database.run("worlds/filter_cycles", world=world, enodes=filtered)
            else:
                database.run("cycles/filter_cycles", enodes=filtered)
            edges = _only(edges, ~np.isin(edges["enode"], filtered))
        lifting = Lifting(edges)
        lifting.start_from(broken.classes, broken.labels)
        lifting.converges(check)
    _raise_heights(database, lifting, highest + HEIGHT_STEP, world)
    return len(filtered)


def _raise_heights(database: Database, lifting: Lifting, top: int, world: int) -> None:
    """Write lifted labels.

    Args:
        top: up to which height the edges were read.
    """
    classes, heights = lifting.moved()
    while len(classes) and heights.max() > top:  # what lies above may have to give way, too
        top = int(heights.max()) + HEIGHT_STEP
        lifting = Lifting(_cycle_edges(database, top, world))
        lifting.converges(database.check_interrupt)
        classes, heights = lifting.moved()
    if len(classes):
        database.run("cycles/raise_heights", classes=classes, heights=heights)


def _cycle_edges(database: Database, above: int, world: int) -> dict[str, NDArray[Any]]:
    """Return the edges of the part in which cycles can be, by column; ``enode`` is an age.

    Of the edges that are not above their child, from the lowest class to so much above the highest child.
    """
    if world:
        return database.columns("worlds/cycle_edges", above=above, world=world)
    nodes, labels = database.columns("cycles/kept_nodes"), database.columns("cycles/labels")
    height_of = np.full(len(labels["id"]) + 1, -1, dtype=np.int32)  # ids are dense; 0: no operand
    height_of[labels["id"]] = labels["height"]
    heights = height_of[nodes["class"]]
    children = [nodes[f"c{i}"] for i in range(CHILD_COLUMNS)]
    children = [child for child in children if child.any()]
    child_heights = [height_of[child] for child in children]
    violating = [np.flatnonzero(of_child >= heights) for of_child in child_heights]
    if not any(len(places) for places in violating):
        return _edges_at(nodes, heights, children, child_heights, violating)
    low = min(heights[places].min(initial=_HIGHEST) for places in violating)
    high = above + max(
        int(of_child[places].max(initial=0))
        for of_child, places in zip(child_heights, violating, strict=True)
    )
    is_within = (heights >= low) & (heights <= high)
    within = [
        np.flatnonzero(is_within & (of_child >= low) & (of_child <= high))
        for of_child in child_heights
    ]
    return _edges_at(nodes, heights, children, child_heights, within)


def _edges_at(
    nodes: Mapping[str, NDArray[Any]],
    heights: NDArray[np.int32],
    children: Sequence[NDArray[Any]],
    child_heights: Sequence[NDArray[np.int32]],
    places: Sequence[NDArray[np.intp]],
) -> dict[str, NDArray[Any]]:
    """Return edges by column: of each column of operands, those of e-nodes at some places."""
    every = np.concatenate([np.empty(0, np.intp), *places])
    none = np.empty(0, np.int32)
    return {
        "enode": nodes["id"][every],
        "class": nodes["class"][every],
        "child": np.concatenate([none, *(c[at] for c, at in zip(children, places, strict=True))]),
        "height": heights[every],
        "child_height": np.concatenate(
            [none, *(h[at] for h, at in zip(child_heights, places, strict=True))]
        ),
    }


def _only(edges: Mapping[str, NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return the edges of a mask, by column."""
    return {name: column[mask] for name, column in edges.items()}


def reject_cyclic_applications(database: Database, leaves: int, rules: str, roots: int = 2) -> int:
    """Drop the rows of ``application`` that would close a cycle; return how many.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        rules: what the statement's first comment reports of the rules that it serves.
        roots: how many columns of roots, and of matches, there are.
    """
    text = f"-- suspect: {rules}\n{suspects_text(leaves, roots)}"
    with database.stopwatch.phase("filter cycles"):
        ((suspects,),) = database.execute(text, name="suspect")
        return database.change("cycles/reject_cyclic") if suspects else 0


def suspects_text(leaves: int, roots: int = 2) -> str:
    """Return the statement that fills ``suspect``: applications that may close a cycle, by heights.

    An application puts its roots above its variables: that closes no cycle where all variables of one
    match lie lower than the roots of the others, which is so for most. Class ids are dense, so that a list
    of all heights answers at once what a join for each variable would. Of rules with fewer sources than
    others, a root is 0 and has no height.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        roots: how many columns of roots, and of matches, there are.
    """
    every = range(roots)
    slices = [range(n * leaves + 1, (n + 1) * leaves + 1) for n in every]
    tops = [f"greatest({', '.join(f'height_of[b[{i}]]' for i in places)})" for places in slices]
    columns = [
        *(f"m{n}" for n in every),
        *(f"root{n}" for n in every),
        *(f"height_of[root{n}] AS height{n}" for n in every),
    ]
    pairs = list(permutations(every, 2))
    may_close = " OR ".join(f"top{one} >= height{other}" for one, other in pairs)
    suspected = [
        f"SELECT id, m{one}, root{other}, b[{slices[one].start}:{slices[one].stop - 1}], height{other}"
        f" FROM suspected WHERE top{one} >= height{other}"
        for one, other in pairs
    ]
    return (
        "-- applications that may close a cycle, by the heights of their roots and variables\n"
        "CREATE OR REPLACE TEMP TABLE suspect AS\n"
        "WITH suspected AS MATERIALIZED (\n"
        "    SELECT * FROM (\n"
        f"        SELECT\n            id, b, {', '.join(columns)},\n            "
        + ",\n            ".join(f"{top} AS top{n}" for n, top in enumerate(tops))
        + "\n        FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)\n"
        "    )\n"
        f"    WHERE {may_close}\n"
        "),\n"
        "pair(id, match, root, leaves, lowest) AS (\n    "
        + "\n    UNION ALL\n    ".join(suspected)
        + "\n)\nFROM pair"
    )
