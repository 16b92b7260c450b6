"""Tables of runs beside the peer's figures; what differs from the peer is marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.tensat.measure import Run
from bench.tensat.peer import PeerRun

#: Stands where the peer's figure is not known.
UNKNOWN = "-"
#: The peer's costs were published to a tenth of a microsecond.
COST_PRECISION_US = 0.05

PeerRuns = Mapping[tuple[str, int], PeerRun]


def compare(runs: Sequence[Run], peer_runs: PeerRuns) -> str:
    """Return both tables, the totals, and what the marks mean."""
    return "\n".join(
        [
            "Exploration",
            _format_table(EXPLORATION_HEADER, [_exploration_row(run, peer_runs) for run in runs]),
            "",
            _totals(runs, peer_runs),
            "",
            "Extraction",
            _format_table(EXTRACTION_HEADER, [_extraction_row(run, peer_runs) for run in runs]),
            "",
            "'!' differs from the peer; '<' cheaper and '>' costlier than the peer's best; "
            f"'{UNKNOWN}' the peer's figure is not known.",
        ]
    )


EXPLORATION_HEADER = (
    "model", "k", "e-nodes", "peer", "", "classes", "peer", "", "iterations", "peer", "",
    "statements", "CPU s", "peer", "ratio", "wall s", "stop",
)  # fmt: skip
EXTRACTION_HEADER = (
    "model", "k", "CPU s", "wall s", "before us", "peer", "", "after us", "peer", "", "saved",
    "gap",
)  # fmt: skip


def _exploration_row(run: Run, peer_runs: PeerRuns) -> tuple[str, ...]:
    peer = peer_runs.get((run.model, run.k_multi))
    peer_cpu_s = peer.explore_cpu_s if peer else None
    return (
        run.model,
        str(run.k_multi),
        *_count_cells(run.e_nodes, peer.e_nodes if peer else None),
        *_count_cells(run.e_classes, peer.e_classes if peer else None),
        *_count_cells(run.iterations, peer.iterations if peer else None),
        str(run.statements),
        f"{run.explore_cpu_s:.3f}",
        UNKNOWN if peer_cpu_s is None else f"{peer_cpu_s:.3f}",
        UNKNOWN if peer_cpu_s is None else f"{run.explore_cpu_s / peer_cpu_s:.1f}x",
        f"{run.explore_wall_s:.3f}",
        run.stop_reason,
    )


def _extraction_row(run: Run, peer_runs: PeerRuns) -> tuple[str, ...]:
    peer = peer_runs.get((run.model, run.k_multi))
    before_us = peer.cost_before_us if peer else None
    after_us = peer.cost_after_us if peer else None
    return (
        run.model,
        str(run.k_multi),
        f"{run.extract_cpu_s:.3f}",
        f"{run.extract_s:.3f}",
        f"{run.cost_before_us:.1f}",
        UNKNOWN if before_us is None else f"{before_us:.1f}",
        "!" if _order(run.cost_before_us, before_us) else "",
        f"{run.cost_after_us:.1f}",
        UNKNOWN if after_us is None else f"{after_us:.1f}",
        _order(run.cost_after_us, after_us),
        f"{1 - run.cost_after_us / run.cost_before_us:.1%}",
        f"{run.gap:.2%}",
    )


def _count_cells(ours: int, peers: int | None) -> tuple[str, str, str]:
    if peers is None:
        return (f"{ours:,}", UNKNOWN, "")
    return (f"{ours:,}", f"{peers:,}", "" if ours == peers else "!")


def _order(ours_us: float, peers_us: float | None) -> str:
    """Return ``<`` or ``>`` where two costs differ by more than the peer's rounding."""
    if peers_us is None or abs(ours_us - peers_us) <= COST_PRECISION_US:
        return ""
    return "<" if ours_us < peers_us else ">"


def _totals(runs: Sequence[Run], peer_runs: PeerRuns) -> str:
    shared_runs = [run for run in runs if (run.model, run.k_multi) in peer_runs]
    ours_s = sum(run.explore_cpu_s for run in shared_runs)
    peers_s = sum(peer_runs[run.model, run.k_multi].explore_cpu_s for run in shared_runs)
    ratio = f", {ours_s / peers_s:.1f}x" if peers_s else ""
    joins = sum(1e3 * run.explore_cpu_s / run.join_ms for run in shared_runs)
    machine = ""
    if joins:
        join_ms = 1e3 * ours_s / joins
        machine = (
            f", as long as {joins:,.0f} joins of three times 1,000 rows ({join_ms:.2f} ms then)"
        )
    per_iteration = max((run.statements / max(run.iterations, 1) for run in runs), default=0.0)
    return (
        f"exploration of {len(shared_runs)} runs: {ours_s:.2f} CPU s, peer {peers_s:.2f}{ratio}{machine}; "
        f"at most {per_iteration:.0f} statements an iteration, averaged over a run"
    )


def _format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, all others to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)
