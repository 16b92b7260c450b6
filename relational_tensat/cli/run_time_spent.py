"""Where a run's time went, for people: by phase and statement, and how much of it was Python's."""

from __future__ import annotations

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.egraph.stopwatch import OTHER
from relational_tensat.run.result import Result

#: Statements of a phase that take less than this share of the run are summed up.
_LEAST_SHARE = 0.002
#: The phases of a run in which no statements run.
_PYTHON_ONLY = ("load", "verify", "write")
#: Those that not all runs have.
SOMETIMES = ("price", "fuse", "whole")


def print_time_spent(result: Result, console: Console) -> None:
    """Print the phases by their seconds, in each its statements by theirs, then what they sum up to."""
    spent, total = result.time_spent, result.seconds["total"]
    phases = {name: seconds for name, seconds in spent.phases.items() if name != OTHER}
    phases |= {name: result.seconds[name] for name in _PYTHON_ONLY}
    phases |= {name: result.seconds[name] for name in SOMETIMES if result.seconds[name]}
    phases[OTHER] = max(total - sum(phases.values()), 0.0)
    numbers = ("times", "rows", "s", "share")
    shape = table("phase", "statement", *numbers, numbers=numbers)
    for phase in sorted(phases, key=lambda name: -phases[name]):
        shape.add_row(phase, "", "", "", *_time(phases[phase], total), style="bold")
        for row in _statements(result, phase, phases[phase]):
            shape.add_row("", *row)
    console.print(shape)
    in_database = sum(statement.seconds for statement in spent.statements.values())
    count = sum(statement.count for statement in spent.statements.values())
    share = in_database / total if total else 0.0
    console.print(
        f"of {total:.2f} s, {in_database:.2f} s ({share:.0%}) in {count:,} statements of DuckDB, "
        f"{total - in_database:.2f} s in Python and what else it calls"
    )
    console.print()


def _statements(result: Result, phase: str, seconds: float) -> list[tuple[str, ...]]:
    """Return the rows below a phase: what takes long first, then the rest, summed up."""
    total = result.seconds["total"]
    rows: list[tuple[float, tuple[str, ...]]] = []
    count, rest_s = 0, 0.0
    for (where, name), statement in result.time_spent.statements.items():
        if where != phase:
            continue
        if statement.seconds < _LEAST_SHARE * total:
            count, rest_s = count + statement.count, rest_s + statement.seconds
        else:
            shown = (
                name,
                f"{statement.count:,}",
                f"{statement.rows:,}",
                *_time(statement.seconds, total),
            )
            rows.append((statement.seconds, shown))
    in_database = result.time_spent.database_seconds(phase)
    if in_database:
        python = max(seconds - in_database, 0.0)
        rows.append((python, ("(Python)", "", "", *_time(python, total))))
    ordered = [row for _, row in sorted(rows, key=lambda item: -item[0])]
    return [
        *ordered,
        *([("(all others)", f"{count:,}", "", *_time(rest_s, total))] if count else []),
    ]


def _time(seconds: float, total: float) -> tuple[str, str]:
    return f"{seconds:.3f}", f"{seconds / total:.1%}" if total else ""
