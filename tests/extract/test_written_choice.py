"""A choice written as text is found again in another e-graph, whose ids are others."""

from __future__ import annotations

from contextlib import closing

import pytest

from bench.models import MODELS
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.kept_choice import find_choice, text_of_choice
from relational_tensat.extract.tables import (
    choice_of,
    choose,
    chosen_graph,
    enodes_in_order,
    extraction_problem,
)
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph
from tests.tiers import nightly

PROFILE = load_profile("t4")


def explored(graph: Graph, iterations: int, *, backwards: bool = False) -> EGraph:
    egraph = EGraph.create(graph)
    rules = load_rules()
    options = ExplorationOptions(iterations=iterations, node_limit=2000)
    explore(egraph, rules[::-1] if backwards else rules, options)
    return egraph


@pytest.mark.parametrize("name", ["squeezenet", nightly("nasrnn")])
def test_it_is_found_in_an_egraph_whose_ids_are_others(name: str) -> None:
    with closing(explored(MODELS[name](), 2)) as first:
        table = extraction_problem(first, PROFILE)
        found = extract(table.problem, ExtractionOptions(extractor="greedy-dag"))
        enodes = enodes_in_order(table, found.choice)
        choose(first, table, found.choice)
        graph, text = chosen_graph(first), text_of_choice(first, enodes)
        assert find_choice(first, text) == enodes
    with closing(explored(MODELS[name](), 2, backwards=True)) as other:
        again = find_choice(other, text)
        assert again is not None and again != enodes
        other_table = extraction_problem(other, PROFILE)
        choice = choice_of(other_table, again)
        assert choice is not None
        choose(other, other_table, choice)
        assert chosen_graph(other).count_ops() == graph.count_ops()


def test_what_an_egraph_lacks_is_not_found() -> None:
    with closing(explored(MODELS["squeezenet"](), 2)) as first:
        table = extraction_problem(first, PROFILE)
        found = extract(table.problem, ExtractionOptions(extractor="greedy-dag"))
        text = text_of_choice(first, enodes_in_order(table, found.choice))
    with closing(EGraph.create(MODELS["squeezenet"]())) as unexplored:
        assert find_choice(unexplored, text) is None
    with closing(EGraph.create(MODELS["nasrnn"]())) as other:
        assert find_choice(other, text) is None
