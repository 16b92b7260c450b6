"""Copying what was found in the windows to all places where they stand in the graph.

A few statements, however many places there are: a window's rows are joined with its places and with a
table that has which class each of its classes is there. Copies are e-nodes in classes of their own, which
the copied unions, and then congruence, make one as they did in the window: so the log gives the same
reasons for them.
"""

from __future__ import annotations

from relational_tensat.egraph.cycles import filter_cycles
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.rebuild import rebuild
from relational_tensat.egraph.working_tables import create_working
from relational_tensat.explore.compile.compiled import CompiledRules
from relational_tensat.explore.strategies.blocks.images import Images
from relational_tensat.explore.strategies.blocks.representative import Representative
from relational_tensat.explore.strategies.blocks.rows import RowWriter
from relational_tensat.explore.strategies.blocks.signatures import Signatures, copy_rules
from relational_tensat.explore.strategies.blocks.window_rows import WindowRows


def most_copies(images: Images, representative: Representative, rows: WindowRows) -> int:
    """Return how many e-nodes copying makes, before those that unions make equal become one."""
    count = 0
    for copies in images.copies:
        new = (
            rows.owner[row[1]] == copies.kind and row[0] not in copies.overlap.counterparts
            for row in rows.nodes
            if row[0] > representative.last
        )
        count += sum(new) * len(copies.places)
    return count


def copy_windows(
    egraph: EGraph,
    representative: Representative,
    rows: WindowRows,
    images: Images,
    compiled: CompiledRules,
    iteration: int,
) -> int:
    """Copy what was found into the e-graph of the whole graph; return how many e-nodes it has more.

    Args:
        iteration: the last one of exploring the windows.

    Raises:
        WindowsMet: it cannot be copied; the tables have to be rolled back.
    """
    database, before = egraph.database, egraph.e_nodes
    signatures = Signatures(representative, egraph)
    signatures.intern(row[2] for row in rows.nodes)
    copy_rules(egraph, representative, signatures, compiled)
    writer = RowWriter(database, representative, rows, images, egraph.next_id)
    writer.classes(signatures)
    writer.nodes(signatures, egraph.catalogue.heads, egraph.clock)
    egraph.next_id += images.count
    create_working(database, "union_pair")
    writer.unions()
    rebuild(database, iteration=iteration, stamp=egraph.clock)
    egraph.e_nodes, egraph.e_classes = egraph.counts()
    filter_cycles(database)
    return egraph.e_nodes - before
