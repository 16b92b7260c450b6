"""What the results of cells say, in the words and units of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.common.cell_results import Result
from bench.common.table import Value
from bench.paper.cells import Cell

Results = Mapping[Cell, Result]


def percent(before_us: float, after_us: float) -> float:
    """Return the speed-up as the paper counts it: how much longer the original takes, in percent."""
    return 100 * (before_us / after_us - 1)


def speedup(result: Result, after_us: float | None) -> Value:
    """Return the speed-up in percent; of no solution, in words. A costlier graph is not taken."""
    if after_us is None:
        return "no solution"
    before_us = result["cost_before_us"]
    return percent(before_us, min(before_us, after_us))


def answer(result: Result, method: str) -> dict[str, Any] | None:
    """Return what an extractor found; None where the cell failed."""
    extraction: dict[str, Any] | None = result.get("answers", {}).get(method)
    return extraction


def failure(result: Result) -> str | None:
    """Return, in a word, why there is no result; None where there is one."""
    if "error" not in result:
        return None
    return "not run" if result.get("not_run") else "failed"


def seconds(result: Result, method: str) -> Value:
    """Return an extraction's CPU seconds; where it met its limit, that, in wall seconds."""
    extraction = answer(result, method)
    if extraction is None:
        return failure(result)
    if extraction["status"] == "time-out":
        return f"time-out at {extraction['wall_s']:.0f} s"
    if extraction["status"] in ("no solution", "cyclic"):
        return f"{extraction['status']}, {extraction['wall_s']:.0f} s"
    return float(extraction["cpu_s"])


def exploration_s(result: Result) -> Value:
    """Return an exploration's CPU seconds; where it met its limit, that, in wall seconds."""
    if "error" in result:
        return failure(result)
    if result["stop_reason"] == "time":
        return f"time-out at {result['explore_wall_s']:.0f} s"
    return float(result["explore_cpu_s"])


def total_s(result: Result) -> Value:
    """Return the CPU seconds of exploration and exact extraction together, time-outs marked."""
    extraction = answer(result, "ours")
    if extraction is None:
        return failure(result)
    total = float(result["explore_cpu_s"]) + float(extraction["cpu_s"])
    is_late = result["stop_reason"] == "time" or extraction["status"] == "time-out"
    return f"{total:.1f} (time-out)" if is_late else total


def saved(result: Result) -> Value:
    """Return the speed-up in percent of what the exact extraction found."""
    extraction = answer(result, "ours")
    return None if extraction is None else speedup(result, extraction["cost_us"])


def proof(result: Result) -> Value:
    """Return whether the exact extraction's cost is proven, or what might still be saved."""
    extraction = answer(result, "ours")
    if extraction is None or extraction["gap"] is None:
        return None
    return "optimal" if extraction["status"] == "optimal" else f"gap {extraction['gap']:.1%}"
