"""The query of a search: one branch per live skeleton; their common beginnings are found once.

A branch joins the e-nodes that may stand at its skeleton's nodes, in pre-order, and yields a row for each
pattern. The heads that may stand at a place are known before the search, so they are part of the text: few
rows enter the joins. Skeletons that begin with the same nodes share the join of these as a common table
expression (TENSAT shares sub-patterns, too: its Algorithm 1).

Other queries make applications of pairs of matches: multi-pattern rules take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.explore.compile.compiled_rules import is_one_of, match_columns, skeleton_text
from relational_tensat.explore.compile.prefixes import (
    Branch,
    LiveSkeleton,
    Prefix,
    PrefixStep,
    node_of,
    shared_prefixes,
)

#: The condition on instances that are valid: they have a root.
IS_VALID = "i.root0 > 0"

#: Stands for further tables, of one row, that conditions on applications read.
ALSO_FROM = " /* also from */"


def multi_text(pairs: str, on_pair: str, columns: str, order: str) -> str:
    """Return the query of multi-pattern rules' applications.

    The exclusions of applications are read in a query of its own: a window carries all columns that its
    WHERE reads.

    Args:
        pairs: which pairs ``p`` are asked for, as it stands after FROM.
        on_pair: which instance a pair is of.
        columns: of an application.
        order: of a rule's applications, in the names of these columns.
    """
    return (
        "-- applications of multi-pattern rules\n"
        "SELECT row_number() OVER (ORDER BY turn, rule)::INTEGER AS id, * EXCLUDE (turn) FROM (\n"
        f"    SELECT *, row_number() OVER (PARTITION BY rule ORDER BY {order}) AS turn\n"
        "    FROM (\n"
        f"        SELECT {columns}\n"
        f"        FROM {pairs}\n"
        f"        JOIN instance AS i ON i.rule = p.rule AND {on_pair}{ALSO_FROM}\n"
        f"        WHERE {IS_VALID}\n"
        "    )\n"
        ")"
    )


def search_query(live: Sequence[LiveSkeleton], nodes: int, leaves: int, phase: str) -> str:
    """Return the query that finds all new matches of live skeletons, with the columns of ``match``.

    Its parameter ``$since``: only matches that involve a row written at that clock or later.

    Args:
        nodes, leaves: how many columns there are of each: the most that a live skeleton has, or more.
    """
    columns = match_columns(nodes, leaves)
    shared: list[str] = []
    matches: list[str] = []
    for prefix in shared_prefixes(live):
        if prefix.is_shared:
            rows = _rows(prefix)
            prefix.name = f"p{len(shared)}"
            shared.append(f"{prefix.name} AS MATERIALIZED (\n{rows}\n)")
        matches += [
            f"-- match {phase} {skeleton_text(branch.live.skeleton)}\n"
            + _matches(prefix, branch, late, columns, is_named=not matches and not place)
            for place, (branch, late) in enumerate(prefix.ends)
        ]
    beginning = "WITH " + ", ".join(shared) + "\n" if shared else ""
    return beginning + "\nUNION ALL\n".join(matches)


@dataclass
class _Source:
    """Joined e-nodes as text: where they are from, and how their columns are called there.

    Attributes:
        tables: the text after FROM.
        conditions: the text after WHERE.
        stamps: columns whose greatest is the clock of the newest row.
        is_new: whether all rows are as new as is asked for.
    """

    tables: str
    conditions: list[str]
    stamps: list[str]
    shared: Prefix | None = None
    is_new: bool = False

    def column(self, column: str) -> str:
        """Return what a node's column (``n1.c0``) is called."""
        if self.shared is None or node_of(column) > self.shared.node:
            return column
        return f"{self.shared.name}.{column.replace('.', '_')}"

    def add_conditions(self, step: PrefixStep) -> None:
        """Add the conditions that are about several nodes."""
        self.conditions += [f"{self.column(a)} = {self.column(b)}" for a, b in step.equal]
        self.conditions += [
            is_one_of(self.column(f"n{node}.head"), heads) for node, heads in step.narrowed
        ]

    def join_values(
        self,
        alias: str,
        names: Sequence[str],
        rows: Sequence[Sequence[int]],
        on: Sequence[tuple[str, str]],
    ) -> None:
        """Join a table that is written out; ``on`` has pairs of its columns and others."""
        text = ", ".join(f"({', '.join(str(value).upper() for value in row)})" for row in rows)
        equal = " AND ".join(f"{alias}.{name} = {column}" for name, column in on) or "true"
        self.tables += f"\nJOIN (VALUES {text}) AS {alias}({', '.join(names)}) ON {equal}"

    @property
    def stamp(self) -> str:
        """The clock of the newest row."""
        return f"greatest({', '.join(self.stamps)})" if len(self.stamps) > 1 else self.stamps[0]


def _source(prefix: Prefix) -> _Source:
    """Return the rows of a prefix: as they are found, or where they have been found."""
    if prefix.name:
        stamps = [f"{prefix.name}.stamp"]
        return _Source(prefix.name, [], stamps, prefix, is_new=not prefix.following)
    node, step = f"n{prefix.node}", prefix.step
    conditions = [is_one_of(f"{node}.head", step.heads), f"NOT {node}.filtered"]
    if prefix.above is None:
        source = _Source(f"enode AS {node}", conditions, [f"{node}.stamp"])
    else:
        source = _source(prefix.above)
        operand = source.column(f"n{step.parent}.c{step.position}")
        source.tables += f"\nJOIN enode AS {node} ON {node}.class = {operand}"
        source.conditions += conditions
        source.stamps.append(f"{node}.stamp")
    source.add_conditions(step)
    return source


def _rows(prefix: Prefix) -> str:
    """Return the query of a common table expression: a prefix's rows, of columns like ``n1_c0``.

    Where branches end and no step follows, only new rows are asked for.
    """
    source = _source(prefix)
    _join_combined(source, prefix)
    if not prefix.following:
        source.conditions.append(f"{source.stamp} >= $since")
    columns = [f"{source.column(c)} AS {c.replace('.', '_')}" for c in sorted(prefix.needs)]
    return _select([*columns, f"{source.stamp} AS stamp"], source)


def _join_combined(source: _Source, prefix: Prefix) -> None:
    """Keep to the heads that a prefix's nodes may have together, where each for itself is not enough."""
    varied = [ancestor.node for ancestor in prefix.path() if len(ancestor.step.heads) > 1]
    if len(varied) > 1:
        rows = sorted({tuple(heads[i] for i in varied) for heads in prefix.step.combined})
        on = [(f"h{i}", source.column(f"n{i}.head")) for i in varied]
        source.join_values("h", [name for name, _ in on], rows, on)


def _matches(
    prefix: Prefix,
    branch: Branch,
    late: PrefixStep | None,
    columns: Sequence[str],
    *,
    is_named: bool,
) -> str:
    """Return the query of a branch's matches; the first one of a union names its columns."""
    source = _source(prefix)
    if late is not None:
        source.add_conditions(late)
    if not source.is_new:
        source.conditions.append(f"{source.stamp} >= $since")
    nodes, rows = len(branch.steps), branch.live.rows
    pattern = str(rows[0][0])
    if len(rows) > 1:
        pattern = "s.pattern"
        _join_rows(source, branch)
    value_of = {"pattern": pattern, "root": source.column("n0.class"), "stamp": source.stamp}
    value_of |= {f"g{i}": source.column(f"n{i}.signature") for i in range(nodes)}
    value_of |= {f"v{i}": source.column(leaf) for i, leaf in enumerate(branch.leaves)}
    values = [value_of.get(column, "0") for column in columns]
    if is_named:
        values = [f"{v} AS {c}" for v, c in zip(values, columns, strict=True)]
    return _select(values, source)


def _join_rows(source: _Source, branch: Branch) -> None:
    """Join a branch with its rows: which patterns have these heads, which leaves must be equal."""
    equal = [f"{source.column(a)} = {source.column(b)}" for a, b in branch.optional]
    varied = [i for i, step in enumerate(branch.steps) if len(step.heads) > 1]
    names = ["pattern", *(f"h{i}" for i in varied), *(f"e{k}" for k in range(len(equal)))]
    values = [
        [row[0], *(row[1 + i] for i in varied), *(pair in wants for pair in branch.optional)]
        for row, wants in zip(branch.live.rows, branch.wants, strict=True)
    ]
    on = [(f"h{i}", source.column(f"n{i}.head")) for i in varied]
    source.join_values("s", names, values, on)
    source.conditions += [f"(NOT s.e{k} OR {condition})" for k, condition in enumerate(equal)]
    if all(wants.intersection(branch.optional) for wants in branch.wants):
        # each pattern requires some: so ask for any, before there is a row for each pattern
        source.conditions.append(f"({' OR '.join(equal)})")


def _select(columns: Sequence[str], source: _Source) -> str:
    where = f"\nWHERE {' AND '.join(source.conditions)}" if source.conditions else ""
    return f"SELECT {', '.join(columns)}\nFROM {source.tables}{where}"
