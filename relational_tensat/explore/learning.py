"""Learning from earlier runs: which applications their results needed, and so which come first.

A run with ``--db`` keeps the backward slice of its result, and how often each rule was applied, and needed,
by which of its operands were weights (``rule_use``). From this follows how much earlier than others such
applications come in another run. Only the order changes, and so what a limit leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.published import create_learning
from relational_tensat.explore.compile.compiled import CompiledRules

#: A rule by name, and which of its tensor variables depend on weights only.
Kind = tuple[str, tuple[bool, ...]]

#: By kind: applications, and those that results needed.
Uses = Mapping[Kind, tuple[int, int]]

#: So many applications as needed as all others are added to each kind: of few, little is believed.
_PRIOR = 20

#: The greatest weight, and the inverse of the least.
_MOST = 10.0

_TEXT = (
    "-- rules of an earlier run\n"
    "SELECT r.name, u.weights, u.applied, u.needed FROM rule_use AS u JOIN rule AS r ON r.id = u.rule"
)


def read_uses(paths: Sequence[Path]) -> Uses:
    """Return what the databases of some runs say, added up.

    Raises:
        InputError: one is no database of a run that has ended.
    """
    applied: Counter[Kind] = Counter()
    needed: Counter[Kind] = Counter()
    for path in paths:
        for name, weights, n_applied, n_needed in _rows(path):
            applied[name, tuple(weights)] += n_applied
            needed[name, tuple(weights)] += n_needed
    return {kind: (count, needed[kind]) for kind, count in applied.items()}


def weights_of(uses: Uses) -> dict[Kind, float]:
    """Return by how much more often than all together each kind of application was needed."""
    total = sum(applied for applied, _ in uses.values())
    rate = sum(needed for _, needed in uses.values()) / max(total, 1)
    if not rate:
        return {}
    return {
        kind: min(max((needed / rate + _PRIOR) / (applied + _PRIOR), 1 / _MOST), _MOST)
        for kind, (applied, needed) in uses.items()
    }


def write_learned(database: Database, rules: CompiledRules, weights: Mapping[Kind, float]) -> None:
    """Write the weights of those rules that take part into the table ``learned``."""
    create_learning(database)
    ids: dict[str, list[int]] = {}
    for rule in rules.rules:
        ids.setdefault(rule.rule.name, []).append(rule.id)
    rows = [
        (rule, list(known), weight)
        for (name, known), weight in weights.items()
        for rule in ids.get(name, ())
    ]
    database.append("learned", rows)


def keep_uses(database: Database, needed: Iterable[tuple[int, int, int, list[int]]]) -> None:
    """Write which applications the result needs, and how often rules were applied and needed.

    Args:
        needed: rows of ``needed_application``.
    """
    create_learning(database)
    database.execute("-- of the result before\nDELETE FROM needed_application", name="learning")
    database.execute("-- of the result before\nDELETE FROM rule_use", name="learning")
    database.append("needed_application", list(needed))
    database.append("rule_use", database.run("explore/rule_use"))


def _rows(path: Path) -> list[tuple[str, list[bool], int, int]]:
    if not path.is_file():
        raise InputError(f"{path}: no such database file")
    try:
        with duckdb.open_database(path) as connection:
            return connection.execute(_TEXT).fetchall()
    except duckdb.Error as error:
        raise InputError(
            f"{path}: not the database of a run that has ended, expected one by run --db: "
            f"{first_line(error)}"
        ) from error
