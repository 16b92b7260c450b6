"""For rules that ship, on graphs that have their sources: the counts of the slow matcher."""

from __future__ import annotations

from random import Random

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explain.why_not.funnel import Trace, why_not
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.match.matcher import Matcher
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from tests.explore.pattern_egraphs import with_own_attributes
from tests.explore.python_matcher import PythonMatcher
from tests.explore.source_graphs import source_graph
from tests.explore.test_matches import filter_some, unite_some

_SAMPLE = 18


def drawn_rules(random: Random) -> list[Rule]:
    """Return some rules of one source and some of two."""
    rules = load_rules()
    multi = [rule for rule in rules if rule.is_multi]
    single = [rule for rule in rules if not rule.is_multi]
    return [*random.sample(single, _SAMPLE), *random.sample(multi, _SAMPLE // 3)]


@pytest.fixture(scope="module")
def crowded() -> tuple[EGraph, list[Rule]]:
    random = Random(4)
    rules = drawn_rules(random)
    egraph = EGraph.create(source_graph(rules, random))
    Matcher(egraph, CompiledRules(rules)).create_tables()  # writes the table of rules
    unite_some(egraph, random, 12)
    filter_some(egraph, random, 0.05)
    egraph.catalogue.flush(egraph.database)
    return egraph, rules


def trace_of(egraph: EGraph, rule: Rule) -> Trace:
    (answer,) = (a for a in why_not(egraph.connection, rule.name) if a.rule.name == rule.name)
    return answer.traces[0]


def test_matches_and_those_that_pass(crowded: tuple[EGraph, list[Rule]]) -> None:
    egraph, rules = crowded
    python = PythonMatcher(egraph)
    passed = 0
    for rule in rules:
        trace = trace_of(egraph, rule)
        assert len(trace.outcomes) == len(list(python.applications(rule))), rule.name
        passed += len(trace.outcomes)
        free = with_own_attributes(rule)
        if rule.is_multi:
            assert trace.matches == len(python.pairs(free)), rule.name
        else:
            assert trace.matches == len(list(python.matches(free.sources[0]))), rule.name
        lefts = [step.left for step in trace.steps if step.stage not in ("find", "pair")]
        assert lefts == sorted(lefts, reverse=True)
        assert (lefts or [trace.matches])[-1] == len(trace.outcomes)
    assert passed > _SAMPLE
