"""The course of a run, for people: extractions, reductions, races, costs of kernels."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.extract import Extraction
from relational_tensat.extract.techniques import TECHNIQUES
from relational_tensat.run.reports import RaceReport
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import ExtractionSummary

#: Characters of the longest bar; eighths of one are shown.
_WIDTH = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"
#: Operators that are shown.
_SHOWN = 12


def print_kernels(kernels_us: Mapping[str, tuple[float, float]], console: Console) -> None:
    """Print what kernels cost by operator, the costliest first; the rest as one.

    Args:
        kernels_us: microseconds before and after.
    """
    rows = [*kernels_us.items()]
    rest = rows[_SHOWN:]
    if rest:
        others = sum(us[0] for _, us in rest), sum(us[1] for _, us in rest)
        rows = [*rows[:_SHOWN], (f"{len(rest)} others", others)]
    most_us = max((max(us) for _, us in rows), default=0.0)
    if not most_us:
        return
    shown = table("kernel", "", "µs", "share", numbers=("µs",))
    for op, (before_us, after_us) in rows:
        shown.add_row(op, "before", f"{before_us:,.2f}", bar(before_us / most_us))
        shown.add_row("", "after", f"{after_us:,.2f}", bar(after_us / most_us))
    console.print(shown)


def bar(share: float) -> str:
    """Return a bar, as long as a share of the longest."""
    eighths = round(share * _WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).strip()


def print_race(race: RaceReport, bound_us: float, console: Console) -> None:
    """Print who took part, who won, and how much there was to gain.

    Args:
        bound_us: no graph costs less by the sums.
    """
    kept = ": the original is kept" if race.keeps_original else ""
    console.print(f"raced whole: {race.outcome}{kept}")
    if len(race.contenders) > 1:
        rows = table(
            "raced whole", "modelled", "as fast as the original", "99 %", "heats", "round",
            numbers=("modelled", "as fast as the original", "heats", "round"),
        )  # fmt: skip
        for each in race.contenders:
            standing = each.standing
            modelled = race.original_us / each.cost_us if each.cost_us else 1.0
            rows.add_row(
                each.name,
                f"{modelled:.3f}x",
                f"{standing.speedup:.3f}x",
                f"{standing.low:.3f} to {standing.high:.3f}",
                str(standing.heats),
                str(each.round) if each.round else "before",
            )
        console.print(rows)
    if race.rounds > 1:
        console.print(
            f"races: {race.rounds}; after each, costs were corrected by what it said, and the cheapest "
            "graph was extracted again"
        )
    console.print(_gain_line(race, bound_us))


def _gain_line(race: RaceReport, bound_us: float) -> str:
    """Return the line that says how much there was to gain, and how much was gained."""
    to_gain = 1 - bound_us / race.original_us if race.original_us else 0.0
    gained = "nothing"
    if not race.keeps_original:
        final = race.final
        saved, least, most = (1 - 1 / ratio for ratio in (final.speedup, final.low, final.high))
        gained = f"{saved:.1%} of the time, {least:.1%} to {most:.1%} (99 %)"
    return (
        f"{race.fixed_share:.0%} of the original's cost is in kernels that no rule can change; as modelled "
        f"at most {max(to_gain, 0.0):.1%} can be saved; gained, as timed: {gained}"
    )


def print_reductions(extraction: Extraction, console: Console) -> None:
    """Print sizes before and after, and the e-nodes that each reduction dropped."""
    if not extraction.was_reduced:
        return
    rows = table("reduction", "e-nodes", "what it does", numbers=("e-nodes",))
    for name, technique in TECHNIQUES.items():
        if name in extraction.reductions:
            rows.add_row(name, f"-{extraction.reductions[name]:,}", technique.effect)
    console.print(rows)
    before, after = extraction.size, extraction.reduced_size
    console.print(
        f"reduced: {before[0]:,} e-nodes in {before[1]:,} e-classes, {before[2]:,} edges → "
        f"{after[0]:,} in {after[1]:,}, {after[2]:,}"
        f"{_components_text(extraction.components, extraction.distinct_components)}"
    )


def _components_text(components: int, distinct: int) -> str:
    """Return what an e-graph fell into, to be added to its size; "" where it stays in one piece."""
    if components < 2:
        return ""
    copies = components - distinct
    return f", {components:,} components{f' ({copies:,} as others)' if copies else ''}"


_REDUCTIONS_SHOWN = 3
_GROWN_FROM = {
    "saturation": "saturation",
    "original": "the original",
    "chosen": "a best",
    "beside": "both",
    "universe": "all subgraphs",
    "decision": "the decisions",
    "rollout": "a rollout",
}


def reduced_line(summary: ExtractionSummary) -> str:
    """Return the line with the sizes before and after the reductions, which were made."""
    dropped = sorted(summary.reductions.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {count:,}" for name, count in dropped[:_REDUCTIONS_SHOWN]]
    more = [f"{len(dropped) - _REDUCTIONS_SHOWN} more"] if len(dropped) > _REDUCTIONS_SHOWN else []
    suffix = f" (e-nodes dropped: {', '.join(shown + more)})" if shown else ""
    components = _components_text(summary.components or 0, summary.distinct_components or 0)
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


def print_subgraphs(result: Result, console: Console) -> None:
    """Print the subgraphs of a search, their new e-nodes, and the cost of the cheapest graph after each."""
    numbers = ("subgraph", "limit", "e-nodes", "of all", "from µs", "to µs", "best µs", "at s")
    rows = table("subgraph", "grown from", *numbers[1:], "ended", numbers=numbers)
    best_us = float("inf")
    for subgraph in result.subgraphs:
        best_us = min(best_us, subgraph.best_us)
        rows.add_row(
            str(subgraph.subgraph),
            _GROWN_FROM[subgraph.kind],
            f"{subgraph.node_limit:,}",
            f"{subgraph.e_nodes:,}",
            f"{subgraph.universe:,}",
            f"{subgraph.seed_us:,.2f}",
            f"{subgraph.best_us:,.2f}",
            f"{best_us:,.2f}",
            f"{subgraph.seconds:.2f}",
            subgraph.stop_reason,
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
