"""One model of ``python -m bench onnx``: what every optimizer makes of the same file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import onnx

from bench.onnx.counts import Counted, count_model, count_optimized
from bench.onnx.tools import ORT_EXTENDED, TOOLS, inference_nodes, is_installed, optimized_by
from relational_tensat.base.errors import InputError
from relational_tensat.cost import CostModel, load_profile
from relational_tensat.explain.explanation import explain
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a tool of others left of a model.

    Attributes:
        seconds: wall seconds, from the file to the optimized model in memory.
        file_nodes: nodes of its file that depend on the inputs, as they are.
        counted: nodes and cost; None where the file has operators that have no cost here, or that
            are no valid ONNX.
        note: why ``counted`` is None, "" otherwise.
    """

    seconds: float
    file_nodes: int
    counted: Counted | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class OnnxRun:
    """What was measured on one model; as JSON, the runs of a saved result.

    Attributes:
        before: of the file as it is.
        ours: of the graph that ``optimize`` returns.
        seconds: of ours, wall, per phase and in total.
        rules_used: per rule, how many e-nodes of the optimized graph it made.
        comparisons: how often the optimized graph was run against the original; none failed.
        worst_error: the worst relative error in them.
        steps: rewrites from the original to the result; each was checked, and the last graph is the
            one that was extracted.
        tools: what others left, by tool; those that are not installed are missing.
    """

    model: str
    before: Counted
    ours: Counted
    seconds: Mapping[str, float]
    e_nodes: int
    stop_reason: str
    optimal: bool
    gap: float
    rules_used: Mapping[str, int]
    comparisons: int
    worst_error: float
    steps: int
    tools: Mapping[str, ToolRun]


def measure_model(name: str, path: Path, options: Options) -> OnnxRun:
    """Optimize one file with every optimizer there is.

    Raises:
        InputError: the file cannot be used.
        VerificationError: our result does not compute what the file does, or its explanation does
            not replay to it.
        NoSolutionError: nothing could be extracted, or explained, within the limits.
    """
    cost = load_profile(str(options.costs.source))
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as folder:
        database = Path(folder) / "run.duckdb"
        result = optimize(path, options.replace(db=database))
        steps = _explained(database)
    return OnnxRun(
        model=name,
        before=count_model(onnx.load(path), cost, str(path)),
        ours=count_optimized(result.graph, cost),
        seconds=dict(result.seconds),
        e_nodes=result.e_nodes,
        stop_reason=result.stop_reason,
        optimal=result.optimal,
        gap=result.gap,
        rules_used=dict(sorted(result.rules_used.items(), key=lambda item: (-item[1], item[0]))),
        comparisons=result.verification.runs,
        worst_error=result.verification.max_relative_error,
        steps=steps,
        tools={tool: run_tool(tool, path, cost) for tool in TOOLS if is_installed(tool)},
    )


def _explained(database: Path) -> int:
    """Return the number of steps to the result; every one is checked."""
    with duckdb.connect(str(database), read_only=True) as connection:
        return len(explain(connection).steps)


def run_tool(tool: str, path: Path, cost: CostModel) -> ToolRun:
    """Let one tool optimize the file, and count what it leaves."""
    optimized = optimized_by(tool, path)
    nodes = inference_nodes(optimized.model)
    if tool == ORT_EXTENDED:
        return ToolRun(optimized.seconds, nodes, None, "has operators of onnxruntime's own")
    try:
        counted = count_model(optimized.model, cost, f"{path} by {tool}")
    except InputError as error:
        return ToolRun(optimized.seconds, nodes, None, str(error))
    return ToolRun(optimized.seconds, nodes, counted)
