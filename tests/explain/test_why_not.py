"""Why a rule did not fire: the counts of every step are those of plain enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.catalogue import parse_type, type_text
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.why_not.funnel import why_not
from relational_tensat.explain.why_not.source import JoinStep
from relational_tensat.rules.model import Apply, Var
from relational_tensat.tensor import Node, build_graph
from tests.explain.why_not_runs import RULES, Ran, convolutions, joined_sums, printed, sums
from tests.explore.python_matcher import PythonMatcher
from tests.graphs import f32


@pytest.fixture(scope="module")
def ran() -> Ran:
    return Ran(sums(), "twice", "swap", "big-only")


def brute_force(egraph: EGraph, source: Apply) -> list[int]:
    """Return the number of e-node tuples that fit the first 1, 2, … nodes of a source."""
    stored = StoredEGraph(egraph.connection)
    kept = [node for node in stored.nodes.values() if not node.filtered]
    terms: list[tuple[Apply, int, int]] = []

    def walk(term: Apply, parent: int, position: int) -> None:
        index = len(terms)
        terms.append((term, parent, position))
        for at, child in enumerate(term.children):
            if isinstance(child, Apply):
                walk(child, index, at)

    def fits(nodes: Sequence[object]) -> bool:
        values: dict[str, int] = {}
        for (term, parent, position), node in zip(terms, nodes, strict=False):
            if parent >= 0 and nodes[parent].children[position] != node.owner:  # type: ignore[attr-defined]
                return False
            op = stored.signatures[node.signature].symbol.op  # type: ignore[attr-defined]
            if op != term.op:
                return False
            for child, owner in zip(term.children, node.children, strict=True):  # type: ignore[attr-defined]
                if isinstance(child, Var) and values.setdefault(child.name, owner) != owner:
                    return False
        return True

    walk(source, -1, 0)
    return [
        sum(map(fits, itertools.product(kept, repeat=length)))
        for length in range(1, len(terms) + 1)
    ]


def last_of_each_node(steps: Sequence[JoinStep]) -> list[int]:
    """Return the rows left after each e-node and all comparisons that it makes possible."""
    counts: list[int] = []
    for step in steps:
        if " is one e-class" in step.requirement:
            counts[-1] = step.left
        else:
            counts.append(step.left)
    return counts


# --- the pattern ---


@pytest.mark.parametrize("name", ["twice", "same-twice", "swap", "tanh-of-tanh", "triple"])
def test_every_join_step_counts_what_enumeration_counts(ran: Ran, name: str) -> None:
    steps = [step for step in ran.trace(name).steps if step.stage == "find"]
    expected = brute_force(ran.egraph, RULES[name].sources[0])
    cut = expected.index(0) + 1 if 0 in expected else len(expected)
    assert last_of_each_node(steps) == expected[:cut]


@pytest.mark.parametrize("name", ["join-relus", "join-sums"])
def test_pairs_are_those_of_the_slow_matcher(ran: Ran, name: str) -> None:
    rule = RULES[name]
    python = PythonMatcher(ran.egraph)
    expected = len(list(python.applications(replace(rule, conditions=(), worth=()))))
    trace = ran.trace(name)
    assert trace.matches == expected > 0
    assert len(trace.outcomes) == expected


def test_an_operator_that_is_nowhere(ran: Ran) -> None:
    (step,) = ran.trace("tanh-of-tanh").steps
    assert step.left == 0
    assert step.requirement == "an e-node is tanh"
    assert any(node_text.startswith("add (") for node_text in step.instead)


def test_an_operand_that_is_another_operator() -> None:
    trace = Ran(convolutions()).trace("conv-of-relu")
    first, second = trace.steps
    assert (first.left, second.left) == (2, 0)
    assert second.requirement == "operand 0 of conv is relu"
    assert second.instead == ("conv (1)", "input (1)")


def test_an_attribute_that_has_another_value() -> None:
    (step,) = Ran(convolutions()).trace("active-conv").steps
    assert step.left == 0
    assert step.requirement == "an e-node is conv of 2 operands with act=tanh"
    assert step.instead == ("conv with act=none (1)", "conv with act=relu (1)")


def test_leaves_that_are_not_one_class() -> None:
    steps = [(step.requirement, step.left) for step in Ran(sums()).trace("same-twice").steps]
    assert steps == [
        ("an e-node is add", 3),
        ("operand 0 of add is relu", 2),
        ("?x is one e-class (operand 1 of add)", 1),
    ]
    nodes = [Node("relu", ("y",), ("q",)), Node("add", ("q", "x"), ("t",))]
    inputs = {"x": f32(3, 4), "y": f32(3, 4)}
    ran = Ran(build_graph("two leaves", inputs, {}, nodes, ["t"]))
    last = ran.trace("same-twice").steps[-1]
    assert (last.left, last.instead) == (0, ("y and x (1)",))


def test_filtered_e_nodes_are_reported() -> None:
    ran = Ran(sums())
    ran.egraph.connection.execute(
        "UPDATE enode SET filtered = true WHERE id IN (SELECT id FROM enode_text WHERE op = 'neg')"
    )
    (step,) = ran.trace("triple").steps
    assert step.instead[0] == "1 rows with e-nodes that are filtered as parts of cycles"


# --- the conditions ---


def test_a_condition_names_the_values_that_it_was_computed_from() -> None:
    trace = Ran(convolutions()).trace("one-group")
    where = [step for step in trace.steps if step.stage == "where"]
    assert [(step.requirement, step.left) for step in where] == [
        ("(= (rank ?x) 4)", 2),
        ("(= (groups ?x ?w) 1)", 0),
    ]
    assert where[1].instead == ("(groups ?x ?w) = 32 (2)",)
    assert not trace.outcomes


def test_what_is_not_worth_it(ran: Ran) -> None:
    sums_ = PythonMatcher(ran.egraph)
    everywhere = len(list(sums_.applications(RULES["big-only"].everywhere)))
    worth = len(list(sums_.applications(RULES["big-only"])))
    trace = ran.trace("big-only")
    assert trace.matches == everywhere
    assert len(trace.outcomes) == worth
    step = trace.steps[-1]
    assert (step.stage, step.left) == ("worth", worth)
    assert "(size ?b) = 12, (size ?a) = 12" in step.instead[0]
    assert 0 < worth < everywhere


def test_one_attribute_in_two_places() -> None:
    step = Ran(sums()).trace("same-axis").steps[-1]
    assert (step.stage, step.requirement, step.left) == ("attribute", "?i", 0)
    assert step.instead == ("0 and 1 (1)",)


def test_the_targets_shape_rule() -> None:
    step = Ran(sums()).trace("as-product").steps[-1]
    assert (step.stage, step.left) == ("target", 0)
    assert step.requirement == "(matmul ?a ?b)"
    assert step.instead[0] == "matmul: [3, 4] and [3, 4] differ in the summed dimension (2)"


def test_a_target_of_another_type() -> None:
    step = Ran(sums()).trace("transposed").steps[-1]
    assert (step.stage, step.left) == ("type", 0)
    assert step.instead == ("float32[3,4] would become float32[4,3] (3)",)


# --- what became of those that passed ---


def test_what_it_replaced_is_gone() -> None:
    answer = Ran(sums(), "twice").ask("twice")
    assert answer.in_run
    assert [(work.iteration, work.matches) for work in answer.work] == [(1, 1)]
    last = answer.traces[0].steps[-1]
    assert (last.left, last.instead[0]) == (
        0,
        "2 rows with e-nodes that are filtered as parts of cycles",
    )
    assert "(what it matched in the run is not there any more" in printed(answer)


def test_applied_but_it_costs_no_less(ran: Ran) -> None:
    answer = ran.ask("swap", "s")
    outcomes = answer.traces[0].outcomes
    assert [(o.status, o.made_by, o.iteration) for o in outcomes] == [
        ("chosen", "original", 0),
        ("not chosen", "swap", 1),
    ]
    assert outcomes[1].cost_us == pytest.approx(answer.result_us)
    assert outcomes[1].detail == "chosen: add (by original)"


def test_applied_but_it_costs_more() -> None:
    ran = Ran(sums(), "join-relus")
    answer = ran.ask("join-relus")
    (trace,) = answer.traces
    first = trace.outcomes[0]
    assert (first.places, first.status, first.made_by) == (("r", "q"), "not chosen", "join-relus")
    assert first.cost_us is not None
    assert answer.result_us == pytest.approx(graph_cost_us(sums(), load_profile("t4")))
    assert first.cost_us == pytest.approx(graph_cost_us(joined_sums(), load_profile("t4")))
    assert first.cost_us > answer.result_us
    assert trace.counts == {"not chosen": 2, "cyclic": 4, "not united": 4}
    late = trace.outcomes[-1]
    assert late.detail == (
        "possible since iteration 1; multi-pattern rules last matched in iteration 1"
    )


def test_applied_and_filtered() -> None:
    outcomes = Ran(sums(), "triple", iterations=1).trace("triple").outcomes
    assert [(o.status, o.made_by) for o in outcomes] == [("filtered", "triple")] * 2
    assert outcomes[0].places == ("n",)


def test_applied_and_not_needed() -> None:
    ran = Ran(sums(), "twice", "swap", "big-only")
    ran.egraph.connection.execute("DELETE FROM chosen")
    assert ran.trace("swap").counts == {"not needed": 6}


def test_what_is_computed_at_inference_is_no_matter_of_types() -> None:
    trace = Ran(sums(), "known-only").trace("known-only")
    assert all(step.stage != "worth" for step in trace.steps)
    applied = [o.made_by for o in trace.outcomes if o.places == ("u",)]
    others = [o for o in trace.outcomes if o.places != ("u",)]
    assert applied == ["original", "known-only"]
    assert [(o.places, o.status) for o in others] == [
        (("s",), "not united"),
        (("t",), "not united"),
    ]
    assert {o.detail for o in others} == {"computed at inference: ?b"}


def test_the_run_did_not_have_the_rule() -> None:
    answer = Ran(sums()).ask("join-relus")
    assert not answer.in_run
    (trace,) = answer.traces
    assert [(o.places, o.status) for o in trace.outcomes] == [
        (("r", "rr"), "cyclic"),
        (("r", "q"), "not united"),
        (("rr", "q"), "not united"),
    ]
    assert trace.outcomes[0].detail == "an operand depends on r, which would then depend on itself"
    assert trace.outcomes[1].detail == "the run did not have the rule"


def test_the_same_name_may_be_another_rule(ran: Ran) -> None:
    same, other = replace(RULES["swap"], line=99), replace(RULES["swap"], law="another")
    for rule, in_run in ((same, True), (other, False)):
        (answer,) = why_not(ran.egraph.connection, "swap", "", [rule])
        assert answer.in_run == in_run


# --- where ---


def test_at_a_tensor_only_its_class_counts(ran: Ran) -> None:
    stored = StoredEGraph(ran.egraph.connection)
    for tensor in ("s", "t", "u", "r"):
        owner = stored.class_of(tensor)
        expected = [
            a for a in PythonMatcher(ran.egraph).applications(RULES["swap"]) if a.roots == (owner,)
        ]
        assert ran.trace("swap", tensor).matches == len(expected)


def test_both_sources_can_stand_at_a_tensor(ran: Ran) -> None:
    answer = ran.ask("join-sums", "s")
    owner = StoredEGraph(ran.egraph.connection).class_of("s")
    matches = list(PythonMatcher(ran.egraph).applications(RULES["join-sums"]))
    assert [trace.at for trace in answer.traces] == [1, 2]
    for index, trace in enumerate(answer.traces):
        assert trace.matches == sum(match.roots[index] == owner for match in matches)


def test_unknown_names_get_the_nearest(ran: Ran) -> None:
    with pytest.raises(UsageError, match="unknown rule 'twise'; did you mean 'twice'"):
        why_not(ran.egraph.connection, "twise")
    with pytest.raises(UsageError, match="'ort-silu' is used with --for onnxruntime only"):
        why_not(ran.egraph.connection, "ort-silu")
    with pytest.raises(UsageError, match="unknown tensor 'c2'"):
        why_not(ran.egraph.connection, "twice", "c2")


# --- what a database says ---


@pytest.mark.parametrize("text", ["float32[]", "int64[2,3]", "(float32[2], bool[])", "()"])
def test_types_read_back(text: str) -> None:
    assert type_text(parse_type(text)) == text


def test_another_database_is_refused(tmp_path: Path) -> None:
    with (
        duckdb.connect(str(tmp_path / "other.duckdb")) as other,
        pytest.raises(InputError, match="run"),
    ):
        why_not(other, "swap")
