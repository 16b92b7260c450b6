"""The tables of ``python -m bench onnx``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from bench.onnx.counts import Counted, Figures
from bench.onnx.losses import losses
from bench.onnx.measure import OnnxRun
from bench.onnx.tools import ONNXSIM, ORT_BASIC, ORT_EXTENDED
from relational_tensat.cli.console import table

#: Stands where a tool is not installed, or has no figure.
UNKNOWN = "-"
_WAYS = (
    ("as written", "As written: every graph as an ONNX file, read back; constants folded."),
    ("fused", "Fused: activations and biases are part of their kernels in every graph."),
)


def print_runs(runs: Sequence[OnnxRun], profile: str, console: Console) -> None:
    """Print nodes and cost in both ways of counting, seconds, rules, and what was lost where."""
    for counting, title in _WAYS:
        console.print(f"{title} Costs are modelled, in µs under {profile}.")
        _print_figures(runs, counting, console)
    _print_seconds(runs, console)
    _print_rules(runs, console)
    _print_notes(runs, console)
    lines = losses(runs, ONNXSIM)
    for line in lines:
        console.print(f"behind {ONNXSIM}: {line}")
    if not lines and any(ONNXSIM in run.tools for run in runs):
        console.print(f"on no model more nodes or a higher cost than what {ONNXSIM} leaves")


def _print_figures(runs: Sequence[OnnxRun], counting: str, console: Console) -> None:
    numbers = ("before", "ours", ONNXSIM, ORT_BASIC)
    columns = [f"{unit} {who}" for unit in ("nodes", "µs") for who in numbers]
    rows = table("model", *columns, numbers=tuple(columns))
    for run in runs:
        figures = [_figures(run.before, counting), _figures(run.ours, counting)]
        for tool in (ONNXSIM, ORT_BASIC):
            other = run.tools.get(tool)
            figures.append(_figures(other.counted if other else None, counting))
        rows.add_row(
            run.model,
            *(UNKNOWN if f is None else f"{f.nodes:,}" for f in figures),
            *(UNKNOWN if f is None else f"{f.cost_us:,.2f}" for f in figures),
        )
    console.print(rows)
    console.print()


def _figures(counted: Counted | None, counting: str) -> Figures | None:
    if counted is None:
        return None
    return counted.written if counting == "as written" else counted.fused


def _print_seconds(runs: Sequence[OnnxRun], console: Console) -> None:
    phases = ("explore", "extract", "verify", "total")
    tools = (ONNXSIM, ORT_BASIC, ORT_EXTENDED)
    nodes = f"nodes {ORT_EXTENDED}"
    rows = table("seconds", *phases, *tools, nodes, numbers=(*phases, *tools, nodes))
    for run in runs:
        extended = run.tools.get(ORT_EXTENDED)
        rows.add_row(
            run.model,
            *(f"{run.seconds[phase]:.2f}" for phase in phases),
            *(f"{run.tools[tool].seconds:.2f}" if tool in run.tools else UNKNOWN for tool in tools),
            UNKNOWN if extended is None else f"{extended.file_nodes:,}",
        )
    console.print("explore to total are ours; total includes checking that the result is right.")
    console.print(
        f"{ORT_EXTENDED} writes operators of its own, which have no cost here: its nodes as they are."
    )
    console.print(rows)
    console.print()


def _print_rules(runs: Sequence[OnnxRun], console: Console) -> None:
    rows = table("model", "proven", "verified", "explained", "rules that won (e-nodes each made)")
    for run in runs:
        rows.add_row(
            run.model,
            "optimal" if run.optimal else f"gap {run.gap:.2%}",
            f"{run.comparisons} runs, {run.worst_error:.0e}",
            f"{run.steps} steps, replayed",
            ", ".join(f"{name} {count}" for name, count in run.rules_used.items()) or "none",
        )
    console.print(rows)
    console.print()


def _print_notes(runs: Sequence[OnnxRun], console: Console) -> None:
    if not any(ONNXSIM in run.tools for run in runs):
        console.print(
            f"{ONNXSIM} is not installed, nothing is compared with it: "
            "pip install 'relational-tensat[bench]'"
        )
    for run in runs:
        for tool, other in run.tools.items():
            if other.counted is None and tool != ORT_EXTENDED:
                console.print(f"note: {run.model}, {tool}: {other.note}")
