"""Kernels for parts of what is to be written, as custom ops of onnxruntime, if it is faster with them.

The file with kernels has the same operators, some of them in local functions, which onnxruntime inlines:
without the library it is the file that would be written otherwise. With it, the functions are C. Parts are
timed one by one. Of those that gain, one extraction takes some, beside onnxruntime's own kernels. It has
the layouts that these read and give, so that a kernel amid blocked convolutions costs the reorders, too.
That is modelled; so whole files race: as it would be, with these kernels, and with all that gain alone. The
winner races with its library, and without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from relational_tensat.base.errors import (
    InputError,
    MissingDependencyError,
    UsageError,
    VerificationError,
)
from relational_tensat.base.files import folder_beside
from relational_tensat.base.folders import is_temporary
from relational_tensat.base.watch import Watch
from relational_tensat.cost import graph_cost_us
from relational_tensat.cost.cache import CostCache, default_cache
from relational_tensat.cost.cpu.graph_times import run_heat
from relational_tensat.cost.cpu.session import refusals
from relational_tensat.cost.earlier_runs import Raced, RunsBefore
from relational_tensat.cost.key import now
from relational_tensat.cost.opener import open_processor
from relational_tensat.cost.race import RACE_VERSION, RaceResult, Standing, race
from relational_tensat.custom_ops.calls import op_of
from relational_tensat.custom_ops.library import kernels_of
from relational_tensat.custom_ops.part_times import PartTimes, SessionSetting
from relational_tensat.custom_ops.parts import PartRow, gain_us, timed_parts
from relational_tensat.custom_ops.timed_part import TimedPart
from relational_tensat.formats.frontend import file_digest, is_onnx
from relational_tensat.formats.onnx_metadata import (
    OLDEST_POSSIBLE_OPSET,
    OLDEST_WRITTEN_OPSET,
    read_imports,
)
from relational_tensat.mugraph.fusion.candidates import with_numbers
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.kernels.emit_c import (
    CKernel,
    compiler,
    emitted_kernels,
    read_functions,
)
from relational_tensat.run.end_to_end import RaceClock, inputs_to_time
from relational_tensat.run.kernel_report import KernelForm, LibraryReport, RunningKernel
from relational_tensat.run.reports import FusionReport, UsedKernel
from relational_tensat.run.stages.compare import original_file
from relational_tensat.run.stages.kernel_files import WAYS, KernelFile, kernel_file
from relational_tensat.run.stages.machine_file import portable_file
from relational_tensat.run.values import CheckedRun
from relational_tensat.verify import Verification, verify_files
from relational_tensat.verify.sessions import Session

if TYPE_CHECKING:
    from relational_tensat.run.stages.sized_kernels import SizedKernels

#: Seconds of the race of files.
_BUDGET_S = 20.0
#: The fewest heats in which the best file is found. Files of 150 ms a run took 16 s for five of them.
_LEAST_FINDING = 2
_RUNS = 2


@dataclass(frozen=True, slots=True)
class _KernelRace:
    """How a file with kernels is beside the one without.

    Attributes:
        final: with its library.
        alone: without; None where it is no faster with it.
        noise: of the file without kernels, against itself.
        timed_before: when an earlier run timed it; "" where this one did.
    """

    best: KernelFile
    final: Standing
    alone: Standing | None
    noise: Standing
    timed_before: str = ""


def with_kernels(checked: CheckedRun) -> CheckedRun:
    """Return a result with kernels where these make it faster; else a note says why not."""
    try:
        _check(checked)
        return _with_kernels(checked)
    except KeyboardInterrupt:
        reason = "interrupted"
    except (InputError, MissingDependencyError, UsageError, VerificationError) as error:
        if isinstance(error, VerificationError) and checked.loaded.run.options.verification.strict:
            raise
        reason = str(error)
    return checked.noting(f"no kernels in the file: {reason}")


def _check(checked: CheckedRun) -> None:
    """Check that there can be a file with kernels.

    Raises:
        InputError: there cannot.
        MissingDependencyError: there is no C compiler.
    """
    output = checked.loaded.output
    if output is None or not is_onnx(output) or is_temporary(output):
        raise InputError("no .onnx file is written")
    if any(weight.data is None for weight in checked.loaded.original.weights.values()):
        raise InputError("weights have no data in the model")
    compiler()


def _with_kernels(checked: CheckedRun) -> CheckedRun:
    loaded, run = checked.loaded, checked.loaded.run
    assert loaded.output is not None
    folder = run.files.enter_context(folder_beside(loaded.output))
    rows: list[PartRow] = []
    watch = Watch()
    limit_s = run.options.fusion.time_limit_s
    limited = watch if limit_s is None else watch.within(limit_s)
    plain = portable_file(checked, folder / "plain.onnx")
    proto = onnx.load(plain, load_external_data=False)
    opset = read_imports(proto.opset_import)[""]
    if opset < OLDEST_POSSIBLE_OPSET:  # functions cannot be written in that one
        opset = OLDEST_WRITTEN_OPSET
    setting = SessionSetting(loaded.cost.n_threads, opset)
    key = open_processor(setting.threads).key
    costs = CostCache(run.options.costs.cache or default_cache(), is_dispensable=True)
    times = PartTimes(costs, key, setting, again=run.options.costs.race_again)
    sized = None
    with run.phases.phase("fuse"), watch.watching():
        if loaded.model.stays_dynamic:
            from relational_tensat.run.stages import sized_kernels  # few models need it

            sized = sized_kernels.SizedKernels(checked, setting.opset)
        numbered = with_numbers(checked.folded)
        sized_parts = None if sized is None else sized.parts
        whole_us = graph_cost_us(checked.extracted.chosen, loaded.cost)
        given = (numbered, loaded.cost, setting, limited, rows, times)
        found = timed_parts(*given, sized_parts, whole_us)
        try:
            gaining = [part for part in found if _gain_us(part) > 0]
        finally:
            times.keep()
    parts = sorted(gaining, key=lambda part: (part.kernel.key, part.places[0].outputs))
    prices_us: dict[TimedPart, float] = {}
    of_all = parts, prices_us, proto, setting.opset, sized
    variants = {way: partial(kernel_file, checked, way, *of_all) for way in WAYS}
    raced = _known_or_raced(checked, plain, variants, RunsBefore(costs, key), times.setting)
    if raced is None:
        raise InputError(f"of {len(rows)} parts none has a faster kernel")
    best = raced.best
    is_safe = raced.alone is not None and raced.alone.high >= 1.0
    is_taken = raced.final.is_faster and is_safe
    report = LibraryReport(
        _running(best),
        raced.final,
        raced.alone,
        raced.noise,
        is_taken,
        tuple(rows),
        tuple(best.overrides),
        timed_before=raced.timed_before,
    )
    if not is_taken:
        fusion = FusionReport(len(rows), len({part.kernel.key for part in best.parts}), ())
        return replace(checked, kernels=KernelForm(report, (), (), fusion))
    with run.phases.phase("verify"):
        outcome = _compared(checked, best, folder, sized)
    own = {part.kernel.key: part.kernel for part in best.parts}
    extracted = checked.extracted
    if extracted.is_unchanged:
        extracted = replace(extracted, rewrites_file=True)
    return replace(
        checked,
        extracted=extracted,
        folded=best.graph,
        candidate=best.file,
        sized=best.sized,
        kernels=KernelForm(
            report,
            best.ops,
            tuple(own.values()),
            _fusion(rows, best),
            best.overrides,
            best.libraries,
        ),
        verification=checked.verification.joined(outcome),
    )


def _gain_us(part: TimedPart) -> float:
    return gain_us(part.plain_us, part.kernel_us)


def _known_or_raced(
    checked: CheckedRun,
    plain: Path,
    variants: Mapping[str, Callable[[], KernelFile | None]],
    before: RunsBefore,
    setting: str,
) -> _KernelRace | None:
    """Return the fastest file with kernels, as a run before has timed it, or in a race; None for none.

    Args:
        variants: make files, which may be none; each that is one differs from the others.
        before: the known results of races.
        setting: all that these hold for, but for the device.

    Raises:
        InputError: a file cannot be written, its library is not right, or it cannot be run.
    """
    run = checked.loaded.run
    inputs = run.contents.of_arrays(checked.loaded.inputs)
    setting = json.dumps({"race": RACE_VERSION, "inputs": inputs, "kernels": setting})
    original = f"file {file_digest(plain)}"
    known = {} if run.options.costs.race_again else before.raced(original, setting)
    made = {way: cache(make) for way, make in variants.items()}
    for name, own in known.items():
        way, _, _ = name.partition(" ")
        alone = known.get(f"{name}{_ALONE}")
        if not own.is_final or (own.standing.is_faster and alone is None):
            continue
        with run.phases.phase("fuse"):
            file = made[way]()
        if file is not None and file.name == name:
            standing = None if alone is None else alone.standing
            return _KernelRace(file, own.standing, standing, own.noise, own.date)
    with run.phases.phase("fuse"):
        every = [file for make in made.values() if (file := make()) is not None]
    files = [each for n, each in enumerate(every) if not any(_is_same(each, m) for m in every[:n])]
    if not files:
        return None
    with run.phases.phase("whole"):
        result = _raced(checked, plain, files)
        best = files[result.winner - 1]
        found = {best.name: Raced(result.final, True, result.noise, now())}
        raced = _KernelRace(best, result.final, None, result.noise)
        if result.final.is_faster:
            without = _raced(checked, plain, [replace(best, libraries=())])
            found[f"{best.name}{_ALONE}"] = Raced(without.final, False, without.noise, now())
            raced = replace(raced, alone=without.final)
    if all(each.tells_something for each in found.values()):
        before.keep(original, setting, found)
    return raced


#: Of a file that is run without its library.
_ALONE = " alone"


def _is_same(one: KernelFile, other: KernelFile) -> bool:
    kernels = ([n for n in each.graph.nodes if n.op == "fused"] for each in (one, other))
    return one.overrides == other.overrides and next(kernels) == next(kernels)


def _raced(checked: CheckedRun, plain: Path, variants: Sequence[KernelFile]) -> RaceResult:
    """Race files with kernels against the one without.

    Raises:
        InputError: one cannot be run.
    """
    loaded, seed = checked.loaded, checked.loaded.run.options.process.seed
    inputs = inputs_to_time(loaded.original, loaded.inputs, seed)
    files = [plain, *(variant.file for variant in variants)]
    libraries = [(), *(variant.libraries for variant in variants)]
    seeds = count(seed)

    def heat(numbers: Sequence[int]) -> list[float]:
        own = {place: libraries[number] for place, number in enumerate(numbers)}
        running = [files[number] for number in numbers]
        return run_heat(running, inputs, next(seeds), loaded.cost.n_threads, own)

    try:
        return race(heat, len(variants), RaceClock(_BUDGET_S / 2).is_over, _LEAST_FINDING)
    except refusals() as error:
        raise InputError(f"onnxruntime does not run it: {error}") from error


def _compared(
    checked: CheckedRun, best: KernelFile, folder: Path, sized: SizedKernels | None
) -> Verification:
    """Compare a file with kernels, with its library and without, with the original.

    Raises:
        VerificationError: it computes something else.
    """
    loaded, process = checked.loaded, checked.loaded.run.options.process
    before = original_file(loaded.original, loaded.model.compared_file, folder)
    outcome: Verification | None = None
    for libraries in (best.libraries, ()):
        what = "the file with kernels" if libraries else "that file without its library"
        if sized is not None:
            own = sized.compared(best.file, libraries, what)
            outcome = own if outcome is None else outcome.joined(own)
            continue
        own = verify_files(
            loaded.original,
            before,
            best.file,
            seed=process.seed + 2,
            runs=_RUNS,
            threads=process.threads,
            inputs=loaded.inputs,
            shrink=checked.verification.shrink,
            what=what,
            run_as=Session.AS_BY_DEFAULT,
            libraries=libraries,
        )
        outcome = own if outcome is None else outcome.joined(own)
    assert outcome is not None
    if outcome.failure():
        raise VerificationError(outcome.failure())
    if not any(check.proves_something for check in outcome.outputs):
        raise VerificationError("no comparison with the original proves anything")
    return outcome


def _running(variant: KernelFile) -> tuple[RunningKernel, ...]:
    return tuple(
        RunningKernel(
            f"fused_{part.kernel.key}",
            tuple(step.op for step in part.places[0].program.operators),
            number,
            part.kernel_us,
            part.plain_us,
            "\n".join(
                each.source.removeprefix(read_functions()).strip()
                for each in _emitted(part.kernel).values()
            ),
        )
        for part, number in variant.parts.items()
    )


def _emitted(kernel: OwnKernel) -> dict[str, CKernel]:
    return (
        kernels_of(op_of(kernel))
        if kernel.loops or kernel.quantized
        else emitted_kernels(kernel.graph)
    )


def _fusion(rows: Sequence[PartRow], best: KernelFile) -> FusionReport:
    used = [
        UsedKernel(
            part.kernel.key,
            tuple(node.op for node in part.places[0].nodes),
            part.kernel_us,
            len(part.kernel.graph.kernels),
            len(part.places[0].outputs),
        )
        for part, number in best.parts.items()
        for _ in range(number)
    ]
    return FusionReport(len(rows), sum(row.kernel_us is not None for row in rows), tuple(used))
