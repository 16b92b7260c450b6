"""The choice is timed: whether graphs race, on what device, and for how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError
from relational_tensat.base.plan import Plan, carried_out
from relational_tensat.cost import CostSource, Device, graph_cost_us, open_device
from relational_tensat.cost.race import SHORT_BUDGET_S
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.rules.backends.backend import Backend, load_backend
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.run.options import LOW, Options
from relational_tensat.run.reports import NOT_RACED
from relational_tensat.run.values import ExtractedRun, LoadedRun
from relational_tensat.verify.quantization import is_quantized

#: With measured costs, so many seconds at most unless the options say.
DEFAULT_BUDGET_S = 60.0
#: A short race takes less, but half at least, where the run has taken long: the whole takes no longer.
_SHORT_RUN_S, _AFTER_SHORT_S = 20.0, 3.0
#: A modelled gain that is not timed has to be as large. One of 6 % was a loss of 7: DeiT for eight images,
#: on an Intel Xeon. There onnxruntime reuses memory of results whose sizes it knows, and is slower for it.
_LEAST_GAIN = 0.15
#: With modelled costs that were named, of quantized models.
_QUANTIZED_BUDGET_S = 20.0
#: A run takes no longer on an idle machine, if the race may be short enough; so long is left for what
#: follows it; and so long is raced in any case.
_WHOLE_RUN_S, _AFTER_S, _LEAST_S = 120.0, 15.0, 10.0
#: Of the result as onnxruntime saves it, where graphs do not race.
_SAVED_BUDGET_S = 20.0
#: The share of a budget that is left for that race where graphs raced before it.
_OF_SAVED = 1 / 3


@carried_out
def race(
    extracted: ExtractedRun, budget_s: float | None = None, *, has_others: bool = True
) -> Plan[ExtractedRun]:
    """Choose the graph that is fastest whole, among the original and the cheapest that differ.

    That is done if costs are measured here, or seconds for it are given, and a graph other than the
    original is the cheapest, by the sums or by the profile. Quantized models for onnxruntime always race,
    if that is installed. Ctrl-C ends it: then the cheapest graph stays chosen.

    Args:
        budget_s: how long it may take; None for what the options say.
        has_others: whether other graphs than the chosen one are in it, beside the original.
    """
    loaded, options = extracted.loaded, extracted.loaded.run.options
    budget_s = _budget_s(loaded) if budget_s is None else budget_s
    is_alone = extracted.is_unchanged and not extracted.start
    if not budget_s or is_alone or loaded.model.returns_original:
        return extracted
    if extracted.has_kernels:
        return extracted.noting("not raced: onnxruntime runs kernels by their plain operators")
    from relational_tensat.run.stages.heats import NotRacedError  # few runs need either
    from relational_tensat.run.stages.race_rounds import race_in_rounds

    try:
        device = racing_device(options, loaded.cost)
        if device is None:
            return extracted
        if options.output.this_machine:
            budget_s *= 1 - _OF_SAVED
        return (
            yield from race_in_rounds(
                extracted,
                device,
                budget_s,
                # Races of earlier runs of the same hash count; given seconds are for this run.
                is_total=bool(loaded.run_hash) and options.costs.budget_s is None,
                has_others=has_others,
                is_short=loaded.cost.device is None and _is_for_place(options),
            )
        )
    except KeyboardInterrupt:
        return extracted.noting(NOT_RACED)
    except MissingDependencyError as error:
        if options.costs.budget_s is not None:
            raise
        return extracted.noting(f"not raced: {error}")
    except (InputError, NotRacedError) as error:
        return _without_race(extracted, f"not raced: {error}")


def race_again(extracted: ExtractedRun, *, has_others: bool) -> ExtractedRun:
    """Race again, where the winner is not returned, in what is left of the time, or a little.

    Args:
        has_others: as of ``race``.
    """
    budget_s = _budget_s(extracted.loaded)
    left_s = budget_s - extracted.loaded.run.phases.seconds["whole"]
    return race(extracted, max(left_s, min(_LEAST_S, budget_s)), has_others=has_others)


def _without_race(extracted: ExtractedRun, note: str) -> ExtractedRun:
    """Return what is chosen where a modelled gain cannot be timed: a small one may be a loss.

    onnxruntime runs nodes in an order of its own, so that weights leave the caches or stay there.
    """
    loaded = extracted.loaded
    gain = loaded.original_us / graph_cost_us(extracted.chosen, loaded.cost) - 1
    if not _is_for_place(loaded.run.options) or gain >= _LEAST_GAIN:
        return extracted.noting(note)
    why = f"{note}; a modelled gain of {gain:.1%} alone is too little: the original is kept"
    return replace(extracted, chosen=loaded.original).noting(why)


def check_this_machine(options: Options, cost: CostSource, output: Path | None) -> None:
    """Check that the result may be saved for this machine, if it is to be.

    Raises:
        UsageError: it is not written as ONNX, not run by onnxruntime, or nothing is to be timed.
        MissingDependencyError: onnxruntime is not here.
    """
    if not options.output.this_machine:
        return
    if not is_onnx(output):
        where = "no file is written" if output is None else f"{output} is none"
        raise UsageError(f"this_machine is for .onnx files: {where}")
    device = cost.device
    backend = _backend_here(options)
    own_kind = "" if backend is None else backend.device_kind
    if (own_kind if device is None else device.key.kind) != "cpu":
        raise UsageError(
            "this_machine is for what onnxruntime runs on a processor: give cost cpu, "
            "or backend onnxruntime"
        )
    if options.costs.budget_s == 0 or not options.costs.end_to_end:
        raise UsageError(
            "this_machine is decided by a race: not without a budget, or end to end times"
        )
    racing_device(options, cost)


def saved_budget_s(extracted: ExtractedRun) -> float:
    """Return how long the race of the result as onnxruntime saves it may take."""
    whole_s = _budget_s(extracted.loaded) or _SAVED_BUDGET_S
    return whole_s if extracted.race is None else max(whole_s * _OF_SAVED, min(_LEAST_S, whole_s))


def racing_device(options: Options, cost: CostSource) -> Device | None:
    """Return the device that runs graphs: that of the costs, or the backend's."""
    if not options.costs.end_to_end:
        return None
    if cost.device is not None:
        return cost.device
    if backend := _backend_here(options):
        kind, count = backend.device_kind, cost.n_threads
        return open_device(kind if count == 1 else f"{kind}:threads={count}")
    place = options.purpose.runs_on
    if place is None or place not in BACKENDS or load_backend(place).is_everywhere:
        return None  # of a place that is everywhere, the backend decides
    return open_device(load_backend(place).device_kind)


def _backend_here(options: Options) -> Backend | None:
    """Return the run's backend, if each machine has what it runs on."""
    name = options.rules.backend
    backend = None if name is None else load_backend(name)
    return backend if backend is not None and backend.is_everywhere else None


def _is_for_place(options: Options) -> bool:
    """Whether no seconds are named, and it was said, or is clear, where the result will run."""
    return options.costs.budget_s is None and options.purpose.runs_on is not None


def _budget_s(loaded: LoadedRun) -> float:
    """Return how long graphs may race.

    Costs of a profile do not tell how fast kernels on integers are: a model of which only a part runs on
    other integers than before may be slower. So what such costs choose of a quantized model is timed.
    """
    options = loaded.run.options
    given_s, purpose = options.costs.budget_s, options.purpose
    if given_s is not None:
        return given_s
    if loaded.cost.device is not None:
        left_s = _WHOLE_RUN_S - _AFTER_S - loaded.run.phases.total_s
        return min(DEFAULT_BUDGET_S, max(_LEAST_S, left_s))
    if _is_for_place(options):  # a modelled gain is timed: the result is for this machine
        is_timed_here = purpose.effort != LOW and purpose.runs_on in BACKENDS
        left_s = _SHORT_RUN_S - _AFTER_SHORT_S - loaded.run.phases.total_s
        if loaded.model.dynamic is not None:  # it is compared at several sizes afterwards
            left_s -= _AFTER_SHORT_S
        short_s = min(SHORT_BUDGET_S, max(SHORT_BUDGET_S / 2, left_s))
        return short_s if is_timed_here else 0.0
    is_for_runtime = _backend_here(options) is not None
    return _QUANTIZED_BUDGET_S if is_for_runtime and is_quantized(loaded.original) else 0.0
