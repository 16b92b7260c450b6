"""The choice is timed: whether graphs race, on what, and for how long."""

from __future__ import annotations

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.cost import Device, open_device
from relational_tensat.run.stages.fusing import has_kernels
from relational_tensat.run.state import RunState
from relational_tensat.verify.quantized import is_quantized

#: With measured costs, so many seconds at most unless the options say.
DEFAULT_BUDGET_S = 60.0
#: With modelled costs, of quantized models.
_QUANTIZED_BUDGET_S = 20.0
#: A run takes no longer on an idle machine, if the race may be short enough; so long is left for what
#: follows it; and so long is raced in any case.
_WHOLE_RUN_S, _AFTER_S, _LEAST_S = 120.0, 15.0, 10.0


def run_race(state: RunState) -> RunState:
    """Choose the graph that is fastest whole, among the original and the cheapest that differ.

    That is done where costs are measured here, or seconds for it are given, and a graph other than the
    original is the cheapest, by the sums or by the profile; of quantized models for onnxruntime always,
    where that is installed. Ctrl-C ends it: then the cheapest graph stays chosen.
    """
    budget_s = _budget_s(state)
    is_alone = state.is_unchanged and state.by_profile is None and state.settled is None
    if not budget_s or is_alone:
        return state
    if has_kernels(state):
        return state.noting("not raced: onnxruntime runs kernels by their plain operators")
    from relational_tensat.run.stages.racing_in_rounds import (  # few runs need it
        NotRacedError,
        race_in_rounds,
    )

    try:
        device = _device(state)
        if device is None:
            return state
        return race_in_rounds(state, device, budget_s, is_total=_is_total(state))
    except KeyboardInterrupt:
        return state.noting("not raced: interrupted")
    except MissingDependencyError as error:
        if state.options.costs.budget_s is not None:
            raise
        return state.noting(f"not raced: {error}")
    except (InputError, NotRacedError) as error:
        return state.noting(f"not raced: {error}")


def _device(state: RunState) -> Device | None:
    """Return what graphs are run on: what costs are measured on, or what the target is."""
    costs = state.options.costs
    if not costs.end_to_end:
        return None
    if state.cost.device is None and state.options.rules.target == "onnxruntime":
        return open_device("cpu")
    return state.cost.device


def _is_total(state: RunState) -> bool:
    """Whether what earlier runs of the same hash have raced counts; seconds given are for this run."""
    return bool(state.run) and state.options.costs.budget_s is None


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
    is_for_runtime = state.options.rules.target == "onnxruntime"
    return _QUANTIZED_BUDGET_S if is_for_runtime and is_quantized(state.original) else 0.0
