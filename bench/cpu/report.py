"""The table of ``python -m bench cpu``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from bench.cpu.measure import CpuRun
from relational_tensat.cli.console import table
from relational_tensat.cost.device import WholeTiming

_COLUMNS = (
    "µs before", "sum / whole", "p10-p90 sum", "cost / whole", "modelled",
    "off", "p10-p90", "all", "p10-p90 all",
)  # fmt: skip


def print_runs(runs: Sequence[CpuRun], console: Console) -> None:
    """Print times and speed-ups, what measuring took, and where the optimized graph is slower."""
    console.print(
        "Thread CPU time in onnxruntime, one thread. 'sum / whole': the original's single operators"
    )
    console.print(
        "against the whole graph, timed together, less what calling an empty session takes"
    )
    console.print("(*: some run in graphs only). 'cost / whole': what the run took them to cost.")
    console.print("Speed-ups: by these costs, and measured with onnxruntime's graph optimizations")
    console.print("off and all, median and spread over the rounds.")
    rows = table("model", *_COLUMNS, numbers=_COLUMNS)
    for run in runs:
        off, full = run.timings["off"], run.timings["all"]
        rows.add_row(
            run.model,
            f"{off.before_us:,.0f}",
            f"{run.additivity.median:.3f}" + "*" * (run.additivity.unmeasured > 0),
            f"{run.additivity.p10:.3f}-{run.additivity.p90:.3f}",
            f"{run.modelled_over_whole:.3f}",
            f"{run.modelled_speedup:.3f}",
            f"{off.speedup:.3f}",
            _spread(off),
            f"{full.speedup:.3f}",
            _spread(full),
        )
    console.print(rows)
    console.print()
    _print_work(runs, console)
    slower_runs = losses(runs)
    for line in slower_runs:
        console.print(f"slower than the original: {line}")
    if not slower_runs:
        console.print("no optimized graph is slower than its original beyond the noise")


def losses(runs: Sequence[CpuRun]) -> list[str]:
    """Return where the optimized graph is slower in nine rounds of ten, and by how much."""
    return [
        f"{run.model}, optimizations {mode}: {timing.speedup:.3f}x ({_spread(timing)}), "
        f"modelled {run.modelled_speedup:.3f}x"
        for run in runs
        for mode, timing in run.timings.items()
        if timing.is_loss
    ]


def _print_work(runs: Sequence[CpuRun], console: Console) -> None:
    names = ("measured", "cached", "estimated", "measuring s", "optimizing s")
    rows = table("model", *names, "rules that won (e-nodes each made)", numbers=names)
    for run in runs:
        rows.add_row(
            run.model,
            *(str(run.costs[origin]) for origin in ("measured", "cached", "estimated")),
            f"{run.seconds['measure']:.1f}",
            f"{run.seconds['total']:.1f}",
            ", ".join(f"{name} {count}" for name, count in run.rules_used.items()) or "none",
        )
    console.print(rows)
    console.print()


def _spread(timing: WholeTiming) -> str:
    return f"{timing.speedup_p10:.3f}-{timing.speedup_p90:.3f}"
