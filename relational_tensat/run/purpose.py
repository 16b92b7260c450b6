"""The purpose of a run is where its result will run: it decides costs, backend, and timing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.errors import MissingDependencyError, UsageError, nearest
from relational_tensat.base.process import processors
from relational_tensat.cost.profile import profile_names
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.rules.backends.backend import CostRequest, load_backend
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.run.options import CUDA, DEFAULT_PROFILE, HIGH, LOW, ONNXRUNTIME, Options
from relational_tensat.tensor import Graph

#: Places beside backends: another runtime on this CPU, and the fastest of those that are installed.
OPENVINO, BEST = "openvino", "best"
_EXTRAS = {ONNXRUNTIME: "onnx", OPENVINO: "openvino"}
_ONLY_ONNXRUNTIME = (
    "openvino is not installed, so only onnxruntime is tried: "
    "pip install 'relational-tensat[openvino]'"
)
_NOT_INSTALLED = (
    f"onnxruntime is not installed, so the run is for {DEFAULT_PROFILE}, modelled: "
    "pip install 'relational-tensat[onnx]'"
)


@dataclass(frozen=True, slots=True)
class Purpose:
    """The place that a run is for.

    Attributes:
        options: with costs and backend that go with it.
        text: where the result will run, for people; "" where costs were named instead.
        note: why it is for something else than usual, "" where it is not.
        runtimes: that the original and the result race in; none where they run in one that is known.
    """

    options: Options
    text: str = ""
    note: str = ""
    runtimes: tuple[str, ...] = ()


def purpose_of(options: Options, model: Graph | str | Path) -> Purpose:
    """Return what a run of a model is for; costs and backend that are named win over that.

    An ONNX file is for onnxruntime on this processor unless something else is said, another model for
    ``DEFAULT_PROFILE``.

    Raises:
        UsageError: there is no such place, or it is modelled and to be timed.
        MissingDependencyError: the GPU that it is for is not here.
    """
    named, note = options.purpose.runs_on, ""
    has_costs, backend = options.costs.source is not None, options.rules.backend
    if named is None and has_costs:
        purpose = options.purpose
        if purpose.effort != type(purpose)().effort:
            raise UsageError(
                "--effort goes with --for: with --cost, --budget says how long graphs race"
            )
        if purpose.threads_at_inference is not None:
            raise UsageError(
                "--threads-at-inference goes with --for onnxruntime: with --cost, write cpu:threads=N"
            )
        return Purpose(options)
    if named is None:
        is_file_of_onnx = not isinstance(model, Graph) and is_onnx(model)
        named = (
            ONNXRUNTIME
            if (is_file_of_onnx and backend is None) or backend == ONNXRUNTIME
            else DEFAULT_PROFILE
        )
        if named == ONNXRUNTIME and not _has_onnxruntime():
            named, note = DEFAULT_PROFILE, _NOT_INSTALLED
    if named in (BEST, OPENVINO):
        return _in_runtimes(named, options, model)
    _check(named, options)
    if has_costs and backend is not None and named == CUDA:  # needs no GPU
        return Purpose(options)
    cost, own_backend, text = _going_with(named, options)
    has_own = not has_costs or options.costs.source == cost
    options = options.replace(
        runs_on=named, cost=options.costs.source or cost, backend=backend or own_backend
    )
    return Purpose(options, text if has_own else "", note)


def _in_runtimes(named: str, options: Options, model: Graph | str | Path) -> Purpose:
    """Return the purpose of a run whose files race in runtimes: it searches as for onnxruntime.

    Raises:
        UsageError: the model is no ONNX file.
        MissingDependencyError: a runtime that is needed is not installed.
    """
    if isinstance(model, Graph) or not is_onnx(model):
        raise UsageError(
            f"--for {named} takes an .onnx file, expected another --for for this model"
        )
    if not _has_onnxruntime() or (named == OPENVINO and not _is_installed(OPENVINO)):
        missing = ONNXRUNTIME if not _has_onnxruntime() else OPENVINO
        raise MissingDependencyError(
            f"--for {named} needs {missing}: pip install 'relational-tensat[{_EXTRAS[missing]}]'"
        )
    if options.output.this_machine:
        raise UsageError(f"--this-machine goes with --for {ONNXRUNTIME}, not {named}")
    effort = LOW if named == OPENVINO else options.purpose.effort  # no race in onnxruntime
    own = purpose_of(options.replace(runs_on=ONNXRUNTIME, effort=effort), model)
    if not _is_installed(OPENVINO):
        return replace(own, note=_ONLY_ONNXRUNTIME)
    threads = own.text.partition(", ")[2]
    place = OPENVINO if named == OPENVINO else "the fastest runtime"
    runtimes = (OPENVINO,) if named == OPENVINO else (ONNXRUNTIME, OPENVINO)
    return replace(own, text=f"{place} on this CPU, {threads}", runtimes=runtimes)


def _going_with(named: str, options: Options) -> tuple[str, str | None, str]:
    """Return the costs and the backend of a place, and what it is called.

    Kernels of the model's own are no backend's: with the option ``fuse`` each operator is a kernel. For
    onnxruntime they are made of what is written for it.
    """
    if named not in BACKENDS:
        return named, None, named
    purpose, fuses = options.purpose, options.fusion.fuse and named != ONNXRUNTIME
    request = CostRequest(purpose.effort == HIGH, purpose.threads_at_inference, fuses)
    cost, text = load_backend(named).costs_here(request)
    return cost, None if fuses else named, text


def _has_onnxruntime() -> bool:
    return _is_installed("onnx") and _is_installed(ONNXRUNTIME)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _check(named: str, options: Options) -> None:
    """Check that there is such a place, and that what is said of it can be."""
    purpose = options.purpose
    modelled = tuple(name for name in profile_names() if not name.startswith("cpu"))
    places = (*BACKENDS, OPENVINO, BEST, *modelled)
    is_profile = named in modelled or named.endswith(".toml")
    if named not in places and not is_profile:
        hint = "; this CPU is onnxruntime" if named in ("cpu", "ort") else nearest(named, places)
        raise UsageError(
            f"--for {named}: expected {', '.join(places)} or a profile's .toml file{hint}"
        )
    if is_profile and purpose.effort == HIGH:
        raise UsageError(
            f"--effort high measures kernels, but {named} is modelled: "
            f"expected --for {' or '.join(BACKENDS)}, or --effort {LOW}"
        )
    threads = purpose.threads_at_inference
    if threads is None:
        return
    if named != ONNXRUNTIME:
        raise UsageError(f"--threads-at-inference goes with --for {ONNXRUNTIME}, not {named}")
    if threads > processors():
        raise UsageError(
            f"--threads-at-inference {threads}: expected 1 to {processors()}, the processors here"
        )
