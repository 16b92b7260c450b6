"""Greedy in SQL chooses what greedy in Python does, over many e-graphs at once."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database, OutOfMemory
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import (
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
    is_acyclic,
)
from relational_tensat.extract.greedy import in_sql as greedy_sql
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.in_sql import (
    STATEMENTS,
    STATEMENTS_PER_WAVE,
    class_costs,
    greedy_dag_sql,
    load_problems,
    tree_greedy_sql,
)
from relational_tensat.extract.greedy.tree import TREE_COST_CEILING, settle_by_tree_cost
from relational_tensat.extract.problem import Floats, Ints
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from tests.egraph.extraction import FlatCost
from tests.explore.example_rules import example_rules
from tests.extract.instances import NodeSpec, brute_force_us, build, layered_problem, random_problem
from tests.graphs import shared_matmuls

Answer = tuple[Ints, Floats]


def several_roots(problem: ExtractionProblem) -> ExtractionProblem:
    """Put a free e-node above three classes of an e-graph, and make it the root."""
    nodes: list[NodeSpec] = [
        (int(problem.node_class[node]), float(problem.cost_us[node]), list(problem.children(node)))
        for node in range(problem.n_nodes)
    ]
    top = problem.n_classes
    roots = [problem.root, 0, top // 2]
    return build([*nodes, (top, 0.0, roots)], top + 1, top)


def in_python(problem: ExtractionProblem, method: str) -> Answer:
    if method == "tree":
        return settle_by_tree_cost(problem, None)
    return DagDeriver(problem)._settle(problem.cost_us, None)


def in_sql(problems: list[ExtractionProblem], method: str) -> list[Answer]:
    database = Database()
    load_problems(database, problems)
    if method == "tree":
        tree_greedy_sql(database)
    else:
        greedy_dag_sql(database)
    answers = class_costs(database, method, problems)
    database.close()
    return answers


@pytest.mark.parametrize("method", ["tree", "dag"])
def test_many_e_graphs_at_once_get_the_costs_and_choices_of_python(method: str) -> None:
    problems = [random_problem(seed) for seed in range(300)]
    problems += [several_roots(problem) for problem in problems[:100]]
    problems += [random_problem(seed, max_classes=40) for seed in range(50)]
    problems.append(layered_problem(layers=3, width=4, seed=1))
    ties = underivable = 0
    for problem, (choice, costs) in zip(problems, in_sql(problems, method), strict=True):
        expected_choice, expected_costs = in_python(problem, method)
        assert costs.tolist() == expected_costs.tolist()
        assert choice.tolist() == expected_choice.tolist()
        ties += len(costs) - len(np.unique(costs))
        underivable += int(np.isinf(costs).sum())
    assert ties > 1000
    assert underivable > 100


@pytest.mark.parametrize("method", ["tree", "dag"])
def test_e_graphs_do_not_see_each_other(method: str) -> None:
    problems = [random_problem(seed, max_classes=12) for seed in range(4)]
    for problem, (_, costs) in zip(problems, in_sql(problems, method), strict=True):
        assert costs.tolist() == in_sql([problem], method)[0][1].tolist()


@pytest.mark.parametrize("method", ["greedy-sql", "greedy-dag-sql"])
def test_choices_are_acyclic_and_not_below_the_optimum(method: str) -> None:
    for seed in range(12):
        problem = random_problem(seed)
        extraction = extract(problem, ExtractionOptions(method))
        assert extraction.method == method
        assert "SQL" in extraction.note or extraction.note == "the original graph"
        assert is_acyclic(problem, extraction.choice)
        assert extraction.cost_us == dag_cost_us(problem, extraction.choice)
        assert extraction.cost_us >= brute_force_us(problem) - 1e-9
        if method == "greedy-dag-sql":
            assert extraction.cost_us <= extract(problem, ExtractionOptions("greedy")).cost_us
            if problem.has_original:
                assert extraction.cost_us <= dag_cost_us(problem, problem.original)


#: Classes 0 to 2 have each other for nothing; one of them must pay for the leaf, class 3.
FREE_CIRCLE = build(
    [
        (0, 0.0, [1]), (0, 2.0, [3]),
        (1, 0.0, [2]), (1, 2.0, [3]),
        (2, 0.0, [0]), (2, 2.0, [3]),
        (3, 1.0, []), (4, 0.0, [0, 1, 2]),
    ],
    5,
    root=4,
)  # fmt: skip


@pytest.mark.parametrize("method", ["greedy-sql", "greedy-dag-sql", "greedy"])
def test_cycles_of_free_ties_are_not_chosen(method: str) -> None:
    # All three classes cost 3 either way: rank sends each to the leaf.
    assert extract(FREE_CIRCLE, ExtractionOptions(method)).choice.tolist() == [1, 3, 5, 6, 7]


@pytest.mark.parametrize("method", ["greedy-sql", "greedy-dag-sql"])
def test_costs_beyond_the_range_of_floats(method: str) -> None:
    nodes: list[NodeSpec] = [(0, 1e299, []), (1, 3e299, [0])]
    nodes += [(level, 1.0, [level - 1, level - 2]) for level in range(2, 12)]
    problem = build(nodes, 12, root=11)
    ((_, tree),) = in_sql([problem], "tree")
    assert tree.tolist() == settle_by_tree_cost(problem, None)[1].tolist()
    assert tree[11] == TREE_COST_CEILING
    assert extract(problem, ExtractionOptions(method)).cost_us == pytest.approx(4e299)


def chain(length: int) -> ExtractionProblem:
    nodes: list[NodeSpec] = [(0, 1.0, [])]
    nodes += [(level, 1.0, [level - 1]) for level in range(1, length)]
    return build(nodes, length, root=length - 1)


@pytest.mark.parametrize(("copies", "length"), [(1, 1), (1, 7), (40, 7), (40, 12)])
def test_the_number_of_statements(copies: int, length: int) -> None:
    """It follows from the number of levels alone, however many e-graphs there are."""
    database = Database()
    load_problems(database, [chain(length)] * copies)
    before = database.statements
    tree_greedy_sql(database)
    assert database.statements - before == 1
    before = database.statements
    assert greedy_dag_sql(database) == length
    assert database.statements - before == STATEMENTS + STATEMENTS_PER_WAVE * length
    database.close()


def test_a_wave_settles_all_that_nothing_can_make_cheaper() -> None:
    # As many e-nodes as one likes on one level: one wave. Only the cycle takes a wave more.
    wide = build([(klass, 1.0 + klass, []) for klass in range(20)], 20)
    cycle = build([(0, 5.0, []), (0, 1.0, [1]), (1, 3.0, []), (1, 1.0, [0])], 2)
    database = Database()
    load_problems(database, [wide])
    assert greedy_dag_sql(database) == 1
    load_problems(database, [wide, cycle])
    assert greedy_dag_sql(database) == 2
    database.close()


def test_an_e_graph_in_tables_is_extracted_there(monkeypatch: pytest.MonkeyPatch) -> None:
    egraph = EGraph.create(shared_matmuls())
    explore(egraph, example_rules(), ExplorationOptions(2))
    table = extraction_problem(egraph, FlatCost(2.0, {"matmul": 10.0}))
    expected = {
        method: extract(table.problem, ExtractionOptions(method)).choice.tolist()
        for method in ("greedy-sql", "greedy-dag-sql")
    }
    monkeypatch.setattr(greedy_sql, "load_problems", None)
    for method, choice in expected.items():
        extraction = extract(
            table.problem, ExtractionOptions(method), tables=table.in_tables(egraph)
        )
        assert extraction.choice.tolist() == choice
        choose(egraph, table, extraction.choice)
        assert chosen_graph(egraph).outputs == egraph.graph.outputs
    names = {name for (name,) in egraph.connection.execute("SHOW TABLES").fetchall()}
    assert not {name for name in names if name.startswith(("greedy_", "dag_", "tree_"))}


@pytest.mark.parametrize("method", ["greedy-sql", "greedy-dag-sql"])
def test_a_root_without_acyclic_derivation_is_refused(method: str) -> None:
    with pytest.raises(NoSolutionError, match="class 0 has no acyclic derivation"):
        extract(
            build([(0, 1.0, [1]), (1, 1.0, [0]), (1, 1.0, [0, 1])], 2), ExtractionOptions(method)
        )


@pytest.mark.parametrize("method", ["greedy-sql", "greedy-dag-sql"])
def test_where_there_is_no_time_python_chooses_and_it_is_reported(method: str) -> None:
    problem = random_problem(3)
    extraction = extract(problem, ExtractionOptions(method, time_limit_s=0.0))
    assert extraction.note.startswith("SQL was not done within the time limit; chosen in Python: ")
    assert (
        extraction.cost_us
        == extract(problem, ExtractionOptions(method.removesuffix("-sql"))).cost_us
    )


def test_sets_that_outgrow_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database()
    load_problems(database, [chain(10)])
    assert greedy_dag_sql(database, most_members=55) == 10  # 1 + 2 + … + 10
    with pytest.raises(greedy_sql.Outgrown):
        greedy_dag_sql(database, most_members=54)
    database.close()
    monkeypatch.setattr(greedy_sql, "MOST_MEMBERS", 54)
    extraction = extract(chain(10), ExtractionOptions("greedy-dag-sql"))
    assert "outgrew 54 rows of SQL; chosen in Python" in extraction.note
    assert extraction.cost_us == 10.0


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Database) -> None:
        raise OutOfMemory("the database's memory limit is reached")

    monkeypatch.setattr(greedy_sql, "tree_greedy_sql", refuse)
    extraction = extract(chain(3), ExtractionOptions("greedy-sql"))
    assert extraction.note == "SQL needed too much memory; chosen in Python: tree-greedy"
