"""Forms that became one: an explanation follows how they came about, not how they ended."""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations
from random import Random

import pytest

from relational_tensat.explain.laws import Congruence
from relational_tensat.explain.proof import FormGraph
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Node, build_graph
from tests.egraph.extraction import FlatCost
from tests.explain.runs import explained
from tests.graphs import f32

#: Two inner values become one only after both were reached through the same operator.
_TWO_WAYS = """
(rule first (law "tanh x = -relu x") (from (tanh ?x)) (to (neg (relu ?x))))
(rule second (law "tanh x = -sigmoid x") (from (tanh ?x)) (to (neg (sigmoid ?x))))
(rule negated-twice (law "-(-x) = x") (from (neg (neg ?x))) (to ?x))
"""


@pytest.mark.parametrize("wanted", ["relu", "sigmoid"])
def test_each_of_two_forms_is_reached_by_its_own_way(wanted: str) -> None:
    nodes = [Node("tanh", ("x",), ("a",)), Node("neg", ("a",), ("y",))]
    graph = build_graph("g", {"x": f32(2)}, {}, nodes, ["y"])
    cost = FlatCost(10.0, {wanted: 1.0})
    explanation = explained(graph, parse_rules(_TWO_WAYS, "ways.rules"), cost)
    assert [step.after for step in explanation.steps] == [(wanted, "neg"), ()]


def test_forms_are_one_since_the_last_union_that_they_need() -> None:
    """f(a) = f(b) right after a = b, the third union; each way from f(b) to others needs it, too."""
    found: list[Congruence] = []
    forms = FormGraph(found.append)
    a, b, c, d = (forms.form(signature, ()) for signature in range(4))
    fa, fb = (forms.form(4, (operand,)) for operand in (a, b))
    for pair in ((c, d), (fa, c), (a, b)):
        forms.unite(*pair)
    assert [({*edge[:2]}, edge.time) for edge in found] == [({fa, fb}, 4)]
    assert [forms.one_since(*pair) for pair in ((c, d), (fa, d), (fb, d), (a, a))] == [1, 2, 4, 0]
    assert forms.one_since(a, c) == float("inf")
    assert forms.form(4, (a,)) == fa


@pytest.mark.parametrize("seed", range(5))
def test_when_forms_became_one_is_what_a_slow_closure_finds(seed: int) -> None:
    random = Random(seed)
    found: list[Congruence] = []
    forms = FormGraph(found.append)
    unions: list[tuple[int, int]] = []
    starts: list[float] = []  # the time of each union
    created: list[int] = []  # how many unions there were before each form
    one_since: dict[tuple[int, int], float] = {}
    for _ in range(25):
        for _ in range(random.randrange(3)):
            count = len(created)
            operands = tuple(
                random.randrange(count) for _ in range(min(count, random.randrange(3)))
            )
            forms.form(random.randrange(4), operands)
            created += [len(unions)] * (len(forms.operands) - count)
        _record(forms, unions, one_since)
        if created:
            unions.append((random.randrange(len(created)), random.randrange(len(created))))
            starts.append(forms.time + 1)
            forms.unite(*unions[-1])
            _record(forms, unions, one_since)
    for a, b in combinations(range(len(created)), 2):
        time = forms.one_since(a, b)
        n_unions = bisect_right(starts, time) if time < float("inf") else time
        assert n_unions == one_since.get((a, b), float("inf"))
    for edge in found:
        assert forms.one_since(edge.start, edge.end) <= edge.time
        operands = zip(forms.operands[edge.start], forms.operands[edge.end], strict=True)
        assert all(forms.one_since(*pair) < edge.time for pair in operands)


def _record(
    forms: FormGraph, unions: list[tuple[int, int]], one_since: dict[tuple[int, int], float]
) -> None:
    """Record the time of pairs that are one now and were not before, by closing all pairs again."""
    root = list(range(len(forms.operands)))

    def join(a: int, b: int) -> bool:
        old, new = root[a], root[b]
        root[:] = [new if r == old else r for r in root]
        return old != new

    for pair in unions:
        join(*pair)
    pairs = list(combinations(range(len(root)), 2))
    has_changed = True
    while has_changed:
        has_changed = False
        for a, b in pairs:
            keys = [(forms.signatures[n], *(root[o] for o in forms.operands[n])) for n in (a, b)]
            has_changed |= keys[0] == keys[1] and join(a, b)
    for a, b in pairs:
        if root[a] == root[b]:
            one_since.setdefault((a, b), len(unions))
