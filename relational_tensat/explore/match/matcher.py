"""E-matching: from the e-graph's rows to the applications that a phase will carry out.

One query fills ``match``, by a branch per live skeleton. New configurations are judged. Matches joined with
valid instances are the rows of ``application``: a rule's instance, its root classes and its bindings.

Applications have an order that depends on nothing but the e-graph, rule by rule as in TENSAT. It decides
which of them the node limit leaves out. By the ages of their e-nodes, it decides which ones the cycle
filter takes. Of a rule, the youngest class comes first. So an e-node that closes a cycle is found to be
younger than those of the original graph, and less has to be filtered. Multi-pattern rules take turns: of
each, a full e-graph then has some.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from relational_tensat.base.records import record
from relational_tensat.base.shown_text import storable
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.enode_rows import Ints
from relational_tensat.egraph.schema import working_tables
from relational_tensat.explore.compile.compiled_rules import (
    PAIR_CAP,
    CompiledRules,
    is_one_of,
    join_query,
    match_columns,
    named_rules,
    phase_rules,
    union_all,
)
from relational_tensat.explore.compile.prefixes import Edges, LiveSkeleton, live_skeletons
from relational_tensat.explore.compile.search_query import (
    ALSO_FROM,
    IS_VALID,
    multi_text,
    search_query,
)
from relational_tensat.explore.match.extremes import Extremes, KnownOperands, Mask
from relational_tensat.explore.match.instances import MatchInstances
from relational_tensat.rules.model import rule_text


@record
class Matches:
    """Matches of rules' sources.

    Attributes:
        patterns, roots: of each: its pattern, and the class of its root.
        signatures: of its e-nodes, a row each; 0 fills it up.
        leaves: the classes of its variables, a row each.
    """

    patterns: Ints
    roots: Ints
    signatures: Ints
    leaves: Ints


class Matcher:
    """Finds applications; keeps the rule tables of one database up to date.

    Attributes:
        instances: the judged configurations.
        has_rest: whether the last search found more than it has returned.
        truncated: whether the last search left pairs out because of ``PAIR_CAP``.
        rule_seconds: wall seconds of matching, by rule id.
        order: a seed: the applications of each multi-pattern rule come in a random order; None: those of
            the youngest classes first.
    """

    def __init__(
        self,
        egraph: EGraph,
        compiled: CompiledRules,
        first_instance: int = 1,
    ) -> None:
        """Prepare to match; ``create_tables`` comes next."""
        self.compiled = compiled
        self.truncated = False
        self.rule_seconds: dict[int, float] = {}
        self.order: int | None = None
        self.has_rest = False
        self._serves = ""  # the rules of the phase that is searched for
        self._live_patterns: frozenset[int] = frozenset()  # that the last search was for
        self._width = compiled.node_columns, compiled.leaf_columns  # of its table ``match``
        self._database: Database = egraph.database
        self.instances = MatchInstances(compiled, egraph.catalogue, egraph.database, first_instance)
        self._extremes = Extremes(egraph, compiled)
        self._known = KnownOperands(egraph, compiled)
        self._edges = Edges(compiled)
        self._rules_of: dict[int, list[int]] = {}
        for rule in compiled.rules:
            if not rule.rule.is_multi:
                self._rules_of.setdefault(rule.patterns[0], []).append(rule.id)
        self._write_texts([f"g{i}" for i in range(compiled.root_columns * compiled.node_columns)])

    def forget_edges(self) -> None:
        """Ask for all edges again at the next match: another subgraph is shown."""
        self._edges = Edges(self.compiled)

    def create_tables(self) -> None:
        """Make the tables of instances and joins, and write the rules into theirs."""
        self.instances.create_tables()
        self._insert_rules()
        self._insert_joins()

    def single(self, since: int, rules: frozenset[int] | None = None) -> int:
        """Fill ``application`` with the new applications of single-pattern rules; return how many.

        Args:
            rules: those that take part; None for all of them.
        """
        if not self.fill_matches("single", since, rules):
            return 0
        nodes, leaves = self._width
        signatures = [f"g{i}" for i in range(nodes)]
        on_match = " AND ".join(f"i.{g} = m.{g}" for g in ("pattern", *signatures))
        rows = self._database.execute(
            f"-- unjudged: {self._serves}\n"
            "-- configurations of single-pattern rules that are not judged yet\n"
            f"SELECT DISTINCT m.pattern, {', '.join(f'm.{g}' for g in signatures)}\n"
            f"FROM match AS m ANTI JOIN instance AS i ON {on_match}",
            name="unjudged_singles",
        )
        self.instances.judge(
            [
                (rule, *signatures)
                for pattern, *signatures in rows
                for rule in self._rules_of[pattern]
            ]
        )
        is_subset = rules is not None and rules != self.compiled.single_rules
        only = f" AND {is_one_of('i.rule', sorted(rules or ()))}" if is_subset else ""
        bound = [f"v{i}" for i in range(leaves)]
        none = ", ".join(f"0 AS root{n}" for n in range(1, self.compiled.root_columns))
        filling = ["0"] * (self.compiled.leaf_columns - leaves)
        text = (
            "-- applications of single-pattern rules\n"
            f"SELECT id, rule, instance, root0, {none},\n"
            f"    [{', '.join([*bound, *filling])}] AS b\n"  # lists are slow to sort
            "FROM (\n"
            "    SELECT *, row_number() OVER (\n"
            f"        ORDER BY rule, root0 DESC, instance, {', '.join(bound)}\n"
            "    )::INTEGER AS id\n"
            "    FROM (\n"  # of its own: a window carries what its WHERE reads
            f"        SELECT i.rule, i.id AS instance, m.root AS root0, {', '.join(bound)}\n"
            f"        FROM match AS m JOIN instance AS i ON {on_match}{ALSO_FROM}\n"
            f"        WHERE {IS_VALID}{only}\n"
            "    )\n"
            ")"
        )
        alive = self._live_rules(self.compiled.single_rules)
        self._extremes.refresh()
        self._known.refresh(alive)
        return self._fill_applications(text, bound, alive)

    def new_matches(self, since: int) -> Matches | None:
        """Return the new matches of all rules' sources as arrays; None where nothing can match."""
        live = {skeleton.skeleton.id: skeleton for skeleton in self._live("single", since)}
        for skeleton in self._live("multi", since):
            known = live.get(skeleton.skeleton.id)
            rows = {*skeleton.rows, *(known.rows if known else ())}
            live[skeleton.skeleton.id] = LiveSkeleton(skeleton.skeleton, tuple(sorted(rows)))
        if not live:
            return None

        skeletons = [live[number] for number in sorted(live)]
        query = self._query("all", skeletons)
        names = [c for c in match_columns(*self._width) if c != "stamp"]
        text = f"-- match: {self._serves}\nSELECT {', '.join(names)} FROM (\n{query}\n)"
        with self._timed(skeletons, None):
            columns = self._database.arrays(text, "match", {"since": since})
        patterns, roots, *others = columns.values()
        nodes = self._width[0]
        return Matches(
            patterns, roots, np.stack(others[:nodes], axis=1), np.stack(others[nodes:], axis=1)
        )

    def multi(self, since: int, most: int, rules: frozenset[int] | None = None) -> int:
        """Fill ``application`` with new applications of multi-pattern rules; return how many.

        Args:
            most: of a rule with more than twice as many, about as many come first. The others are left
                to ``rest``: of millions beyond the node budget, the order need not be known.
            rules: those that take part; None for all of them.
        """
        self.has_rest = False
        pairs = self.pair(since, rules)
        if not pairs:
            return 0
        unjudged = f"-- unjudged: {self._serves}\n{self._unjudged_pairs}"
        self.instances.judge(self._database.execute(unjudged, name="unjudged_pairs"))
        text = self._multi_text
        if self.order is not None:
            order = f"hash({', '.join(self._roots)}, b, {self.order}), instance"
            text = text.replace(self._youngest, order)
        elif pairs > 2 * most and self._database.change("match/pair_cut", most=most) > 0:
            self.has_rest, text = True, self._first_text
        self._extremes.refresh()
        self._known.refresh(self._live_rules(self.compiled.multi_rules))
        return self._fill_pairs(text) or self.rest()

    def rest(self) -> int:
        """Fill ``application`` with what the last search has found and not returned; return how many."""
        if not self.has_rest:
            return 0
        self.has_rest = False
        self._extremes.refresh()
        self._known.refresh(self._live_rules(self.compiled.multi_rules))
        return self._fill_pairs(self._rest_text)

    def pair(self, since: int, rules: frozenset[int] | None = None) -> int:
        """Fill ``pair`` with matches of all sources of multi-pattern rules; return how many.

        The sources are matched in full; a pair is new if one of the two is (semi-naive).
        """
        self.truncated = False
        if not self.fill_matches("multi", 0, rules):
            return 0
        groups = [
            group
            for group in self.compiled.joins
            if rules is None or not rules.isdisjoint(group.rules)
        ]

        pairs = 0
        for in_order in (False, True):
            queries = [join_query(g, self.compiled, rules, in_order=in_order) for g in groups]
            text = self._filling("pair", union_all(queries))
            pairs = int(self._database.execute(text, {"since": since}, "pair")[0][0])
            self.truncated = pairs >= PAIR_CAP
            if not self.truncated:
                break  # else whatever the order of rows is, the same pairs are left out
        return pairs

    def allow_extremes(self, variables_of: Mapping[str, Collection[str]]) -> None:
        """Let rules, by name, take extreme constants for some of their variables: masks, say."""
        self._extremes.allow(variables_of)

    def excluded_mask(self, rules: Ints, leaves: Sequence[Ints]) -> Mask:
        """Return which applications what they bind rules out: extreme constants, and what is not known.

        Args:
            rules: by application, its rule's id.
            leaves: the classes that it binds, a column each.
        """
        self._extremes.refresh()
        out = np.zeros(len(rules), np.bool_)
        for reason in (self._extremes, self._known):
            mask = reason.excluded_mask(rules, leaves)
            if mask is not None:
                out |= mask
        return out

    def log_instances(self) -> None:
        """Write down the instances that unions name, as far as that is not done."""
        self._database.execute(self._instances_text, name="log_instances")

    def fill_matches(self, phase: str, since: int, rules: frozenset[int] | None = None) -> int:
        """Fill ``match`` with what is new to rules of a phase, ``single`` or ``multi``; return how many."""
        live = self._live(phase, since, rules)
        if not live:
            return 0
        query = self._query(phase, live)
        with self._timed(live, rules):
            text = self._filling("match", query)
            return int(self._database.execute(text, {"since": since}, "match")[0][0])

    def _live(
        self, phase: str, since: int, rules: frozenset[int] | None = None
    ) -> list[LiveSkeleton]:
        """Return the skeletons that can match something new to rules of a phase."""
        self.compiled.register_heads()
        patterns = None if rules is None else self.compiled.patterns_of(rules)
        edges = None
        if phase == "single":  # sources of multi-pattern rules are few and matched in full
            if not self.compiled.single_patterns:
                return []
            if not self._edges.has_seen_all():
                edges = self._edges
                new = {"since": edges.unseen_since(since)}
                edges.see(self._database.execute(edges.query, new, "head_edges"))
        return live_skeletons(self.compiled, phase, edges, patterns)

    def _query(self, phase: str, live: list[LiveSkeleton]) -> str:
        """Return the query of what is new to skeletons, of ``all`` phases or one."""
        self._live_patterns = frozenset().union(*(skeleton.patterns for skeleton in live))
        self._width = self.compiled.node_columns, self.compiled.leaf_columns
        if phase != "multi":  # a narrow table is planned and moved sooner
            alive = [self.compiled.patterns[p - 1] for p in self._live_patterns]
            self._width = (
                max(len(p.nodes) for p in alive),
                max(1, *(len(p.leaves) for p in alive)),
            )
        if phase == "all":
            self._serves = named_rules([rule.rule.name for rule in self.compiled.rules])
        else:
            self._serves = phase_rules(self.compiled, multi=phase == "multi")
        return search_query(live, *self._width, phase)

    def _filling(self, table: str, query: str) -> str:
        """Return the statement that makes a temporary table of a query's rows."""
        return f"-- {table}: {self._serves}\nCREATE OR REPLACE TEMP TABLE {table} AS\n{query}"

    def _fill_pairs(self, query: str) -> int:
        bound = self.compiled.leaf_columns * self.compiled.root_columns
        leaves = [f"p.b[{i}]" for i in range(1, bound + 1)]
        return self._fill_applications(query, leaves, self._live_rules(self.compiled.multi_rules))

    def _live_rules(self, rules: frozenset[int]) -> frozenset[int]:
        """Return those of some rules that the last search can have found something for."""
        alive = self._live_patterns
        return frozenset(n for n in rules if alive.issuperset(self.compiled.rule(n).patterns))

    def _fill_applications(self, query: str, leaves: Sequence[str], rules: frozenset[int]) -> int:
        """Fill ``application``, without what is ruled out by what it binds: see ``excluded_mask``.

        Args:
            leaves: the columns of the classes that a match binds.
            rules: that may take part.
        """
        tables, ruled_out = [], []
        for table, condition in (
            self._extremes.ruled_out("i.rule", leaves, rules),
            self._known.ruled_out("i.rule", leaves, rules),
        ):
            if condition:
                tables.append(f", {table}")
                ruled_out.append(f" AND NOT ({condition})")
        query = query.replace(ALSO_FROM, "".join(tables))
        text = query.replace(IS_VALID, IS_VALID + "".join(ruled_out))
        rows = self._database.execute(self._filling("application", text), None, "application")
        return int(rows[0][0])

    @contextmanager
    def _timed(self, live: list[LiveSkeleton], rules: frozenset[int] | None) -> Iterator[None]:
        """Share the seconds of a search among the rules that it serves."""
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        patterns = {row[0] for skeleton in live for row in skeleton.rows}
        served = [
            r.id
            for r in self.compiled.rules
            if patterns.intersection(r.patterns) and (rules is None or r.id in rules)
        ]
        for rule_id in served:
            self.rule_seconds[rule_id] = self.rule_seconds.get(rule_id, 0.0) + seconds / len(served)

    def _insert_joins(self) -> None:
        sources = self.compiled.root_columns
        working_tables()["rule_join"].create(self._database, pattern=sources)
        joined = [(g, self.compiled.rule(n)) for g in self.compiled.joins for n in g.rules]
        self._database.insert(
            "rule_join",
            {
                "join_group": [g.id for g, _ in joined],
                "rule": [r.id for _, r in joined],
                **{
                    f"pattern{n}": [(*r.patterns, *[0] * sources)[n] for _, r in joined]
                    for n in range(sources)
                },
                "is_symmetric": [r.rule.symmetric for _, r in joined],
            },
        )

    def _insert_rules(self) -> None:
        compiled = self.compiled
        rules = [r.rule for r in compiled.rules]
        self._database.insert(
            "rule",
            {
                "id": [r.id for r in compiled.rules],
                "name": [r.name for r in rules],
                "law": [r.law for r in rules],
                "sources": [len(r.sources) for r in rules],
                "unsound": [r.unsound for r in rules],
                "file": [storable(r.file) for r in rules],
                "line": [r.line for r in rules],
                "text": [storable(rule_text(r)) for r in rules],
                "operands": [[slot + 1 for slot in r.slots] for r in compiled.rules],
                "leaves": [compiled.bound(r) for r in compiled.rules],
            },
        )

    def _write_texts(self, signatures: list[str]) -> None:
        self._roots = [f"root{n}" for n in range(self.compiled.root_columns)]
        self._youngest = f"{', '.join(f'{r} DESC' for r in self._roots)}, instance, hash(b)"
        on_pair = " AND ".join(f"i.{g} = p.{g}" for g in signatures)
        every = ", ".join(f"i.{g}" for g in signatures)
        rules = named_rules([rule.rule.name for rule in self.compiled.rules])
        self._instances_text = (
            f"-- the instances that unions name: {rules}\n"
            f"INSERT INTO instance_log SELECT i.id, i.rule, list_filter([{every}], lambda g: g > 0)\n"
            "FROM instance AS i SEMI JOIN union_log AS u ON u.instance = i.id\n"
            "ANTI JOIN instance_log AS l ON l.id = i.id"
        )
        order = self._youngest
        marks = [f"p.m{n}" for n in range(self.compiled.root_columns)]
        columns = ", ".join(
            ["p.rule, i.id AS instance", *(f"p.{r}" for r in self._roots), "p.b", *marks]
        )
        below = "JOIN pair_cut AS c ON c.rule = p.rule AND p.root0 < c.root0"
        self._multi_text = multi_text("pair AS p", on_pair, columns, order)
        self._first_text = multi_text(f"pair AS p ANTI {below}", on_pair, columns, order)
        self._rest_text = multi_text(f"pair AS p SEMI {below}", on_pair, columns, order)
        self._unjudged_pairs = (
            "-- configurations of multi-pattern rules that are not judged yet\n"
            f"SELECT DISTINCT p.rule, {', '.join(f'p.{g}' for g in signatures)}\n"
            f"FROM pair AS p ANTI JOIN instance AS i ON i.rule = p.rule AND {on_pair}"
        )
