"""Matches and applications as arrays, a column each: what tree search's worlds are masks over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.node_hashes import Ints, Places


@record
class Matches:
    """Rows of the table ``match``, a column each.

    Attributes:
        patterns, roots: of each: its pattern, and the class of its root.
        signatures: of its e-nodes.
        leaves: the classes of its variables.
    """

    patterns: Ints
    roots: Ints
    signatures: Sequence[Ints]
    leaves: Sequence[Ints]


@record
class Found:
    """Rows of the table ``application``, in their order.

    Attributes:
        ids: the order of the applications.
        rules, instances: of each; an instance has what the application builds.
        roots: classes of its sources, a column each; 0 where there are fewer.
        bindings: classes of its variables, a column each.
    """

    ids: Ints
    rules: Ints
    instances: Ints
    roots: Sequence[Ints]
    bindings: list[Ints]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.ids)

    def matches(self) -> dict[int, int]:
        """Return how many applications each rule has, by its id."""
        counts = np.bincount(self.rules)
        return {int(rule): int(counts[rule]) for rule in np.flatnonzero(counts)}

    def write(self, database: Database) -> None:
        """Make the table ``application`` of them."""
        columns: dict[str, NDArray[Any]] = {
            "id": self.ids, "rule": self.rules, "instance": self.instances,
            **{f"root{n}": column for n, column in enumerate(self.roots)},
        }  # fmt: skip
        names = [f"b{i}" for i in range(len(self.bindings))]
        text = (
            "-- applications that were found as arrays\n"
            "CREATE OR REPLACE TEMP TABLE application AS\n"
            f"SELECT {', '.join(columns)}, [{', '.join(names)}] AS b FROM relational_tensat_arrays"
        )
        columns.update(zip(names, self.bindings, strict=True))
        database.execute(text, None, "application", columns)


def read_found(database: Database, bound: int, rules: str) -> Found:
    """Return the rows of the table ``application``, of rules of up to two sources.

    Args:
        bound: how many bindings each has.
        rules: what the statement's first comment reports of the rules that it serves.
    """
    bindings = [f"b[{i}]" for i in range(1, bound + 1)]
    names = ", ".join(["id", "rule", "instance", "root0", "root1", *bindings])
    text = f"-- applications: {rules}\nSELECT {names} FROM application ORDER BY id"
    rows = database.arrays(text, "found_applications")
    columns = [np.asarray(column, dtype=np.int32) for column in rows.values()]
    ids, of_rules, instances, *classes = columns
    return Found(ids, of_rules, instances, classes[:2], classes[2:])


def numbered(columns: Sequence[Ints]) -> tuple[Ints, Places]:
    """Number the distinct rows of some columns of numbers from 0 on, not too many of them different.

    Returns:
        The number of each row, and of each number the first row that has it.
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        own, count = _dense(column)
        number, _ = _dense(number * count + own)
    first = np.empty(int(number.max(initial=-1)) + 1, np.intp)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return number.astype(np.int32), first


#: Numbers up to so many are told apart by a list of them all, others by sorting.
_MOST_LISTED = 1 << 20


def _dense(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return numbers in the order of values that are not negative, without gaps, and how many."""
    highest = int(values.max(initial=0))
    if highest > max(_MOST_LISTED, len(values)):
        distinct, dense = np.unique(values, return_inverse=True)
        return dense.astype(np.int64), len(distinct)
    is_there = np.zeros(highest + 1, np.bool_)
    is_there[values] = True
    rank = np.cumsum(is_there) - 1
    return rank[values], int(rank[-1]) + 1
