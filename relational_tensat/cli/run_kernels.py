"""Printing what kernels cost before and after, a bar for each operator."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from relational_tensat.cli.console import table

#: Characters of the longest bar; eighths of one are shown.
_WIDTH = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"
#: Operators that are shown.
_SHOWN = 12


def print_kernels(kernels_us: Mapping[str, tuple[float, float]], console: Console) -> None:
    """Print what kernels cost by operator, the dearest first; the rest as one.

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
