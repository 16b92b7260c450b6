"""The join steps of a rule's sources, and those that join these: how far it gets in an e-graph."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.why_not.source import JoinStep, SourceSearch, named
from relational_tensat.explore.compile.compiled_rules import PAIR_CAP
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule

_ALL = {"both": "the two are", "all": "all are"}


@dataclass(frozen=True, slots=True)
class FullMatch:
    """A match of all sources.

    Attributes:
        signatures, nodes: per node of ``source_nodes(rule)``; e-nodes by id.
        roots: the class of each source.
        bindings: the class of each of ``tensor_vars(rule)``.
    """

    signatures: tuple[int, ...]
    nodes: tuple[int, ...]
    roots: tuple[int, ...]
    bindings: tuple[int, ...]


class PatternSearch:
    """All sources of a rule: the join steps of each, then those that pair their matches."""

    def __init__(self, stored: StoredEGraph, rule: Rule, at: int = 0, at_source: int = 1) -> None:
        """Build the queries.

        Args:
            at: the class that a source's root must be, 0 for any.
            at_source: which source that is, from 1.
        """
        self._stored = stored
        self._rule = rule
        self._at = at
        self.sources = [
            SourceSearch(stored, source, rule, index, at if index == at_source else 0)
            for index, source in enumerate(rule.sources, start=1)
        ]
        self.steps: list[JoinStep] = []
        self.matches = 0
        self._conditions: list[str] = []

    def run(self) -> None:
        """Fill ``steps``, and ``matches`` with the number of full matches."""
        lefts = []
        for source in self.sources:
            steps = list(source.steps())
            self.steps += steps
            lefts.append(steps[-1].left)
        self.matches = lefts[0]
        if len(lefts) > 1:
            self.matches = 0 if 0 in lefts else self._pair()

    @property
    def is_cut(self) -> bool:
        """Whether there are more pairs than exploration looks at."""
        return self._rule.is_multi and self.matches > PAIR_CAP

    def configurations(self) -> dict[tuple[int, ...], int]:
        """Return how many full matches there are of each configuration of signatures."""
        signatures = ", ".join(self._all("signatures"))
        text = f"SELECT {signatures}, count(*) FROM ({self._matches_query()}) AS m GROUP BY ALL"
        return {tuple(row[:-1]): int(row[-1]) for row in self._run("configurations", text)}

    def full_matches(self, configurations: set[tuple[int, ...]]) -> list[FullMatch]:
        """Return the full matches of some configurations, in order of their roots."""
        parts = [self._all(kind) for kind in ("signatures", "nodes", "roots", "variables")]
        columns = ", ".join(f"[{', '.join(part)}]" for part in parts)
        text = f"SELECT {columns} FROM ({self._matches_query()}) AS m"
        rows = [tuple(map(tuple, row)) for row in self._run("full matches", text)]
        matches = [FullMatch(*row) for row in rows if row[0] in configurations]
        return sorted(matches, key=lambda match: (match.roots, match.bindings, match.nodes))

    def _pair(self) -> int:
        """Add the steps that join the matches of all sources; return how many are left."""
        both = "both" if len(self.sources) == 2 else "all"
        variables: dict[str, str] = {}
        conditions: list[tuple[str, str]] = []
        for source in self.sources:
            own = source.match_columns.variables
            conditions += [
                (f"?{name} is one e-class in {both}", f"{named(variables[name])} = {named(column)}")
                for name, column in own.items()
                if name in variables
            ]
            variables = {**own, **variables}
        roots = [named(source.match_columns.root) for source in self.sources]
        distinct = [f"{one} <> {other}" for one, other in combinations(roots, 2)]
        conditions.append((f"{_ALL[both]} different e-classes", " AND ".join(distinct)))
        if self._rule.symmetric and not self._at:
            in_order = " AND ".join(f"{one} < {other}" for one, other in pairwise(roots))
            conditions.append(("each pair once", in_order))
        self._conditions = []
        remaining = 0
        for description, condition in conditions:
            self._conditions.append(condition)
            text = f"SELECT count(*) FROM ({self._pairs_query()}) AS m"
            remaining = int(self._run("pairs", text)[0][0])
            self.steps.append(JoinStep("pair", description, remaining))
            if not remaining:
                break
        return remaining

    def _pairs_query(self) -> str:
        queries = (source.query(source.match_columns.all) for source in self.sources)
        tables = ", ".join(f"({query}) AS s{n}" for n, query in enumerate(queries))
        return f"SELECT * FROM {tables} WHERE {' AND '.join(self._conditions)}"

    def _matches_query(self) -> str:
        if len(self.sources) == 1:
            (source,) = self.sources
            return source.query(source.match_columns.all)
        return f"{self._pairs_query()} LIMIT {PAIR_CAP}"

    def _all(self, kind: str) -> list[str]:
        """Return the names of all columns of a kind; see ``FullMatch``."""
        columns = [source.match_columns for source in self.sources]
        match kind:
            case "roots":
                return [named(source_columns.root) for source_columns in columns]
            case "nodes":
                return [named(node) for source_columns in columns for node in source_columns.nodes]
            case "signatures":
                return [
                    named(node) for source_columns in columns for node in source_columns.signatures
                ]
        variables: dict[str, str] = {}
        for source_columns in reversed(columns):  # what both have is the same class in both
            variables |= source_columns.variables
        return [named(variables[name]) for name in tensor_vars(self._rule)]

    def _run(self, purpose: str, text: str) -> list[tuple[Any, ...]]:
        params = {key: value for source in self.sources for key, value in source.params.items()}
        return self._stored.connection.execute(f"-- why not: {purpose}\n{text}", params).fetchall()
