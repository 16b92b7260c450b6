"""The last stages: whether the chosen graph is as fast as hoped for, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from relational_tensat.base.files import move_into_place
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.cost import CostSource, Unmeasurable, graph_cost_us
from relational_tensat.cost.device import WholeTiming
from relational_tensat.formats import copy_model, save_model
from relational_tensat.formats.frontend import OtherDataError, is_onnx
from relational_tensat.run.gain import is_worth_it, standing_of
from relational_tensat.run.reports import MachineForm
from relational_tensat.run.result import WholeRun
from relational_tensat.run.stages.fusion import has_kernels, write_kernels
from relational_tensat.run.stages.result_check import change_notes, is_smaller
from relational_tensat.run.stages.verdict import keep_original, remember_gain
from relational_tensat.run.state import RunState


def time(state: RunState) -> RunState:
    """Time original and extracted graph end to end; keep the original unless the other is worth it.

    That is done where costs are measured here, and a graph other than the original was chosen and has
    been verified. Ctrl-C ends it: then the extracted graph is returned untimed.
    """
    device = state.cost.device
    is_known = state.is_unchanged or state.chosen is state.raced
    if device is None or not state.options.costs.end_to_end or is_known:
        return state
    timing = _timed(state)
    if isinstance(timing, Unmeasurable):
        return state.noting(f"not run whole on {state.cost.name}: {timing.reason}")
    costs = _as_timed(state)
    whole = WholeRun(
        timing, graph_cost_us(state.original, costs), graph_cost_us(state.extracted, costs)
    )
    state = replace(state, whole=whole)
    if has_kernels(state):
        state = state.noting("run whole with kernels as the plain operators of the file, not in C")
    standing = standing_of(None, timing)
    assert standing is not None
    least = state.options.costs.min_speedup
    if is_worth_it(standing, least, is_smaller=is_smaller(state)):
        return remember_gain(state)
    reason = _loss(whole, state.cost.name)
    return keep_original(replace(state, whole=replace(whole, keeps_original=True)), reason)


def write(state: RunState) -> RunState:
    """Write the result, if it is to be written; the original as the file that it is."""
    state = write_kernels(state)
    if state.target is None:
        return state
    state = _at_free_place(state, state.target)
    assert state.target is not None
    with state.phases.phase("write"):
        if state.saved is not None and state.machine is not None:
            return _write_saved(state, state.target, state.saved, state.machine)
        if state.sized is not None and not state.copies_file:
            from relational_tensat.run.stages.second_search import sizes_note  # needs onnx

            state.sized.save(state.target)
            return state.noting(sizes_note(state), *change_notes(state))
        if not state.copies_file:
            if state.candidate is not None and state.candidate.exists():
                move_into_place(state.candidate.parent, state.target)
            else:
                save_model(state.folded, state.target, state.options.output.opset)
            return state.noting(*change_notes(state))
        assert state.file is not None
        try:
            data = copy_model(state.file, state.target)
        except OtherDataError as error:
            save_model(state.folded, state.target)
            return state.noting(
                f"{error}: the original is written from its graph instead of copied"
            )
    beside = f", with {', '.join(map(str, data))}" if data else ""
    return state.noting(f"the written file is the original, byte for byte{beside}")


def _write_saved(state: RunState, target: Path, saved: Path, machine: MachineForm) -> RunState:
    """Write the result as onnxruntime has saved it, its weights beside it."""
    from relational_tensat.formats.onnx_external import move_with_data  # both need onnx
    from relational_tensat.verify.runtime import data_of

    data = move_with_data(saved, data_of(saved), target, _data_of_model(state))
    state = replace(state, machine=replace(machine, data=data))
    if state.sized is not None:
        from relational_tensat.run.stages.second_search import sizes_note

        state = state.noting(sizes_note(state))
    return state.noting(*change_notes(state))


def _data_of_model(state: RunState) -> list[Path]:
    """Return the files that the weights of the run's own model are in."""
    if state.file is None or not is_onnx(state.file):
        return []
    from relational_tensat.formats.onnx_external import external_locations  # needs onnx

    return [state.file.parent / name for name in external_locations(state.file)]


def _at_free_place(state: RunState, target: Path) -> RunState:
    """Write elsewhere if something has appeared where the result was to be written by default."""
    place = state.output.free() if isinstance(state.output, DefaultOutput) else target
    if place == target:
        return state
    note = f"{target}: something is there that was not when the run began: it is left alone"
    # The candidate, with its data, goes by the other name.
    return replace(state, target=place, candidate=None).noting(note)


def _as_timed(state: RunState) -> CostSource:
    """Return the costs of what runs whole: of kernels the plain operators."""
    if state.kernel_costs is None:
        return state.cost
    from relational_tensat.mugraph.fusion.own_kernel import PlainCosts  # few runs need it

    return PlainCosts(state.kernel_costs)


def _timed(state: RunState) -> WholeTiming | Unmeasurable:
    assert state.cost.device is not None
    seed = state.options.process.seed
    try:
        with state.phases.phase("whole"):
            graphs = state.cost.as_timed(state.original), state.cost.as_timed(state.folded)
            from relational_tensat.run.end_to_end import time_on_device  # measured runs need it

            return time_on_device(state.cost.device, *graphs, state.inputs, seed)
    except KeyboardInterrupt:
        return Unmeasurable("interrupted")


def _loss(whole: WholeRun, source: str) -> str:
    """Return what was hoped for, what was found, and what was done about it."""
    timing = whole.timing
    return (
        f"the extracted graph should take {whole.modelled_after_us:,.2f} µs under {source}, the original "
        f"{whole.modelled_before_us:,.2f}, but run whole it takes {timing.after_us:,.2f}, the original "
        f"{timing.before_us:,.2f} ({timing.speedup:.3f}x, {timing.speedup_p10:.3f} to "
        f"{timing.speedup_p90:.3f}): the original is kept"
    )
