"""The extractions of a run, for people: what was reduced, and how the cheapest graph got cheaper."""

from __future__ import annotations

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.cli.run_reductions import components_text
from relational_tensat.run.result import ExtractionSummary, Result

_REDUCTIONS_SHOWN = 3
_GROWN_FROM = {
    "saturation": "saturation",
    "original": "the original",
    "chosen": "a best",
    "beside": "both",
    "universe": "all worlds",
    "decision": "the decisions",
    "rollout": "a rollout",
}


def reduced_line(summary: ExtractionSummary) -> str:
    """Return the line with the sizes before and after the reductions, which were made."""
    dropped = sorted(summary.reductions.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {count:,}" for name, count in dropped[:_REDUCTIONS_SHOWN]]
    more = [f"{len(dropped) - _REDUCTIONS_SHOWN} more"] if len(dropped) > _REDUCTIONS_SHOWN else []
    suffix = f" (e-nodes dropped: {', '.join(shown + more)})" if shown else ""
    components = components_text(summary.components or 0, summary.distinct_components or 0)
    return (
        f"reduced: {summary.e_nodes:,} e-nodes in {summary.e_classes:,} e-classes → "
        f"{summary.reduced_e_nodes:,} in {summary.reduced_e_classes:,}{components}{suffix}"
    )


def print_extractions(result: Result, console: Console) -> None:
    """Print the iterations, and what the cheapest graph cost after each that was extracted from."""
    numbers = ("iteration", "e-nodes", "e-classes", "s", "best µs", "bound µs", "extracted in s")
    rows = table(*numbers, numbers=numbers)
    for report in result.log:
        sizes = (f"{report.e_nodes:,}", f"{report.e_classes:,}", f"{report.seconds:.2f}")
        entries = [entry for entry in result.extractions if entry.iteration == report.iteration]
        best = ("", "", "")
        if entries:
            last = entries[-1]
            bound = "optimal" if last.optimal else f"{last.bound_us:,.2f}"
            seconds = sum(entry.seconds for entry in entries)
            best = (f"{last.best_us:,.2f}", bound, f"{seconds:.2f}")
        rows.add_row(str(report.iteration), *sizes, *best)
    console.print(rows)


def print_worlds(result: Result, console: Console) -> None:
    """Print the worlds of a search, what they added, and what the cheapest graph cost after each."""
    numbers = ("world", "limit", "e-nodes", "of all", "from µs", "to µs", "best µs", "at s")
    rows = table("world", "grown from", *numbers[1:], "ended", numbers=numbers)
    best_us = float("inf")
    for world in result.worlds:
        best_us = min(best_us, world.best_us)
        rows.add_row(
            str(world.world),
            _GROWN_FROM[world.kind],
            f"{world.node_limit:,}",
            f"{world.e_nodes:,}",
            f"{world.universe:,}",
            f"{world.seed_us:,.2f}",
            f"{world.best_us:,.2f}",
            f"{best_us:,.2f}",
            f"{world.seconds:.2f}",
            world.stop_reason,
        )
    console.print(rows)


def print_decisions(result: Result, console: Console) -> None:
    """Print the decisions of a tree search: the rules that were applied, and what graphs cost by then."""
    numbers = (
        "decision", "rollouts", "mean ms", "e-nodes", "of all", "cost µs", "a rollout's µs", "at s",
    )  # fmt: skip
    rows = table("decision", "rule", *numbers[1:], numbers=numbers)
    for decision in result.decisions:
        rows.add_row(
            str(decision.decision),
            decision.rule,
            f"{decision.rollouts:,}",
            f"{decision.mean_ms:.4f}",
            f"{decision.e_nodes:,}",
            f"{decision.universe:,}",
            f"{decision.cost_us:,.2f}",
            f"{decision.best_us:,.2f}",
            f"{decision.seconds:.2f}",
        )
    console.print(rows)
