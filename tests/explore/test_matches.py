"""The SQL finds what plain recursion finds, for every pattern that ships."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import UnsoundRuleError
from relational_tensat.egraph import EGraph
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.match.matcher import Matcher
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite
from tests.explore.example_rules import example_rules
from tests.explore.python_matcher import Application, PythonMatcher
from tests.explore.source_graphs import source_graph
from tests.tiers import nightly


class Both:
    """The two matchers on one e-graph."""

    def __init__(self, egraph: EGraph, rules: Sequence[Rule]) -> None:
        self.egraph = egraph
        self.rules = rules
        self.compiled = CompiledRules(rules)
        egraph.set_heads(self.compiled.heads)
        self.matcher = Matcher(egraph, self.compiled)
        self.matcher.create_tables()

    def expected(self, *, multi: bool, since: int) -> Counter[Application]:
        python = PythonMatcher(self.egraph)
        rules = [rule for rule in self.rules if rule.is_multi == multi]
        return Counter(
            application for rule in rules for application in python.applications(rule, since)
        )

    def applications(self, *, multi: bool, since: int, most: int = 10**9) -> Counter[Application]:
        if not multi:
            return self._filled(self.matcher.single(since))
        everything = self._filled(self.matcher.multi(since, most))
        return everything + self._filled(self.matcher.rest())

    def _filled(self, count: int) -> Counter[Application]:
        """Return the rows of ``application``, if there are any."""
        if not count:
            return Counter()
        connection = self.egraph.connection
        signatures = ", ".join(f"i.g{i}" for i in range(2 * self.compiled.node_columns))
        rows = connection.execute(
            f"SELECT a.rule, a.root0, a.root1, a.b, [{signatures}]"
            " FROM application AS a JOIN instance AS i ON i.id = a.instance"
        ).fetchall()
        assert len(rows) == count
        return Counter(self._application(*row) for row in rows)

    def assert_equal(self, since: int = 0) -> Counter[Application]:
        """Fail unless both find the same; return what that is."""
        everything: Counter[Application] = Counter()
        for multi in (True, False):
            expected = self.expected(multi=multi, since=since)
            assert self.applications(multi=multi, since=since) == expected
            if multi:  # the same, in two parts where there are enough
                assert self.applications(multi=multi, since=since, most=1) == expected
            everything += expected
        return everything

    def _application(
        self, number: int, root0: int, root1: int, b: list[int], signatures: list[int]
    ) -> Application:
        compiled = self.compiled.rules[number - 1]
        return Application(
            compiled.rule.name,
            (root0, root1) if root1 else (root0,),
            tuple(b[slot] for slot in compiled.slots),
            tuple(signature for signature in signatures if signature),
        )


def unite_some(egraph: EGraph, random: Random, count: int) -> None:
    """Make so many random pairs of classes of equal type one class."""
    rows = egraph.connection.execute(
        "SELECT list(id ORDER BY id) FROM eclass WHERE id = parent GROUP BY type"
        " HAVING count(*) > 1 ORDER BY min(id)"
    ).fetchall()
    unite(egraph, [tuple(random.sample(random.choice(rows)[0], 2)) for _ in range(count)])


def filter_some(egraph: EGraph, random: Random, part: float) -> None:
    """Filter a random part of the e-nodes."""
    ids = [i for (i,) in egraph.connection.execute("SELECT id FROM enode ORDER BY id").fetchall()]
    sample = random.sample(ids, int(len(ids) * part))
    egraph.connection.execute(
        "UPDATE enode SET filtered = true WHERE id IN (SELECT unnest($ids))", {"ids": sample}
    )


def applicable(egraph: EGraph, rules: Sequence[Rule]) -> list[Rule]:
    """Leave out the rules that would change a type here: they stop the SQL."""
    python = PythonMatcher(egraph)
    applicable_rules = []
    for rule in rules:
        try:
            applicable_rules.append(rule)
            for _ in python.applications(rule):
                pass
        except UnsoundRuleError:
            applicable_rules.pop()
    return applicable_rules


@pytest.mark.parametrize("family", ["taso", "shipped"])
def test_every_pattern_on_graphs_that_have_it(family: str) -> None:
    rules = taso_rules() if family == "taso" else load_rules()
    random = Random(5)
    egraph = EGraph.create(source_graph(rules, random))
    matchers = Both(egraph, applicable(egraph, rules))
    applications = matchers.assert_equal()
    assert len({application.rule for application in applications}) > 0.85 * len(rules)
    egraph.close()


@pytest.mark.parametrize("family", ["taso", nightly("shipped")])
def test_every_pattern_after_random_unions(family: str) -> None:
    rules = taso_rules() if family == "taso" else load_rules()
    random = Random(11)
    egraph = EGraph.create(source_graph(rules, random))
    unite_some(egraph, random, 60)
    filter_some(egraph, random, 0.05)
    matchers = Both(egraph, applicable(egraph, rules))
    before = matchers.assert_equal().total()
    unite_some(egraph, random, 5)
    matchers = Both(egraph, applicable(egraph, matchers.rules))
    assert 0 < matchers.assert_equal(since=egraph.clock).total() < before
    egraph.close()


@settings(max_examples=8, deadline=None)
@given(graphs(20), batches(2), st.randoms(use_true_random=False))
def test_random_graphs(graph: Graph, steps: list[Batch], random: Random) -> None:
    egraph = EGraph.create(graph)
    values = square_values(egraph)
    matchers = Both(egraph, example_rules("twice", "swap", "regroup", "join-products", "join-sums"))
    matchers.assert_equal()
    for batch in steps:
        unite(egraph, pairs_of(batch, values))
        matchers.assert_equal(since=egraph.clock)
    filter_some(egraph, random, 0.1)
    matchers.assert_equal()
    egraph.close()
