"""Results as cells would have them, made up: every table has something to say."""

from __future__ import annotations

from collections.abc import Sequence

from bench.paper.cells import BUDGETS, Cell, cells_of
from bench.paper.runs import EXTRACTORS, PROGRAMS, Result

#: Of the original graph.
BEFORE_US = 1200.0


def answer(cost_us: float | None, status: str = "optimal", wall_s: float = 2.0) -> Result:
    gap = None if cost_us is None else 0.0 if status == "optimal" else 0.125
    return {"status": status, "cost_us": cost_us, "gap": gap, "cpu_s": 1.5, "wall_s": wall_s}


def result(cell: Cell) -> Result:
    before = {"cost_before_us": BEFORE_US}
    sizes = {
        "e_nodes": 1000 * (cell.k_multi + 1),
        "e_classes": 500,
        "iterations": 4,
        "stop_reason": "saturated",
    }
    seconds = {"explore_cpu_s": 0.25, "explore_wall_s": 0.5}
    match cell.kind:
        case "saturate":
            return {
                **before,
                **sizes,
                **seconds,
                "answers": {m: answer(1000.0) for m in EXTRACTORS},
            }
        case "solve":
            methods = PROGRAMS[cell.variant]
            return {**before, **sizes, **seconds, "answers": {m: answer(1000.0) for m in methods}}
        case "explore":
            return {**before, **sizes, **seconds}
        case "anytime":
            moments = [{"cpu_s": 0.1, "best_us": 1250.0}, {"cpu_s": 0.5, "best_us": 1000.0}]
            return {**before, **sizes, "moments": moments, "gap": 0.0}
        case _:
            first = {"rewritten": 0, "cpu_s": 0.1, "best_us": BEFORE_US}
            best = {"rewritten": 7, "cpu_s": 0.75, "best_us": 1100.0}
            last = {"rewritten": 1000, "cpu_s": 3.0, "best_us": 1100.0}
            ended = {str(n): {**last, "rewritten": n, "found": best} for n in BUDGETS}
            return {
                **before, "alpha": 1.05, "stop_reason": "budget", "queued": 321, "budgets": ended,
                "moments": [first, best, last], "recomputed_us": 1100.0,
            }  # fmt: skip


def results(tables: Sequence[str], models: Sequence[str]) -> dict[Cell, Result]:
    return {cell: result(cell) for cell in cells_of(tables, models)}
