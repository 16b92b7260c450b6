"""E-nodes that cost less than nothing, against brute force; what is worth taking must be needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.cli.main import main
from relational_tensat.extract import ExtractionOptions, ExtractionProblem, dag_cost_us, extract
from tests.extract.instances import brute_force_us, build
from tests.extract.small_egraphs import small_problem
from tests.tiers import seeds


def signed(seed: int) -> ExtractionProblem:
    """Return a small e-graph of which some e-nodes have their costs negated."""
    problem = small_problem(seed)
    is_negated = np.random.default_rng(seed).random(problem.n_nodes) < 0.3
    return replace(problem, cost_us=np.where(is_negated, -problem.cost_us, problem.cost_us))


@pytest.mark.parametrize("numbers", seeds(150))
def test_the_optimum_is_found_and_proven(numbers: range) -> None:
    negative = 0
    for seed in numbers:
        problem = signed(seed)
        extraction = extract(problem)
        assert extraction.cost_us == pytest.approx(brute_force_us(problem)), seed
        assert extraction.optimal and extraction.bound_us == extraction.cost_us, seed
        assert dag_cost_us(problem, extraction.choice) == pytest.approx(extraction.cost_us)
        negative += problem.has_negative_costs
    assert negative > len(numbers) / 2


def test_a_class_that_nobody_needs_is_not_taken() -> None:
    gain = (1, -5.0, [])
    assert extract(build([(0, 2.0, []), gain], 2)).cost_us == 2.0
    needed = extract(build([(0, 2.0, []), (0, 3.0, [1]), gain], 2))
    assert needed.cost_us == -2.0 and needed.optimal
    # Nor are two that need each other.
    circle = [(1, -5.0, [2]), (2, -5.0, [1]), (1, 9.0, [])]
    assert extract(build([(0, 2.0, []), *circle], 3)).cost_us == 2.0


def test_greedy_methods_count_them_as_free() -> None:
    problem = build([(0, 2.0, []), (0, 3.0, [1]), (1, -5.0, [])], 2)
    for method in ("greedy", "greedy-dag"):
        extraction = extract(problem, ExtractionOptions(method))
        assert extraction.cost_us == 2.0 and not extraction.optimal
        assert "negative costs counted as 0" in extraction.note
        assert (extraction.bound_us, extraction.gap) == (-5.0, 1.0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = {
        "a": {"op": "f", "children": ["b"], "eclass": "A", "cost": 3},
        "b": {"op": "g", "children": [], "eclass": "B", "cost": -5, "id": 7},
    }
    path = tmp_path / "egraph.json"
    path.write_text(json.dumps({"nodes": nodes, "root_eclasses": ["A"], "comment": "[b]"}))
    assert main(["extract", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "cost -2 (optimal)" in printed
    assert "note: ignored: 'comment' of the file, 'id' of e-nodes" in printed
    assert "note: negative costs count where a chosen e-node needs them" in printed
