"""One source of a rule in an e-graph: how far it gets, one count after each join step.

The order is that of the queries that exploration runs (``explore.compile``): the nodes of a source in
pre-order. But leaves that must be equal are compared as soon as both are there, not at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explore.compile.patterns import PatternNode, source_pattern
from relational_tensat.rules.model import Apply, Rule, constant_text
from relational_tensat.tensor.operators import get_operator

#: How many kinds of things are named where something else was expected.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class JoinStep:
    """One step of a search and what it leaves.

    Attributes:
        stage: ``find`` (join steps of one source), ``pair`` (of two), or that of a
            ``rules.diagnosis.Check``.
        requirement: in words, or a condition in the rule language.
        left: rows that are left after it.
        source: which source is searched, from 1; 0 where it is about all of them.
        instead: the values that it rejected, most frequent first.
    """

    stage: str
    requirement: str
    left: int
    source: int = 0
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Join:
    """One step of a source's search as SQL.

    Attributes:
        table: the joined table, "" if the step only compares.
        condition: the condition on it.
        operand: the column with the class where the step looks for an e-node, "" for any class.
        leaves: the two columns that a comparison is about.
        node: the index of the pattern's node, -1 for a comparison.
    """

    requirement: str
    table: str
    condition: str
    operand: str = ""
    leaves: tuple[str, str] = ("", "")
    node: int = -1


@dataclass(frozen=True, slots=True)
class MatchColumns:
    """The columns of a source's matches, each as ``COLUMN AS NAME``.

    Attributes:
        root: the source's class.
        nodes, signatures: per node of the source.
        variables: the class that a tensor variable is bound to.
    """

    root: str
    nodes: tuple[str, ...]
    signatures: tuple[str, ...]
    variables: dict[str, str]

    @property
    def all(self) -> str:
        """All columns, as they are selected."""
        return ", ".join([self.root, *self.nodes, *self.signatures, *self.variables.values()])


@dataclass
class SourceSearch:
    """One source of a rule as a chain of joins over the e-nodes that are not filtered.

    Attributes:
        number: which source it is, from 1; its letter begins the tables' names, so that all
            sources can be in one query.
        at: the class that the root must be, 0 for any.
    """

    stored: StoredEGraph
    source: Apply
    rule: Rule
    number: int
    at: int = 0
    joins: list[_Join] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Build the joins."""
        self._pattern = source_pattern(self.source, self.rule).pattern
        self._accepted = [self._signatures(node) for node in self._pattern.nodes]
        self._visit(self.source, "", "")

    @property
    def letter(self) -> str:
        """The first letter of the names of its tables and columns."""
        return ascii_lowercase[self.number - 1]

    def steps(self) -> Iterator[JoinStep]:
        """Yield the count after each join step, up to the first that leaves nothing."""
        for step, join in enumerate(self.joins, start=1):
            left = self._count(step)
            if left:
                yield JoinStep("find", join.requirement, left, self.number)
                continue
            yield JoinStep("find", join.requirement, 0, self.number, self._instead(step))
            return

    def query(self, selected: str) -> str:
        """Return the query of all matches of the source."""
        return self._query(selected, len(self.joins))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of ``query``: which signatures may be where."""
        return self._params(len(self.joins))

    @property
    def match_columns(self) -> MatchColumns:
        """The columns of ``query`` that make a match."""
        letter = self.letter
        tables = [f"{letter}{i}" for i in range(len(self._pattern.nodes))]
        return MatchColumns(
            root=f"{letter}0.class AS {letter}_root",
            nodes=tuple(f"{table}.id AS {table}_id" for table in tables),
            signatures=tuple(f"{table}.signature AS {table}_signature" for table in tables),
            variables={  # by number: a variable may have a name that SQL does not take
                name: f"{column} AS {letter}_v{index}"
                for index, (name, column) in enumerate(self.columns.items())
            },
        )

    def _signatures(self, node: PatternNode) -> list[int]:
        signatures = self.stored.signatures.items()
        return [index for index, signature in signatures if node.accepts(signature.symbol)]

    def _visit(self, term: Apply, operand: str, place: str) -> None:
        """Add the joins of a term: its own, then those of its operands."""
        index = sum(join.node >= 0 for join in self.joins)
        table = f"{self.letter}{index}"
        condition = f"{table}.signature IN (SELECT unnest(${table}::INTEGER[]))"
        if operand:
            condition += f" AND {table}.class = {operand}"
        elif self.at:
            condition += f" AND {table}.class = {self.at}"
        pattern = node_text(self._pattern.nodes[index])
        description = f"{place} is {pattern}" if place else f"an e-node is {pattern}"
        self.joins.append(_Join(description, f"enode AS {table}", condition, operand, node=index))
        for position, child in enumerate(term.children):
            column = f"{table}.c{position}"
            if isinstance(child, Apply):
                self._visit(child, column, f"operand {position} of {term.op}")
            elif self.columns.setdefault(child.name, column) != column:
                pair = (self.columns[child.name], column)
                description = f"?{child.name} is one e-class (operand {position} of {term.op})"
                self.joins.append(_Join(description, "", f"{pair[0]} = {pair[1]}", leaves=pair))

    def _query(self, selected: str, steps: int, *, filtered: bool = False) -> str:
        """Return the query of the first steps; with filtered e-nodes if requested."""
        joins = self.joins[:steps]
        tables = [join.table for join in joins if join.table]
        conditions = [join.condition for join in joins]
        if not filtered:
            conditions += [f"NOT {named(table)}.filtered" for table in tables]
        condition = "\n    AND ".join(conditions)
        return f"SELECT {selected}\nFROM {', '.join(tables)}\nWHERE {condition}"

    def _params(self, steps: int) -> dict[str, Any]:
        nodes = [join.node for join in self.joins[:steps] if join.node >= 0]
        return {f"{self.letter}{node}": self._accepted[node] for node in nodes}

    def _run(self, query: str, steps: int) -> list[tuple[Any, ...]]:
        return self.stored.connection.execute(query, self._params(steps)).fetchall()

    def _count(self, steps: int, *, filtered: bool = False) -> int:
        query = self._query("count(*)", steps, filtered=filtered)
        return int(self._run(f"-- why not: rows after step {steps}\n{query}", steps)[0][0])

    def _instead(self, steps: int) -> tuple[str, ...]:
        """Return what there is where the last step found nothing that it accepts."""
        n_filtered = self._count(steps, filtered=True)
        lines = (
            [f"{n_filtered} rows with e-nodes that are filtered as parts of cycles"]
            if n_filtered
            else []
        )
        alternatives = self._other_nodes if self.joins[steps - 1].node >= 0 else self._other_leaves
        return (*lines, *most_frequent(alternatives(steps)))

    def _other_nodes(self, steps: int) -> Counter[str]:
        """Return the e-nodes that are there in place of the expected one."""
        join = self.joins[steps - 1]
        if join.operand:
            classes = self._query(f"DISTINCT {join.operand}", steps - 1)
            condition = f"e.class IN ({classes})"
        else:
            condition = f"e.class = {self.at}" if self.at else "true"
        rows = self._run(
            "-- why not: what is there instead\n"
            "SELECT e.signature, count(*) FROM enode AS e\n"
            f"WHERE NOT e.filtered AND {condition} GROUP BY ALL",
            steps - 1,
        )
        node = self._pattern.nodes[join.node]
        near = [row for row in rows if self.stored.signatures[row[0]].symbol.op == node.op]
        anywhere = not join.operand and not self.at
        counts: Counter[str] = Counter()
        for signature, count in near if near and anywhere else rows:
            counts[self._difference(node, signature)] += count
        return counts

    def _difference(self, node: PatternNode, signature: int) -> str:
        """Describe an e-node by what distinguishes it from the pattern."""
        symbol = self.stored.signatures[signature].symbol
        if symbol.op != node.op:
            return symbol.op
        if symbol.arity != node.arity:
            return f"{symbol.op} of {symbol.arity} operands"
        attrs = dict(symbol.attrs)
        attr_names = [name for name, value in node.literals if attrs[name] != value]
        values = " ".join(f"{name}={constant_text(attrs[name])}" for name in attr_names)
        return f"{symbol.op} with {values}"

    def _other_leaves(self, steps: int) -> Counter[str]:
        """Return the classes that are where the last step expects one."""
        left, right = self.joins[steps - 1].leaves
        query = self._query(f"{left}, {right}, count(*)", steps - 1)
        rows = self._run(f"-- why not: which classes differ\n{query}\nGROUP BY ALL", steps - 1)
        name = self.stored.class_text
        return Counter({f"{name(a)} and {name(b)}": int(count) for a, b, count in rows})


def named(column: str) -> str:
    """Return the name of ``COLUMN AS NAME``."""
    return column.rpartition(" ")[2]


def node_text(node: PatternNode) -> str:
    """Return what is at a node of a pattern: ``conv with act=none``."""
    low, high = get_operator(node.op).arity
    operands = "" if low == high else f" of {node.arity} operands"
    values = " ".join(f"{name}={constant_text(value)}" for name, value in node.literals)
    return f"{node.op}{operands}" + (f" with {values}" if values else "")


def most_frequent(counts: Counter[str]) -> list[str]:
    """Return what was found with its counts, most frequent first, and how much is left out."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    values = [f"{text} ({count})" for text, count in ordered[:_SHOWN]]
    n_more = len(ordered) - _SHOWN
    return values + ([f"and {n_more} more kinds"] if n_more > 0 else [])
