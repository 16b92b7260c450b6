from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.models import GraphBuilder
from bench.taso.graphs import PS_PER_US, Loaded, State
from bench.taso.matcher import Matcher
from bench.taso.rewriter import Candidate, Rewriter
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from relational_tensat.verify import verify
from tests.bench.taso.small_graphs import GRAPHS, chain, shared_left

_PROFILE = load_profile("tensat_t4")


class _Rewriting:
    """A graph and rules; yields what they make of it, and of that again."""

    def __init__(self, graph: Graph, rules: list[Rule]) -> None:
        self.loaded = Loaded(graph, _PROFILE)
        self._matcher = Matcher(self.loaded.state.universe)
        universe = self.loaded.state.universe
        self._rewriters = [Rewriter(universe, self._matcher, rule) for rule in rules]

    def of(self, state: State) -> list[Candidate]:
        self._matcher.forget()
        return [
            candidate for rewriter in self._rewriters for candidate in rewriter.candidates(state)
        ]

    def deep(self, rounds: int) -> Iterator[Candidate]:
        states, seen = [self.loaded.state], {self.loaded.state.mark}
        for _ in range(rounds):
            candidates = [candidate for state in states for candidate in self.of(state)]
            yield from candidates
            states = []
            for candidate in candidates:
                if candidate.mark not in seen and len(states) < 25:
                    seen.add(candidate.mark)
                    states.append(candidate.state())


def _rewriting(graph: Graph, text: str) -> _Rewriting:
    return _Rewriting(graph, parse_rules(text, "test.rules"))


@pytest.mark.parametrize("name", sorted({*GRAPHS} - {"chain"}))
def test_what_is_known_beforehand_is_what_the_graph_is_put_together(name: str) -> None:
    candidates = list(_Rewriting(GRAPHS[name](), taso_rules()).deep(3))
    assert candidates
    for candidate in candidates:
        state = candidate.state()
        assert (candidate.cost_ps, candidate.operators, candidate.mark) == (
            state.cost_ps, state.operators, state.mark,
        )  # fmt: skip


@pytest.mark.parametrize("name", sorted({*GRAPHS} - {"chain"}))
def test_every_rewritten_graph_computes_the_same(name: str) -> None:
    graph = GRAPHS[name]()
    rewriting = _Rewriting(graph, taso_rules())
    seen: set[int] = set()
    for candidate in rewriting.deep(2):
        if candidate.mark not in seen and len(seen) < 12:
            seen.add(candidate.mark)
            state = candidate.state()
            rewritten = rewriting.loaded.graph(state)
            assert graph_cost_us(rewritten, _PROFILE) == pytest.approx(state.cost_ps / PS_PER_US)
            assert verify(graph, rewritten, runs=1).failure() == ""
    assert seen


def test_the_loaded_graph_costs_what_it_costs() -> None:
    for make in GRAPHS.values():
        graph = make()
        loaded = Loaded(graph, _PROFILE)
        again = loaded.graph(loaded.state)
        assert loaded.state.cost_ps / PS_PER_US == pytest.approx(graph_cost_us(graph, _PROFILE))
        assert again.count_ops() == graph.count_ops()


_JOIN = """(rule join (law "[A·B, A·C] = A·[B, C]")
  (from (matmul ?a ?b) (matmul ?a ?c))
  (let ?s (split (matmul ?a (concat ?b ?c :axis 1)) :axis 1 :sizes (list (dim ?b 1) (dim ?c 1))))
  (to (part ?s :index 0) (part ?s :index 1)))"""


def test_what_would_depend_on_itself_is_left_out() -> None:
    joined = _rewriting(shared_left(2), _JOIN)
    assert len(joined.of(joined.loaded.state)) == 2  # in both orders, as TASO
    for steps in (0, 1, 3):
        rewriting = _rewriting(chain(steps), _JOIN)
        assert rewriting.of(rewriting.loaded.state) == []


def test_two_joins_that_need_each_other_are_left_out() -> None:
    """tanh(relu x), relu(tanh y): the inner ones joined, or the outer, no inner with its outer."""
    join = """(rule join (law "relu of both") (from (relu ?a) (tanh ?b))
      (let ?s (split (relu (concat ?a ?b :axis 0)) :axis 0 :sizes (list (dim ?a 0) (dim ?b 0))))
      (to (part ?s :index 0) (part ?s :index 1)))"""
    build = GraphBuilder("crossed")
    x, y = build.input("x", 2, 2), build.input("y", 2, 2)
    first, second = build.op("relu", x), build.op("tanh", y)
    crossed = build.op("tanh", first), build.op("relu", second)
    rewriting = _rewriting(build.build(*crossed), join)
    start = rewriting.loaded.state
    pairs = {tuple(sorted(set(c.changed) & set(start.entries))) for c in rewriting.of(start)}
    assert len(pairs) == 2  # of the four pairs, two have one on the way to the other
    for candidate in rewriting.of(start):
        for again in rewriting.of(candidate.state()):
            again.state()  # a cycle would never end


def test_what_is_used_elsewhere_is_not_taken_apart() -> None:
    text = '(rule r (law "x") (from (relu (add ?a ?b))) (to (add (relu ?a) (relu ?b))))'
    build = GraphBuilder("used")
    total = build.op("add", build.input("x", 2, 2), build.input("y", 2, 2))
    kept = build.op("relu", total)
    alone = _rewriting(build.build(kept), text)
    assert len(alone.of(alone.loaded.state)) == 1
    for graph in (build.build(kept, total), build.build(kept, build.op("tanh", total))):
        rewriting = _rewriting(graph, text)
        assert rewriting.of(rewriting.loaded.state) == []


def test_a_target_that_is_a_variable_stands_for_all_uses() -> None:
    text = '(rule same (law "identity") (from (identity ?x)) (to ?x))'
    build = GraphBuilder("same")
    copy = build.op("identity", build.op("tanh", build.input("x", 2, 2)))
    graph = build.build(copy, build.op("add", copy, copy))
    rewriting = _rewriting(graph, text)
    (candidate,) = rewriting.of(rewriting.loaded.state)
    state = candidate.state()
    assert (candidate.cost_ps, candidate.operators, candidate.mark) == (
        state.cost_ps,
        state.operators,
        state.mark,
    )
    result = rewriting.loaded.graph(state)
    assert verify(graph, result, runs=1).failure() == ""
    assert state.by_op.get("identity") is None


def test_a_target_of_another_type_is_refused() -> None:
    text = '(rule wrong (law "no") (unsound) (from (tanh ?x)) (to (transpose ?x :perm [1 0])))'
    build = GraphBuilder("oblong")
    rewriting = _rewriting(build.build(build.op("tanh", build.input("x", 2, 3))), text)
    assert rewriting.of(rewriting.loaded.state) == []


def test_weights_that_come_to_depend_on_inputs_cost_from_then_on() -> None:
    build = GraphBuilder("late")
    x, w = build.input("x", 4, 4), build.weight("w", 4, 4)
    left = build.op("matmul", w, build.weight("v", 4, 4))
    free = build.op("tanh", left)
    graph = build.build(build.op("add", free, build.op("matmul", w, x)))
    rewriting = _rewriting(graph, _JOIN)
    start = rewriting.loaded.state
    assert start.cost_of[start.by_op["tanh"][0]] == 0
    candidates = rewriting.of(start)
    assert len(candidates) == 2
    for candidate in candidates:
        state = candidate.state()
        assert candidate.cost_ps == state.cost_ps
        assert state.cost_of[state.by_op["tanh"][0]] > 0
