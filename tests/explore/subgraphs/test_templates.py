"""What instances build, as arrays: as the tables have it, also where ids are missing."""

from __future__ import annotations

import numpy as np

from relational_tensat.base.plan import carried_out
from relational_tensat.explore.subgraphs.applications import Templates
from relational_tensat.explore.subgraphs.node_arrays import Masks
from relational_tensat.rules.library import load_rules
from tests.explore.subgraphs.side_by_side import looked_at, universe_of
from tests.run.resume.models import layers


def test_ids_that_an_undone_iteration_had_are_left_empty() -> None:
    universe = universe_of(layers(2, 3), load_rules())
    egraph = universe.egraph
    instances = universe.subgraph.matcher.instances
    for _ in range(3):
        instances._count += 4  # as where a transaction was undone
        masks = Masks([universe.original()], universe.arrays.size)
        looked_at(universe, masks, 500)
        waiting = np.arange(universe.applications.count, dtype=np.int32)
        carried_out(universe.build)(waiting, 1)
    rows = egraph.connection.execute(
        "SELECT id, [root0, root1], coalesce(n, 0) FROM instance LEFT JOIN\n"
        "(SELECT instance, count(*) AS n FROM template GROUP BY instance) ON instance = id ORDER BY id"
    ).fetchall()
    ids = np.array([row[0] for row in rows])
    assert len(ids) < ids[-1]  # some are missing
    templates = Templates(egraph.database, 2 * universe.subgraph.rules.node_columns)
    templates.refresh(
        instances.last
    )  # of a universe that begins after other searches of its e-graph
    assert templates.last == ids[-1]
    assert templates.roots(ids).tolist() == [row[1] for row in rows]
    assert templates.sizes(ids).tolist() == [row[2] for row in rows]
    missing = np.setdiff1d(np.arange(ids[-1] + 1), ids)
    assert not templates.roots(missing).any() and not templates.sizes(missing).any()
