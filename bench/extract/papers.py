"""The integer programs of TENSAT and of TENSAT+MCTS, as the papers write them, for comparison.

TENSAT (Yang et al., 2021), section 5.2, and its ``extractor/extract.py``: x_i binary per e-node; the
sum of x over the root class is 1; x_i <= sum of x over each child class of i; and against cycles, a
variable t per class with t_m - t_d - eps + A (1 - x_i) >= 0 for every e-node i of class m and child
class d of it: t real in [0, 1], eps = 1 / (10 M), A = 2; or t an integer below M classes, eps = 1,
A = M. Without t, the e-graph is trusted to be acyclic. Nothing is reduced, nothing is known at the
start. Here HiGHS solves them, there SCIP; what comes back is rounded here, truncated there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.solve.constraints import Columns, Rows, stack_rows
from relational_tensat.extract.exact.solve.formulation import rows_from_triples
from relational_tensat.extract.exact.solve.search import SolverOptions
from relational_tensat.extract.exact.solve.solver import solve_mip
from relational_tensat.extract.index import edge_owner, nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints

#: How cycles are forbidden: by real or integer t, or not at all.
FORMS = ("real", "int", "none")


@dataclass(frozen=True, eq=False)
class PaperResult:
    """What the solver reported.

    Attributes:
        choice: per class, the e-node it chose, or ``UNUSED``; None without a solution. Not
            checked: without t it may be cyclic.
        bound: proven lower bound of the cost (0 where none, unless costs are negative).
        proven: whether the solver calls the choice optimal.
        status: the solver's status in words.
    """

    choice: Ints | None
    bound: float
    proven: bool
    status: str


def solve_paper_form(
    problem: ExtractionProblem, form: str, time_limit_s: float, *, threads: int = 1
) -> PaperResult:
    """Solve one of ``FORMS``.

    Args:
        problem: the e-graph.
        form: ``real``, ``int`` or ``none``.
        time_limit_s: seconds for HiGHS.
        threads: HiGHS threads.

    Raises:
        RelationalTensatError: HiGHS refused the model.
    """
    watch = Watch(time_limit_s)
    columns, rows = paper_form(problem, form)
    result = solve_mip(columns, rows, SolverOptions(watch, threads))
    choice = None if result.values is None else _chosen(problem, result.values)
    bound = max(problem.least_cost_us, result.bound)
    return PaperResult(choice, bound, result.proven, result.status)


def paper_form(problem: ExtractionProblem, form: str) -> tuple[Columns, Rows]:
    """Return the integer program: x per e-node, then t per class where the form has it."""
    n, n_classes = problem.n_nodes, problem.n_classes
    n_order = 0 if form == "none" else n_classes
    blocks = [_root_row(problem), _child_rows(problem)]
    if n_order:
        blocks.append(_order_rows(problem, form))
    upper = np.ones(n + n_order)
    if form == "int":
        upper[n:] = max(n_classes - 1, 0)
    integer = np.arange(n + n_order) < (n + n_order if form == "int" else n)
    cost = np.concatenate([problem.cost_us, np.zeros(n_order)])
    return Columns(cost, np.zeros(n + n_order), upper, integer), stack_rows(blocks)


def _root_row(problem: ExtractionProblem) -> Rows:
    nodes = np.flatnonzero(problem.node_class == problem.root)
    bound = np.ones(1)
    return rows_from_triples(
        np.zeros(len(nodes), np.int64), nodes, np.ones(len(nodes)), bound, bound
    )


def _child_rows(problem: ExtractionProblem) -> Rows:
    """A row per e-node and child: the sum of x over the child's class, less x, is at least 0."""
    owner = edge_owner(problem.child_ptr)
    members = nodes_by_class(problem)
    sizes = np.array([len(nodes) for nodes in members])[problem.child_idx]
    flat = [node for child in problem.child_idx.tolist() for node in members[child]]
    edges = np.arange(len(owner))
    row = np.concatenate([edges, np.repeat(edges, sizes)])
    column = np.concatenate([owner, np.array(flat, dtype=np.int64)])
    value = np.concatenate([-np.ones(len(owner)), np.ones(len(flat))])
    loop = problem.node_class[owner] == problem.child_idx  # x_i stands on both sides: no row
    is_kept = ~loop[row]
    lower = np.zeros(len(owner))
    return rows_from_triples(
        row[is_kept], column[is_kept], value[is_kept], lower, np.full(len(owner), np.inf)
    )


def _order_rows(problem: ExtractionProblem, form: str) -> Rows:
    n, n_classes = problem.n_nodes, problem.n_classes
    step, big = (1.0 / (10 * n_classes), 2.0) if form == "real" else (1.0, float(n_classes))
    owner = edge_owner(problem.child_ptr)
    parent, count = problem.node_class[owner], len(owner)
    edge = np.arange(count)
    plain = parent != problem.child_idx  # a self-loop's t cancel: x = 0 remains
    row = np.concatenate([edge, edge[plain], edge[plain]])
    column = np.concatenate([owner, n + parent[plain], n + problem.child_idx[plain]])
    unit_coefficients = np.ones(int(plain.sum()))
    value = np.concatenate([np.full(count, -big), unit_coefficients, -unit_coefficients])
    return rows_from_triples(row, column, value, np.full(count, step - big), np.full(count, np.inf))


def _chosen(problem: ExtractionProblem, values: Floats) -> Ints:
    """Return the choice; of several e-nodes of one class that of the lowest number, as TENSAT does."""
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    picked = np.flatnonzero(np.round(values[: problem.n_nodes]) >= 1)[::-1]
    choice[problem.node_class[picked]] = picked
    return choice
