"""Whether the file that would be written is larger than the original, and why."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.cost import graph_cost_us
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.file_change import FileChange
from relational_tensat.run.state import RunState

#: The share of the cost that a larger file has to save: reports show less as 0.00 %.
_WORTH_A_LARGER_FILE = 1e-4


def weigh(state: RunState) -> tuple[RunState, bool]:
    """Compare the file of the chosen graph with the original's; choose that if this only grows.

    Returns:
        The state, and whether the chosen graph stays.
    """
    change = _file_change(state)
    is_timed = state.chosen is state.raced  # whole, which decides
    if change is not None and change.growth and not (state.is_unchanged or is_timed):
        before, after = _costs_us(state)
        if after >= before * (1 - _WORTH_A_LARGER_FILE):
            less = "hardly less" if after < before * (1 - COST_TOLERANCE) else "no less"
            reason = f"the file would have {change.growth}, and cost {less}: the original is kept"
            return replace(state, chosen=state.original).noting(reason), False
    return replace(state, change=change), True


def change_notes(state: RunState) -> tuple[str, ...]:
    """Return why the written file is larger, which versions were raised, which inputs it lacks; or ""."""
    change = state.change
    if change is None:
        return ()
    before, after = _costs_us(state)
    why = f"under {state.cost.name} it costs {after:,.2f} µs instead of {before:,.2f}"
    if state.saved is not None:
        why = "onnxruntime has saved it for this machine"
    elif state.is_unchanged:
        why = "the original is written in another version"
    growth = f"the file has {change.growth}: {why}" if change.growth else ""
    return growth, change.versions, change.fixed_inputs


def _costs_us(state: RunState) -> tuple[float, float]:
    """Return what the original and the chosen graph cost."""
    return graph_cost_us(state.original, state.cost), graph_cost_us(state.chosen, state.cost)


def _file_change(state: RunState) -> FileChange | None:
    """Return what writing the chosen graph makes of the file; None unless both are ONNX and it changes."""
    files = (state.file, state.target)
    if state.copies_file or any(file is None or file.suffix.lower() != ".onnx" for file in files):
        return None
    from relational_tensat.formats.onnx_figures import figures_of_file, figures_of_skeleton
    from relational_tensat.formats.onnx_write import write_skeleton  # both need onnx

    assert state.file is not None
    opset = state.options.output.opset
    skeleton, weights = state.sized.file if state.sized else write_skeleton(state.folded, opset)
    return FileChange(figures_of_file(state.file), figures_of_skeleton(skeleton, weights.values()))
