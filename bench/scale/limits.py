"""Whether the limits hold at a size: what was seen, beside what they promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.scale.measure import Row, Task
from bench.scale.processes import Measure

#: Most that an e-graph may exceed the node limit by, and that exploration may continue after it is
#: asked to end.
MOST_OVERSHOOT, MOST_LATE_S = 0.05, 2.0

#: When it is asked to end, as parts of the time that it takes undisturbed.
MOMENTS = (0.3, 0.6, 0.9)


@dataclass(frozen=True, slots=True)
class Seen:
    """One limit, what was seen of it, and whether it held."""

    limit: str
    ended: str
    seen: str
    holds: bool


def look_at_limits(task: Task, measure: Measure) -> Iterator[Seen]:
    """Yield what each limit does to a task: first the node limit, its size.

    The memory limit is set to an eighth of the memory that the undisturbed run had.
    """
    task = replace(task, node_limit=task.size)
    undisturbed = measure(task)
    if not undisturbed.is_complete:
        yield Seen("nodes", undisturbed.ended, f"not measured {undisturbed.note}", False)
        return
    overshoot = undisturbed.most_e_nodes / undisturbed.node_limit - 1
    yield Seen(
        f"{undisturbed.node_limit:,} e-nodes",
        undisturbed.ended,
        f"{undisturbed.most_e_nodes:,} e-nodes ({overshoot:+.1%})",
        overshoot <= MOST_OVERSHOOT,
    )
    for moment in MOMENTS:
        at_s = round(undisturbed.explore_wall_s * moment, 1)
        yield _late(f"{at_s} s", measure(replace(task, time_limit_s=at_s)), "time")
        interrupted_row = measure(replace(task, interrupt_s=at_s))
        yield _late(f"Ctrl-C at {at_s} s", interrupted_row, "interrupted")
    limit_mib = max(int(undisturbed.peak_mib) // 8, 64)
    yield _memory(limit_mib, measure(replace(task, memory_limit=f"{limit_mib}MiB")))


def limits_table(findings: Sequence[Seen]) -> str:
    """Return the rows for people."""
    lines = [f"{'limit':18} {'ended':12} {'holds':6} seen"]
    lines += [
        f"{s.limit:18} {s.ended:12} {'yes' if s.holds else 'NO':6} {s.seen}" for s in findings
    ]
    return "\n".join(lines)


def _late(limit: str, row: Row, expected: str) -> Seen:
    if row.ended in ("nodes", "saturated"):
        return Seen(limit, row.ended, "ended before", True)
    late_s = row.late_s if row.late_s is not None else float("inf")
    holds = row.ended == expected and late_s <= MOST_LATE_S
    return Seen(limit, row.ended, row.note or f"ended {late_s:.2f} s later", holds)


def _memory(limit_mib: int, row: Row) -> Seen:
    text = (
        f"the process had {row.peak_mib:,.0f} MiB, Python included; {row.e_nodes:,} e-nodes; "
        f"{row.spilled_mib:,.0f} MiB in temporary files"
    )
    holds = row.ended in ("memory", "nodes", "saturated", "time") and not row.note
    return Seen(f"{limit_mib:,} MiB", row.ended, row.note or text, holds)
