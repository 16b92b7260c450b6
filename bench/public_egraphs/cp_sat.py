"""Extraction as it would be written for OR-Tools CP-SAT: booleans, implications, integer heights.

One boolean per e-node and per class, a class is chosen exactly where one of its e-nodes is, an e-node
implies the classes of its children, the root is chosen. Where the e-graph has cycles, a class is higher
than the children of its e-node, by integers within each strongly connected component. CP-SAT minimises
integers: costs that are not multiples of one unit are rounded to ``_PLACES`` decimal places of the largest,
and the bound is lowered by what that may come to. Nothing is reduced, nothing is known at the start.

OR-Tools and highspy each bring a HiGHS of their own under one name: a process can have only one of them. So
nothing here imports the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from relational_tensat.base.deadline import now_s
from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.extract.index import (
    children_by_node,
    nodes_by_class,
    strong_components_of_classes,
)
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints

_PLACES = 9
_POLL_S = 0.1


@dataclass(frozen=True, eq=False)
class CpSatResult:
    """What CP-SAT found.

    Attributes:
        choice: per class, the e-node it chose, or ``UNUSED``; None without a solution.
        bound: proven lower bound of the cost.
        proven: whether it calls the choice optimal.
        status: its own word.
    """

    choice: Ints | None
    bound: float
    proven: bool
    status: str


def solve_by_cp_sat(problem: ExtractionProblem, time_limit_s: float) -> CpSatResult:
    """Solve an e-graph by CP-SAT, with one worker.

    Args:
        problem: the e-graph.
        time_limit_s: by the clock that limits go by.

    Raises:
        MissingDependencyError: OR-Tools is not installed.
    """
    cp_model = _cp_model()
    unit = _unit(problem)
    model, chosen = _model(problem, unit, cp_model)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    with _stopped_after(solver, time_limit_s):
        status = solver.solve(model)
    name = solver.status_name(status)
    has_solution = name in ("OPTIMAL", "FEASIBLE")
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    if has_solution:
        picked = [node for node in range(problem.n_nodes) if solver.boolean_value(chosen[node])]
        choice[problem.node_class[picked]] = picked
    off = float(np.abs(np.round(problem.cost_us / unit) * unit - problem.cost_us).sum())
    return CpSatResult(
        choice=choice if has_solution else None,
        bound=max(problem.least_cost_us, float(solver.best_objective_bound) * unit - off),
        proven=name == "OPTIMAL",
        status=name.lower(),
    )


def _model(problem: ExtractionProblem, unit: float, cp_model: Any) -> tuple[Any, list[Any]]:
    """Return the model and its boolean per e-node."""
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in range(problem.n_nodes)]
    needed = [model.new_bool_var("") for _ in range(problem.n_classes)]
    for klass, nodes in enumerate(nodes_by_class(problem)):
        model.add(sum(chosen[node] for node in nodes) == needed[klass])
    model.add(needed[problem.root] == 1)
    component = np.array(strong_components_of_classes(problem))
    sizes = np.bincount(component)[component].tolist()
    heights = [model.new_int_var(0, size - 1, "") for size in sizes]
    owner = problem.node_class.tolist()
    for node, children in enumerate(children_by_node(problem)):
        for child in children:
            model.add_implication(chosen[node], needed[child])
            if child == owner[node]:
                model.add(chosen[node] == 0)
            elif component[child] == component[owner[node]]:
                is_above = heights[owner[node]] >= heights[child] + 1
                model.add(is_above).only_enforce_if(chosen[node])
    costs = np.round(problem.cost_us / unit).astype(np.int64).tolist()
    model.minimize(sum(cost * x for cost, x in zip(costs, chosen, strict=True) if cost))
    return model, chosen


def _unit(problem: ExtractionProblem) -> float:
    """Return what costs are counted in: 1 where all are whole numbers."""
    if np.all(problem.cost_us == np.round(problem.cost_us)):
        return 1.0
    return float(np.abs(problem.cost_us).max()) * 10.0**-_PLACES


@contextmanager
def _stopped_after(solver: Any, limit_s: float) -> Iterator[None]:
    """Stop a solver whose search runs in the block when the time is over."""
    is_done = threading.Event()
    start_s = now_s()

    def watch() -> None:
        while not is_done.wait(_POLL_S):
            if now_s() - start_s > limit_s:
                solver.stop_search()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _cp_model() -> Any:
    try:
        return import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise MissingDependencyError(
            "CP-SAT is OR-Tools': pip install 'relational-tensat[bench]'"
        ) from None
