"""What several sizes say together: exponents of growth, and the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.scale.measure import EXPLORE_PHASES, Row

#: Phases as they are shown; the last two are those of whole runs.
PHASES = (*EXPLORE_PHASES, "extract", "verify")

#: Seconds below this say more about fixed costs, and the clock, than about growth.
LEAST_S = 0.05


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return x of seconds ~ size^x, fitted by least squares in logarithms; 1 is linear.

    Args:
        points: (size, seconds); those below ``LEAST_S`` do not count.

    Returns:
        None of fewer than two sizes.
    """
    logs = [(math.log(size), math.log(s)) for size, s in points if s >= LEAST_S]
    if len({size for size, _ in logs}) < 2:
        return None
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def exponents(rows: Sequence[Row]) -> dict[str, float | None]:
    """Return the exponent of each phase, of exploration and of memory over the e-nodes of complete runs."""
    complete = [row for row in rows if row.is_complete]
    by_phase = {
        phase: exponent([(row.e_nodes, row.seconds.get(phase, 0.0)) for row in complete])
        for phase in PHASES
    }
    by_phase["explore"] = exponent([(row.e_nodes, row.explore_cpu_s) for row in complete])
    by_phase["memory"] = exponent([(row.e_nodes, row.peak_mib) for row in complete])
    return by_phase


def growth_table(rows: Sequence[Row]) -> str:
    """Return the rows for people, each family followed by its exponents."""
    lines = [
        f"{'family':11} {'size':>10} {'e-nodes':>10} {'e-classes':>10} {'ended':>11} {'CPU s':>7} "
        f"{'wall s':>7} {'e-nodes/s':>9} {'peak MiB':>9} {'spilled':>8} | "
        + " ".join(f"{phase.removeprefix('filter '):>7}" for phase in PHASES)
    ]
    for family in dict.fromkeys(row.family for row in rows):
        own = [row for row in rows if row.family == family]
        lines += [_line(row) for row in own]
        lines.append(_exponent_line(family, exponents(own)))
    return "\n".join(lines)


def _line(row: Row) -> str:
    if row.note:
        return f"{row.family:11} {row.size:10,} {'':>10} {'':>10} {row.ended:>11}  {row.note}"
    rate = row.e_nodes / row.explore_cpu_s
    verified = f"  {row.verified}" if row.verified else ""
    return (
        f"{row.family:11} {row.size:10,} {row.e_nodes:10,} {row.e_classes:10,} {row.ended:>11} "
        f"{row.explore_cpu_s:7.1f} {row.explore_wall_s:7.1f} {rate:9,.0f} {row.peak_mib:9,.0f} "
        f"{row.spilled_mib:8,.0f} | "
        + " ".join(_seconds(row.seconds.get(phase)) for phase in PHASES)
        + verified
    )


def _seconds(seconds: float | None) -> str:
    return f"{'':>7}" if seconds is None else f"{seconds:7.2f}"


def _exponent_line(family: str, by_phase: dict[str, float | None]) -> str:
    def shown(name: str, width: int) -> str:
        value = by_phase[name]
        return f"{'' if value is None else f'^{value:.2f}':>{width}}"

    return (
        f"{family:11} {'grows with e-nodes as':>44} {shown('explore', 7)} {'':>7} {'':>9} "
        f"{shown('memory', 9)} {'':>8} | " + " ".join(shown(phase, 7) for phase in PHASES)
    )
