"""One method on one e-graph file, in a process of its own: it may crash, or need too much memory.

Limits are CPU seconds: what others do on the machine changes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.extract.check import chosen_cost
from bench.public_egraphs.cp_sat import solve_by_cp_sat
from relational_tensat.base.deadline import counting_cpu_seconds, now_s
from relational_tensat.base.errors import NoSolutionError, RelationalTensatError
from relational_tensat.extract.interchange import read_egraph_json
from relational_tensat.extract.problem import ExtractionProblem, relative_gap

#: What is compared, ours first: OR-Tools, the plain integer program, and what needs no solver.
METHODS = ("ours", "cp-sat", "highs", "greedy-dag")

_PATIENCE = 20
"""Wall seconds per CPU second of the limit after which a process is given up."""

_LEAST_WALL_S = 120.0


@dataclass(frozen=True, slots=True)
class Solved:
    """What a method has of a file. The attributes are columns of what is kept.

    Attributes:
        status: ``optimal``, ``time-out`` (with the best so far), ``done`` (nothing was to be proven),
            ``no solution`` (none in time), ``cyclic`` (the answer is no graph), ``not derivable`` (a root
            has no acyclic derivation), ``unreadable``, ``killed`` (by its limit, or it crashed).
        e_nodes, e_classes: of the file, 0 where it could not be read.
        cost: of the choice, re-computed from it by other code; None where there is none.
        bound: no choice is cheaper.
        gap: (cost - bound) / |cost|; None where nothing was to be proven, or nothing was found.
        cpu_s: of extraction alone.
        note: what the file's reader and the method noted, or why there is no cost.
    """

    status: str
    e_nodes: int = 0
    e_classes: int = 0
    cost: float | None = None
    bound: float = 0.0
    gap: float | None = None
    cpu_s: float = 0.0
    note: str = ""


def solve_apart(file: Path, method: str, limit_s: float) -> Solved:
    """Run a method on a file in a process of its own.

    Args:
        file: an e-graph.
        method: one of ``METHODS``.
        limit_s: CPU seconds of the extraction.
    """
    command = [sys.executable, "-m", __name__, str(file), method, str(limit_s)]
    wall_s = max(_LEAST_WALL_S, _PATIENCE * limit_s)
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=wall_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Solved("killed", note=f"still at work after {wall_s:.0f} wall seconds")
    with suppress(ValueError, IndexError, TypeError):
        return Solved(**json.loads(process.stdout.splitlines()[-1]))
    lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
    return Solved("killed", note=lines[-1])


def solve(file: Path, method: str, limit_s: float) -> Solved:
    """Run a method on a file in this process; see ``solve_apart``.

    Raises:
        MissingDependencyError: the method's solver is not installed.
    """
    try:
        egraph = read_egraph_json(file)
        egraph.check_derivable(str(file))
    except RelationalTensatError as error:
        is_hopeless = isinstance(error, NoSolutionError)
        return Solved("not derivable" if is_hopeless else "unreadable", note=str(error))
    with counting_cpu_seconds():
        solved = (_by_cp_sat if method == "cp-sat" else _by_highs)(egraph.problem, method, limit_s)
    return replace(
        solved,
        e_nodes=egraph.problem.n_nodes,
        e_classes=egraph.problem.n_classes,
        cpu_s=round(solved.cpu_s, 3),
        note="; ".join(filter(None, [egraph.note, solved.note])),
    )


def _by_cp_sat(problem: ExtractionProblem, _: str, limit_s: float) -> Solved:
    start_s = now_s()
    result = solve_by_cp_sat(problem, limit_s)
    cpu_s = now_s() - start_s
    cost = None if result.choice is None else chosen_cost(problem, result.choice)
    if result.choice is None or cost is None:
        status = "no solution" if result.choice is None else "cyclic"
        return Solved(status, cpu_s=cpu_s, bound=result.bound, note=result.status)
    gap = relative_gap(cost, result.bound)
    status = "optimal" if result.proven else "time-out"
    return Solved(status, cost=cost, bound=result.bound, gap=gap, cpu_s=cpu_s)


def _by_highs(problem: ExtractionProblem, method: str, limit_s: float) -> Solved:
    from bench.extract.methods import run_method  # not beside CP-SAT in one process

    answer = run_method(problem, method, limit_s)
    return Solved(
        answer.status,
        cost=answer.cost,
        bound=answer.bound,
        gap=answer.gap,
        cpu_s=answer.cpu_s,
        note=answer.note,
    )


if __name__ == "__main__":
    _, path, name, seconds = sys.argv
    print(json.dumps(asdict(solve(Path(path), name, float(seconds)))))
