"""The regions of a model, and why others are none, as a database that one can ask.

Tables ``region`` and ``fused_region``; of the latter a run's database has one, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.resources import sql
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.regions.finding_regions import Region
from relational_tensat.mugraph.regions.region_row import RegionRow

_OF_RUNS = "schema/shared"


def write_regions(path: Path, regions: Sequence[Region], rows: Iterable[RegionRow]) -> None:
    """Write a new database.

    Args:
        path: a file that is not there yet.
        regions: in the order of their numbers.
        rows: what was left out, and borders.

    Raises:
        InputError: the file is there, or cannot be written.
    """
    if path.exists():
        raise InputError(f"{path}: is there already; name another database")
    (of_rows,) = (text for text in sql(_OF_RUNS).split("\n\n") if "TABLE fused_region (" in text)
    database = Database(path)
    try:
        database.script("mugraph/region")
        database.execute_all(of_rows, _OF_RUNS)
        database.append("region", list(_rows(regions)))
        database.append("fused_region", [row.values() for row in rows])
    except BaseException:
        database.close()
        path.unlink(missing_ok=True)
        raise
    database.close()


def regions_of(rows: Iterable[tuple[Any, ...]]) -> list[Region]:
    """Return the regions that rows of ``inspect/regions`` are.

    Raises:
        InputError: a program is malformed.
    """
    return [
        Region(
            tuple(name for outputs in places for name in outputs),
            nodes,
            decoded(json.loads(program), f"region {number}"),
            len(places[0]),
        )
        for number, places, nodes, program in rows
    ]


def _rows(regions: Sequence[Region]) -> Iterator[tuple[Any, ...]]:
    for number, region in enumerate(regions):
        operators = [step.op for step in region.program.operators]
        program = json.dumps(encoded(region.program), ensure_ascii=False)
        for place, outputs in enumerate(region.places):
            yield number, place, list(outputs), region.nodes, operators, program
