"""Where another optimizer's graph has fewer nodes or a lower cost than ours, and in which nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bench.onnx.counts import Figures
from bench.onnx.measure import OnnxRun

#: Costs are sums of floats: closer than this, relatively, is the same.
COST_TOLERANCE = 1e-9


def losses(runs: Sequence[OnnxRun], tool: str) -> list[str]:
    """Return a line for every model and way of counting in which the tool left less than we do."""
    lines = []
    for run in runs:
        other = run.tools.get(tool)
        if other is None or other.counted is None:
            continue
        for counting, ours, theirs in (
            ("as written", run.ours.written, other.counted.written),
            ("fused", run.ours.fused, other.counted.fused),
        ):
            if _is_worse(ours, theirs):
                lines.append(f"{run.model}, {counting}: {_difference(ours, theirs, tool)}")
    return lines


def _is_worse(ours: Figures, theirs: Figures) -> bool:
    return ours.nodes > theirs.nodes or ours.cost_us > theirs.cost_us * (1 + COST_TOLERANCE)


def _difference(ours: Figures, theirs: Figures, tool: str) -> str:
    more, fewer = Counter(ours.ops), Counter(theirs.ops)
    return (
        f"{ours.nodes} nodes and {ours.cost_us:.2f} µs here, {theirs.nodes} and "
        f"{theirs.cost_us:.2f} by {tool}; more here: {_listed(more - fewer)}; "
        f"fewer here: {_listed(fewer - more)}"
    )


def _listed(ops: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {op}" for op, count in sorted(ops.items())) or "none"
