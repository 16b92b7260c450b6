from __future__ import annotations

from dataclasses import replace
from random import Random

import duckdb
import pytest

from bench.models import MODELS
from relational_tensat.base.errors import InputError, NoSolutionError, VerificationError
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.explanation import (
    Checker,
    Explanation,
    StepPlace,
    explain,
    without_detours,
)
from relational_tensat.explain.numeric import check_numerically
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.replay import Replay
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.explain.state import RewrittenNode as ReplayedNode
from relational_tensat.explain.state import State
from relational_tensat.explain.terms import Terms
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.tensor.uses import count_inference_ops
from tests.egraph.extraction import FlatCost, cheapest_graph, original_graph
from tests.explain.runs import (
    choose_at_random,
    explained,
    explored,
    graphs_between,
    random_graph,
    shape_of,
)
from tests.explain.undoing_rules import RULES
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, product_of_its_factor, separate_sums, sum_of
from tests.explore.source_graphs import source_graph
from tests.graphs import f32, fan_of_matmuls, shared_matmuls
from tests.tiers import nightly


@pytest.fixture
def explanation() -> Explanation:
    nodes = [
        Node("sub", ("x", "y"), ("a",)),
        Node("sub", ("y", "x"), ("b",)),
        Node("relu", ("a",), ("c",)),
        Node("relu", ("c",), ("d",)),
        Node("add", ("d", "b"), ("e",)),
    ]
    graph = build_graph("g", {"x": f32(2, 2), "y": f32(2, 2)}, {}, nodes, ["e"])
    cost = FlatCost(by_operator={"sub": 9.0})
    explanation = explained(graph, example_rules("negate", "twice"), cost)
    assert sorted(step.rule for step in explanation.steps) == ["negate", "negate", "twice"]
    return explanation


def check(explanation: Explanation, rewrite: RewriteStep) -> None:
    Checker(explanation.terms, explanation.stored.signatures).check(rewrite)


def by_rule(explanation: Explanation, name: str) -> RewriteStep:
    return next(rewrite for rewrite in explanation.rewrites if rewrite.law.rule.name == name)


def test_right_steps_pass(explanation: Explanation) -> None:
    for rewrite in explanation.rewrites:
        check(explanation, rewrite)


@pytest.mark.parametrize("name", ["negate", "twice"])
def test_another_direction(explanation: Explanation, name: str) -> None:
    step = by_rule(explanation, name)
    backward = replace(
        step,
        forward=False,
        before=step.after,
        after=step.before,
        replaced=tuple(replace(r, before=r.after, after=r.before) for r in step.replaced),
    )
    check(explanation, backward)
    with pytest.raises(VerificationError, match="its rule says something else"):
        check(explanation, replace(step, forward=False))


def test_other_operands(explanation: Explanation) -> None:
    step = by_rule(explanation, "negate")
    with pytest.raises(VerificationError, match="'negate' is wrong: its rule says something else"):
        check(explanation, replace(step, operands=step.operands[::-1]))


def test_another_rule(explanation: Explanation) -> None:
    step, law = by_rule(explanation, "negate"), by_rule(explanation, "negate").law
    (other,) = example_rules("zero")  # x - x = 0: has one variable, where the step has two
    with pytest.raises((VerificationError, ValueError)):
        check(explanation, replace(step, law=replace(law, rule=other)))


def test_a_rule_whose_condition_does_not_hold(explanation: Explanation) -> None:
    from relational_tensat.rules.language import parse_rules

    step = by_rule(explanation, "negate")
    text = """(rule negate (law "a - b = a + -b") (from (sub ?a ?b)) (to (add ?a (neg ?b)))
      (where (= (rank ?a) 3)))"""
    (narrow,) = parse_rules(text, "t.rules")
    with pytest.raises(VerificationError, match="does not apply to such operands"):
        check(explanation, replace(step, law=replace(step.law, rule=narrow)))


def test_more_has_changed(explanation: Explanation) -> None:
    first, second, third = explanation.rewrites
    for step, after in ((first, second.after), (second, third.after), (first, third.after)):
        with pytest.raises(VerificationError, match="more has changed than what its rule replaces"):
            check(explanation, replace(step, after=after))


def test_detours_are_left_out(explanation: Explanation) -> None:
    first, second, third = explanation.rewrites
    back = replace(second, before=second.after, after=second.before)
    start = explanation.original
    assert without_detours(start, [first, second, third]) == [first, second, third]
    assert without_detours(start, [first, second, back, second, third]) == [first, second, third]
    assert without_detours(start, [first, second, back]) == [first]
    assert without_detours(start, [first, replace(first, before=first.after, after=start)]) == []


GRAPHS = (
    mixed(), sum_of(5), separate_sums(3), product_of_its_factor(3), shared_matmuls(),
    fan_of_matmuls(3),
)  # fmt: skip


def graph_of_nodes(nodes: list[Node], outputs: list[str]) -> Graph:
    return build_graph("g", dict.fromkeys("xyz", f32(2, 2)), {}, nodes, outputs)


def printed_steps(explanation: Explanation) -> list[tuple[str, ...]]:
    return [(step.rule, *(place.tensor for place in step.at)) for step in explanation.steps]


def assert_replays(egraph: EGraph, explanation: Explanation) -> None:
    """Fail unless the steps lead through valid graphs, equal in value, to the extracted graph."""
    graphs = graphs_between(explanation)
    assert shape_of(graphs[-1]) == shape_of(chosen_graph(egraph))
    assert shape_of(graphs[0]) == shape_of(egraph.graph)
    for graph in graphs:
        assert graph.output_types() == egraph.graph.output_types()
    assert len({rewrite.after for rewrite in explanation.rewrites}) == len(explanation.steps)
    check = check_numerically(explanation)
    assert check.ok, check.failures


def test_a_chain_of_steps() -> None:
    nodes = [
        Node("identity", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
        Node("sub", ("c", "y"), ("d",)),
    ]
    explanation = explained(
        graph_of_nodes(nodes, ["d"]),
        example_rules("same", "twice", "negate"),
        FlatCost(by_operator={"sub": 9.0}),
    )
    assert explanation.model == "g"
    assert printed_steps(explanation) == [("negate", "d"), ("twice", "c"), ("same", "a")]
    negate, twice, same = explanation.steps
    assert (negate.before, negate.after) == (("sub",), ("neg", "add"))
    assert (twice.before, twice.after) == (("relu", "relu"), ("relu",))
    assert (same.before, same.after) == (("identity",), ())
    assert [step.cost_us for step in explanation.steps] == [5.0, 4.0, 3.0]
    assert [step.operators for step in explanation.steps] == [5, 4, 3]
    assert (explanation.cost_original_us, explanation.cost_after_us) == (12.0, 3.0)
    assert explanation.is_cheaper


def test_nothing_to_explain() -> None:
    explanation = explained(sum_of(3), example_rules("twice"))
    assert explanation.steps == ()
    assert explanation.cost_before_us == explanation.cost_after_us == 2.0
    assert not explanation.is_cheaper


def test_two_sources_are_replaced_in_one_step() -> None:
    cost = FlatCost(0.1, by_operator={"matmul": 9.0})
    explanation = explained(shared_matmuls(), example_rules("join-products"), cost)
    assert printed_steps(explanation) == [("join-products", "a", "b")]
    (step,) = explanation.steps
    assert step.before == ("matmul", "matmul")
    assert step.after == ("concat", "matmul", "split")


def test_values_that_the_model_does_not_have_are_found_by_what_needs_them() -> None:
    nodes = [Node("sub", ("x", "y"), ("a",)), Node("tanh", ("a",), ("b",))]
    text = '(rule minus (law "-x = -1 x") (from (neg ?x)) (to (smul ?x :value -1.0)))'
    rules = [*example_rules("negate"), *parse_rules(text, "t.rules")]
    egraph = explored(graph_of_nodes(nodes, ["b"]), rules)
    cheapest_graph(egraph, FlatCost(by_operator={"sub": 9.0, "neg": 9.0}))
    explanation = explain(egraph.connection)
    negate, minus = explanation.steps
    assert negate.at == (StepPlace("a"),)
    assert (minus.rule, minus.at[0].near) == ("minus", "a")
    assert minus.at[0].tensor.startswith("smul_")
    assert minus.at[0].tensor in chosen_graph(egraph).types  # what the optimized model calls it
    assert_replays(egraph, explanation)


def test_equal_nodes_are_shared_before_the_first_step() -> None:
    nodes = [
        Node("tanh", ("x",), ("a",)), Node("tanh", ("x",), ("b",)),
        Node("relu", ("a",), ("c",)), Node("relu", ("b",), ("d",)), Node("add", ("c", "d"), ("e",)),
    ]  # fmt: skip
    egraph = explored(graph_of_nodes(nodes, ["e"]), [])
    original_graph(egraph)
    explanation = explain(egraph.connection)
    assert explanation.shared == (("a", "b"), ("c", "d"))
    assert (explanation.cost_original_us, explanation.cost_before_us) == (5.0, 3.0)
    assert explanation.steps == ()


def test_a_law_is_read_backward_where_the_log_has_it_the_other_way() -> None:
    nodes = [
        Node("neg", ("x",), ("a",)),
        Node("add", ("y", "a"), ("b",)),
        Node("sub", ("y", "x"), ("c",)),
    ]
    egraph = explored(graph_of_nodes(nodes, ["b", "c"]), example_rules("negate"))
    cheapest_graph(egraph, FlatCost(by_operator={"neg": 9.0, "add": 9.0}))
    explanation = explain(egraph.connection)
    (step,) = explanation.steps
    assert step.backward
    assert step.at == (StepPlace("b"),)
    assert (step.before, step.after) == (("neg", "add"), ("sub",))
    assert_replays(egraph, explanation)


def test_more_outputs_than_an_e_node_has_children() -> None:
    nodes = [
        Node("identity", ("x",), ("a",)),
        *(Node("relu", ("a",), (f"r{i}",)) for i in range(3)),
    ]
    nodes += [Node("tanh", (f"r{i}",), (f"t{i}",)) for i in range(3)]
    nodes += [Node("concat", ("r0", "t0", "x", "a", "y", "z", "t1"), ("wide",), {"axis": 0})]
    outputs = ["wide", "a", "x", "t2", "y", "z", "r1"]
    egraph = explored(graph_of_nodes(nodes, outputs), example_rules("same"))
    cheapest_graph(egraph)
    explanation = explain(egraph.connection)
    assert printed_steps(explanation) == [("same", "a")]
    assert_replays(egraph, explanation)


def test_an_exploration_that_was_continued_keeps_its_reasons() -> None:
    nodes = [
        Node("identity", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
    ]
    egraph = explored(graph_of_nodes(nodes, ["c"]), example_rules("same", "swap"))
    explore(egraph, example_rules("negate", "twice"))
    cheapest_graph(egraph)
    assert printed_steps(explain(egraph.connection)) == [("twice", "c"), ("same", "a")]


@pytest.mark.parametrize("seed", [*range(10), *map(nightly, range(10, 30))])
def test_rules_that_undo_each_other(seed: int) -> None:
    random = Random(seed)
    rules = random.sample(RULES, random.choice([5, 8, 12]))
    limits = ExplorationOptions(5, node_limit=random.choice([100, 300]), multi_iterations=2)
    egraph = explored(random_graph(random), rules, limits, ("none", "efficient")[seed % 2])
    choose_at_random(egraph, random)
    assert_replays(egraph, explain(egraph.connection))


@pytest.mark.parametrize("seed", [*range(6), *map(nightly, range(6, 18))])
def test_any_choice_can_be_explained(seed: int) -> None:
    random = Random(seed)
    rules = random.sample(example_rules(), 7)
    graph = random.choice([*GRAPHS, *(random_graph(random) for _ in range(6))])
    cycle_filter = ("efficient", "none", "vanilla")[seed % 3]
    slow = cycle_filter == "vanilla"
    limits = ExplorationOptions(
        2 if slow else 5, node_limit=60 if slow else 400, multi_iterations=1 if slow else 2
    )
    egraph = explored(graph, rules, limits, cycle_filter)
    choose_at_random(egraph, random)
    assert_replays(egraph, explain(egraph.connection))


_SLOW = ("nasrnn", "mobilenet_v2", "squeezenet")


@pytest.mark.parametrize("name", ["bert", "vgg19", *map(nightly, _SLOW)])
def test_models(name: str, shipped: list[Rule]) -> None:
    egraph = EGraph.create(MODELS[name]())
    explore(egraph, shipped, ExplorationOptions(2, node_limit=1500))
    cost = load_profile("t4")
    table = extraction_problem(egraph, cost)
    choose(egraph, table, extract(table.problem, ExtractionOptions("greedy-dag")).choice)
    explanation = explain(egraph.connection)
    last = graphs_between(explanation)[-1]
    assert shape_of(last) == shape_of(chosen_graph(egraph))
    assert explanation.steps
    assert explanation.cost_original_us == pytest.approx(graph_cost_us(egraph.graph, cost))
    assert explanation.cost_after_us == pytest.approx(graph_cost_us(chosen_graph(egraph), cost))
    operators = count_inference_ops(last)
    assert explanation.steps[-1].operators == sum(operators.values()) - operators.get("noop", 0)


def test_what_cannot_be_explained() -> None:
    egraph = explored(sum_of(3), example_rules("swap"))
    with pytest.raises(InputError, match="no graph has been extracted"):
        explain(egraph.connection)
    egraph.connection.execute("INSERT INTO chosen VALUES (1, 1)")
    with pytest.raises(InputError, match="not complete: an e-class has no e-node"):
        explain(egraph.connection)
    egraph.connection.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
    with pytest.raises(InputError, match=r"format 1, expected \d+: run the model again"):
        explain(egraph.connection)
    with pytest.raises(InputError, match="not a database of a run"):
        explain(duckdb.connect())


def test_a_choice_that_goes_in_cycles() -> None:
    nodes = [Node("relu", ("x",), ("a",)), Node("relu", ("a",), ("b",))]
    egraph = explored(graph_of_nodes(nodes, ["b"]), example_rules("twice"), cycle_filter="none")
    cheapest_graph(egraph)
    egraph.connection.execute("""
        UPDATE chosen SET enode = e.id FROM enode AS e WHERE e.class = chosen.class AND e.c0 = e.class
    """)
    with pytest.raises(InputError, match="the extracted graph is cyclic"):
        explain(egraph.connection)


def test_one_rule_leads_on_from_each_of_nested_nodes_of_one_form() -> None:
    nodes = [Node("tanh", ("x",), ("a",)), Node("identity", ("a",), ("b",))]
    rules = [rule for rule in RULES if rule.name == "rename"]
    egraph = explored(graph_of_nodes(nodes, ["b"]), rules)
    cheapest_graph(egraph)
    stored = StoredEGraph(egraph.connection)
    graph = ProofGraph(stored)
    form_of = {
        stored.signatures[node.signature].symbol.op: form for form, node in graph.nodes.items()
    }
    node = ReplayedNode(form_of["tanh"], [ReplayedNode(form_of["input"], [])])
    for _ in range(4):
        node = ReplayedNode(form_of["identity"], [node])
    chosen = {
        graph.owner(form): graph.enode(form) for op, form in form_of.items() if op != "identity"
    }
    state = State([node], lambda form: graph.nodes[form].signature)
    rewrites = Replay(graph, state, chosen, Terms(), 100).run()
    assert [rewrite.law.rule.name for rewrite in rewrites] == ["rename"] * 4
    assert state.outputs[0].form == form_of["tanh"]


def test_steps_have_a_limit() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
    ]
    egraph = explored(graph_of_nodes(nodes, ["c"]), example_rules("twice"))
    cheapest_graph(egraph)
    assert len(explain(egraph.connection, most_steps=2).steps) == 2
    with pytest.raises(NoSolutionError, match="no explanation found: more than 1 steps"):
        explain(egraph.connection, most_steps=1)


@pytest.fixture(scope="module")
def shipped() -> list[Rule]:
    return load_rules(None)


@pytest.mark.parametrize("seed", [*range(4), *map(nightly, range(4, 10))])
def test_any_choice_with_the_rules_that_ship(seed: int, shipped: list[Rule]) -> None:
    random = Random(seed)
    rules = [rule.everywhere for rule in random.sample(shipped, 30)]
    graph = source_graph(rules[:6], random)
    egraph = explored(
        graph, rules, ExplorationOptions(4, node_limit=300), ("efficient", "none")[seed % 2]
    )
    choose_at_random(egraph, random)
    assert_replays(egraph, explain(egraph.connection))
