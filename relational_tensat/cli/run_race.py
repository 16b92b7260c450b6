"""Printing a race of whole graphs."""

from __future__ import annotations

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.run.reports import RaceReport


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
    console.print(gain_line(race, bound_us))


def gain_line(race: RaceReport, bound_us: float) -> str:
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
