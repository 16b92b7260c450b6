"""The figures of TENSAT that this system is compared with, from ``bench/data/peer.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PEER_FILE = Path(__file__).parents[1] / "data" / "peer.json"


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What TENSAT did with one model; None where nobody measured it.

    Attributes:
        k_multi: in how many iterations the multi-pattern rules took part.
        explore_cpu_s: CPU seconds of exploration, operators not timed.
        e_nodes: without scalars and names.
        stop_reason: why exploration ended.
        cost_before_us: of the model, under the profile ``tensat_t4``.
        cost_after_us: of the cheapest graph known in the e-graph, under the same profile.
    """

    model: str
    k_multi: int
    explore_cpu_s: float
    e_nodes: int | None = None
    e_classes: int | None = None
    iterations: int | None = None
    stop_reason: str | None = None
    cost_before_us: float | None = None
    cost_after_us: float | None = None


def load_peer_runs() -> dict[tuple[str, int], PeerRun]:
    """Return the peer's runs by model and k_multi."""
    runs = json.loads(PEER_FILE.read_text(encoding="utf-8"))["runs"]
    return {(run["model"], run["k_multi"]): PeerRun(**run) for run in runs}
