"""The choice is timed: whether graphs race, on what, and for how long."""

from __future__ import annotations

from pathlib import Path

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError
from relational_tensat.cost import Device, open_device
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.rules.targets.backend import Backend, load_backend
from relational_tensat.rules.targets.names import BACKENDS
from relational_tensat.run.options import LOW
from relational_tensat.run.stages.fusion import has_kernels
from relational_tensat.run.state import RunState
from relational_tensat.verify.quantized import is_quantized

#: With measured costs, so many seconds at most unless the options say.
DEFAULT_BUDGET_S = 60.0
#: With modelled costs and normal effort: a model of which fewer heats fit into it is not raced.
SHORT_BUDGET_S = 10.0
#: With modelled costs that were named, of quantized models.
_QUANTIZED_BUDGET_S = 20.0
#: A run takes no longer on an idle machine, if the race may be short enough; so long is left for what
#: follows it; and so long is raced in any case.
_WHOLE_RUN_S, _AFTER_S, _LEAST_S = 120.0, 15.0, 10.0
#: Of the result as onnxruntime saves it, where graphs do not race.
_SAVED_BUDGET_S = 20.0
#: The share of a budget that is left for that race where graphs raced before it.
_OF_SAVED = 1 / 3


def run_race(state: RunState) -> RunState:
    """Choose the graph that is fastest whole, among the original and the cheapest that differ.

    That is done where costs are measured here, or seconds for it are given, and a graph other than the
    original is the cheapest, by the sums or by the profile; of quantized models for onnxruntime always,
    where that is installed. Ctrl-C ends it: then the cheapest graph stays chosen.
    """
    return _raced(state, _budget_s(state))


def race_again(state: RunState, *, has_others: bool) -> RunState:
    """Race again, where the winner is not returned, in what is left of the time, or a little.

    Args:
        has_others: whether other graphs than the chosen one are in it, beside the original.
    """
    budget_s = _budget_s(state)
    left_s = budget_s - state.phases.seconds["whole"]
    return _raced(state, max(left_s, min(_LEAST_S, budget_s)), has_others=has_others)


def _raced(state: RunState, budget_s: float, *, has_others: bool = True) -> RunState:
    is_alone = state.is_unchanged and state.by_profile is None and state.settled is None
    if not budget_s or is_alone or state.returns_original:
        return state
    if has_kernels(state):
        return state.noting("not raced: onnxruntime runs kernels by their plain operators")
    from relational_tensat.run.stages.race_rounds import (  # few runs need it
        NotRacedError,
        race_in_rounds,
    )

    try:
        device = racing_device(state)
        if device is None:
            return state
        if state.options.output.this_machine:
            budget_s *= 1 - _OF_SAVED
        is_total = _is_total(state)
        return race_in_rounds(
            state,
            device,
            budget_s,
            is_total=is_total,
            has_others=has_others,
            is_short=state.cost.device is None and _is_for_place(state),
        )
    except KeyboardInterrupt:
        return state.noting("not raced: interrupted")
    except MissingDependencyError as error:
        if state.options.costs.budget_s is not None:
            raise
        return state.noting(f"not raced: {error}")
    except (InputError, NotRacedError) as error:
        return state.noting(f"not raced: {error}")


def check_this_machine(state: RunState, target: Path | None) -> None:
    """Check that the result may be saved for this machine, if it is to be.

    Raises:
        UsageError: it is not written as ONNX, not run by onnxruntime, or nothing is to be timed.
        MissingDependencyError: onnxruntime is not here.
    """
    options = state.options
    if not options.output.this_machine:
        return
    if not is_onnx(target):
        where = "no file is written" if target is None else f"{target} is none"
        raise UsageError(f"this_machine is for .onnx files: {where}")
    device = state.cost.device
    backend = _backend_here(state)
    own_kind = "" if backend is None else backend.device_kind
    if (own_kind if device is None else device.key.kind) != "cpu":
        raise UsageError(
            "this_machine is for what onnxruntime runs on a processor: give cost cpu, or target onnxruntime"
        )
    if options.costs.budget_s == 0 or not options.costs.end_to_end:
        raise UsageError(
            "this_machine is decided by a race: not without a budget, or end to end times"
        )
    racing_device(state)


def saved_budget_s(state: RunState) -> float:
    """Return how long the race of the result as onnxruntime saves it may take."""
    whole_s = _budget_s(state) or _SAVED_BUDGET_S
    return whole_s if state.race is None else max(whole_s * _OF_SAVED, min(_LEAST_S, whole_s))


def racing_device(state: RunState) -> Device | None:
    """Return what graphs are run on: what costs are measured on, or what the target is."""
    costs = state.options.costs
    if not costs.end_to_end:
        return None
    if state.cost.device is not None:
        return state.cost.device
    if backend := _backend_here(state):
        count = state.cost.n_threads
        return open_device(
            backend.device_kind if count == 1 else f"{backend.device_kind}:threads={count}"
        )
    place = state.options.purpose.runs_on
    if place is None or place not in BACKENDS or load_backend(place).is_everywhere:
        return None  # of a place that is everywhere, the backend decides
    return open_device(load_backend(place).device_kind)


def _backend_here(state: RunState) -> Backend | None:
    """Return the run's backend, if each machine has what it runs on."""
    name = state.options.rules.target
    backend = None if name is None else load_backend(name)
    return backend if backend is not None and backend.is_everywhere else None


def _is_total(state: RunState) -> bool:
    """Whether what earlier runs of the same hash have raced counts; seconds given are for this run."""
    return bool(state.run) and state.options.costs.budget_s is None


def _is_for_place(state: RunState) -> bool:
    """Whether no seconds are named, and it was said, or is clear, where the result will run."""
    return state.options.costs.budget_s is None and state.options.purpose.runs_on is not None


def _is_timed_here(state: RunState) -> bool:
    """Whether a gain that is modelled is timed: the result is for this machine, and that much is wanted."""
    purpose = state.options.purpose
    return purpose.effort != LOW and purpose.runs_on in BACKENDS


def _budget_s(state: RunState) -> float:
    """Return how long graphs may race.

    Costs of a profile do not tell how fast kernels on integers are: a model of which only a part runs on
    other integers than before may be slower. So what such costs choose of a quantized model is timed.
    """
    given_s = state.options.costs.budget_s
    if given_s is not None:
        return given_s
    if state.cost.device is not None:
        left_s = _WHOLE_RUN_S - _AFTER_S - state.phases.total_s
        return min(DEFAULT_BUDGET_S, max(_LEAST_S, left_s))
    if _is_for_place(state):
        return SHORT_BUDGET_S if _is_timed_here(state) else 0.0
    return (
        _QUANTIZED_BUDGET_S
        if _backend_here(state) is not None and is_quantized(state.original)
        else 0.0
    )
