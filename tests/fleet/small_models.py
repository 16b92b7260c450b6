"""Models that take no time to optimize, for fleets of many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from relational_tensat import Options
from relational_tensat.fleet import FleetRow
from relational_tensat.formats.frontend import frontend_of
from relational_tensat.tensor import Node, TensorType, build_graph

#: Few rules, and nothing that goes by a clock.
QUICK = Options.of(
    deterministic=True, cost="t4", only=("negative-difference",), verify_runs=1, iterations=2
)


def write_models(folder: Path, count: int) -> list[Path]:
    """Write models into a folder: -(a - b) and a chain of operators, each longer than the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        kinds = dict.fromkeys(("a", "b"), TensorType("float32", (8, 4 + number)))
        nodes = [Node("sub", ("a", "b"), ("d",)), Node("neg", ("d",), ("v0",))]
        nodes += [Node("tanh", (f"v{i}",), (f"v{i + 1}",)) for i in range(number + 1)]
        path = folder / f"chain{number:03}.json"
        graph = build_graph(path.stem, kinds, {}, nodes, [f"v{number + 1}"])
        frontend_of(path).write(graph, path, None)
        paths.append(path)
    return paths


#: Of a report, what depends on when and how fast.
_OF_TIME = ("seconds", "time_spent", "found_s", "proven_s", "spent_s")


def comparable(row: FleetRow) -> tuple[Any, ...]:
    """Return what a row has on whatever machine it was made: all but host, times and attempts."""
    report = None if row.report is None else _timeless(json.loads(row.report))
    return (
        row.model, row.model_digest, row.options_digest, row.version, row.state, row.reason, row.output,
        row.output_digest, row.costs, row.basis, row.speedup, row.cost_before_us, row.cost_after_us,
        row.nodes_before, row.nodes_after, row.rules, row.savings, report,
    )  # fmt: skip


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(v) for key, v in value.items() if key not in _OF_TIME}
    return [_timeless(each) for each in value] if isinstance(value, list) else value
