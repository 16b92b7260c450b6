"""The result as onnxruntime saves it after its optimizations, if that is faster on this machine.

The saved file has filters in the blocks, and matrices in the order, that its kernels take. Its weights
are mapped from a file. So they are read from larger pages than those of the heap, and nothing is arranged
when it is loaded. In return, the file is for one version and one kind of processor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import cast

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.base.files import folder_beside
from relational_tensat.cost import Unmeasurable
from relational_tensat.cost.cache import CostCache, default_cache
from relational_tensat.cost.device import FileDevice
from relational_tensat.cost.earlier_runs import Raced, RunsBefore
from relational_tensat.cost.key import now
from relational_tensat.cost.race import LEAST_HEATS, RACE_VERSION, least_heats_s, race
from relational_tensat.formats import save_model
from relational_tensat.formats.frontend import file_digest, is_onnx
from relational_tensat.run.end_to_end import RaceClock, inputs_to_time
from relational_tensat.run.reports import PACKED, SAVED, FileChange, MachineForm
from relational_tensat.run.stages.compare import original_file
from relational_tensat.run.stages.race import racing_device, saved_budget_s
from relational_tensat.run.values import CheckedRun
from relational_tensat.verify import Verification, verify_files
from relational_tensat.verify.evaluate import memory_bytes
from relational_tensat.verify.quantization import compare_quantized, file_bytes, is_quantized
from relational_tensat.verify.sessions import Session, save_session

#: Raised when files are saved in another way: earlier races of them no longer count.
_FORM_VERSION = 1
#: The fewest heats of a race may take so long.
_MOST_HEATS_S = 120.0
#: Runs of the comparison: with other inputs than the result was compared with before.
_RUNS = 2


def save_for_machine(checked: CheckedRun) -> CheckedRun:
    """Save the result as onnxruntime does, compare and race it; ``write`` takes it if it is faster.

    That is done with the option ``this_machine``. Where it cannot be, a note says why.

    Raises:
        VerificationError: the saved file computes something else, and the options are strict.
    """
    options, output = checked.loaded.run.options, checked.loaded.output
    if not options.output.this_machine or output is None:
        return checked
    try:
        _check(checked)
        return _saved(checked, output)
    except KeyboardInterrupt:
        reason = "interrupted"
    except VerificationError as error:
        if options.verification.strict:
            raise
        reason = str(error)
    except InputError as error:
        reason = str(error)
    return checked.noting(f"not saved for this machine: {reason}")


def _check(checked: CheckedRun) -> None:
    """Check that the result can be saved and timed.

    Raises:
        InputError: it cannot.
    """
    if checked.extracted.has_kernels or (checked.kernels and checked.kernels.is_taken):
        raise InputError("onnxruntime saves kernels as the plain operators of the file")
    unknown = sum(weight.data is None for weight in checked.loaded.original.weights.values())
    if unknown:
        raise InputError(f"{unknown} weights have no data in the model")


def _saved(checked: CheckedRun, output: Path) -> CheckedRun:
    loaded, run = checked.loaded, checked.loaded.run
    device = cast(FileDevice, racing_device(run.options, loaded.cost))  # as was checked at first
    folder = run.files.enter_context(folder_beside(output))
    with run.phases.phase("write"):
        portable = portable_file(checked, folder / "portable.onnx")
        forms = _forms(portable, folder, run.options.process.threads, device)
    with run.phases.phase("whole"):
        found = _raced(checked, device, portable, forms)
    form = found.fastest
    if not form:
        return replace(checked, machine=found)
    with run.phases.phase("verify"):
        outcome = _compared(checked, forms[form], folder)
    return replace(
        checked,
        machine=replace(found, taken=form),
        saved=forms[form],
        verification=checked.verification.joined(outcome),
        change=_change(loaded.model.file, forms[form]),
    )


def portable_file(checked: CheckedRun, path: Path) -> Path:
    """Return the file that is written without, which may be the original's."""
    file = checked.loaded.model.file
    if checked.extracted.copies_file and file is not None:
        return file
    if checked.sized is not None:
        checked.sized.save(path)
        return path
    if checked.candidate is not None and checked.candidate.exists():
        return checked.candidate
    save_model(checked.folded, path, checked.loaded.run.options.output.opset)
    return path


def _forms(portable: Path, folder: Path, threads: int, device: FileDevice) -> dict[str, Path]:
    """Return the forms by name, the smaller first; packed only where there is something to be packed.

    Raises:
        InputError: onnxruntime does not save it.
    """
    properties = {
        "saved_by": _runtime(),
        "saved_for": f"{device.key.name.partition(',')[0]} ({device.key.driver}), this version only",
    }
    forms, n_bytes = {}, {}
    for form, is_packed in {SAVED: False, PACKED: True}.items():
        path = folder / f"{form}.onnx"
        n_bytes[form] = save_session(
            portable, path, threads, is_packed=is_packed, properties=properties
        )
        forms[form] = path
    if n_bytes[PACKED] == n_bytes[SAVED]:
        del forms[PACKED]
    return forms


def _runtime() -> str:
    return f"onnxruntime {version('onnxruntime')}"


def _raced(
    checked: CheckedRun, device: FileDevice, portable: Path, forms: Mapping[str, Path]
) -> MachineForm:
    """Return how forms are beside a file, as a run before has timed them, or in a race.

    Raises:
        InputError: they cannot be run, or not within the time and memory that there is.
    """
    loaded, costs = checked.loaded, checked.loaded.run.options.costs
    before = RunsBefore(CostCache(costs.cache or default_cache(), is_dispensable=True), device.key)
    inputs = loaded.run.contents.of_arrays(loaded.inputs)
    setting = json.dumps({"race": RACE_VERSION, "form": _FORM_VERSION, "inputs": inputs})
    original = f"file {file_digest(portable)}"
    known = {} if costs.race_again else before.raced(original, setting)
    known = {form: known[form] for form in forms if form in known}
    is_known = len(known) == len(forms)
    if not is_known:
        known = _race(checked, device, [portable, *forms.values()], list(forms))
        before.keep(original, setting, known)
    winner = next(form for form in known if known[form].is_final)
    return MachineForm(
        _runtime(),
        device.key.name.partition(",")[0],
        {form: each.standing for form, each in known.items()},
        winner,
        known[winner].noise,
        timed_before=known[winner].date if is_known else "",
    )


def _race(
    checked: CheckedRun, device: FileDevice, files: Sequence[Path], names: Sequence[str]
) -> dict[str, Raced]:
    """Race files against the first of them; return what is known of the others by name."""
    _check_room(files)
    loaded, seed = checked.loaded, checked.loaded.run.options.process.seed
    inputs = inputs_to_time(loaded.original, loaded.inputs, seed)
    seeds = count(seed)

    def heat(numbers: Sequence[int]) -> Sequence[float]:
        ratios = device.heat_of_files([files[number] for number in numbers], inputs, next(seeds))
        if isinstance(ratios, Unmeasurable):
            raise InputError(f"not timed: {ratios.reason}")
        return ratios

    clock = RaceClock(saved_budget_s(checked.extracted))
    heats_s = least_heats_s(heat, [*range(len(files)), 0])
    if heats_s > _MOST_HEATS_S:
        raise InputError(f"not timed: {LEAST_HEATS} heats would take {heats_s:.0f} s")
    result = race(heat, len(names), clock.is_over)
    date = now()
    return {
        name: Raced(
            result.final if number == result.winner else standing,
            number == result.winner,
            result.noise,
            date,
        )
        for number, (name, standing) in enumerate(zip(names, result.standings, strict=True), 1)
    }


def _check_room(files: Sequence[Path]) -> None:
    """Check that sessions of all files, two of the first, have room beside each other.

    Raises:
        InputError: the machine has not the memory.
    """
    portable_bytes, *saved_bytes = map(file_bytes, files)
    needed = 4 * portable_bytes + sum(saved_bytes)  # each as it is, and as kernels take it
    machine = memory_bytes()
    if machine is not None and needed > machine:
        raise InputError(
            f"not timed: that takes {needed / 2**30:,.1f} GiB, the machine has {machine / 2**30:,.1f}"
        )


def _compared(checked: CheckedRun, saved: Path, folder: Path) -> Verification:
    """Compare what was saved with the original's file, at all sizes of dynamic dimensions.

    Kernels on integers round as they do by default only, so quantized models are run so alone.

    Raises:
        VerificationError: it computes something else, or nothing that says so could be compared.
    """
    loaded, process = checked.loaded, checked.loaded.run.options.process
    seed, threads = process.seed + 1, process.threads
    is_on_integers = is_quantized(loaded.original)
    sessions = (Session.AS_BY_DEFAULT,) if is_on_integers else tuple(Session)
    if loaded.model.dynamic is not None:
        # few models need it
        from relational_tensat.run.stages.compare_sizes import compare_file_at_all_sizes

        before = loaded.model.dynamic.path
        outcome = compare_file_at_all_sizes(loaded, saved, sessions, seed)
    else:
        before = original_file(loaded.original, loaded.model.compared_file, folder)
        outcomes = [
            verify_files(
                loaded.original,
                before,
                saved,
                seed=seed,
                runs=_RUNS,
                threads=threads,
                inputs=loaded.inputs,
                shrink=checked.verification.shrink,
                what="the file saved for this machine",
                run_as=run_as,
            )
            for run_as in sessions
        ]
        outcome = outcomes[0]
        for other in outcomes[1:]:
            outcome = outcome.joined(other)
    if outcome.failure():
        raise VerificationError(outcome.failure())
    if not any(check.proves_something for check in outcome.outputs):
        raise VerificationError("no comparison with the original proves anything")
    check = compare_quantized(before, saved, threads) if is_on_integers else None
    if check is not None and check.gain:
        raise VerificationError(check.gain)
    portable = checked.verification.quantized
    is_timed = portable is not None and bool(portable.loss)  # whole, which has decided
    if check is not None and check.loss and not is_timed:
        raise VerificationError(check.loss)
    return outcome


def _change(file: Path | None, saved: Path) -> FileChange | None:
    """Return what becomes of the original's file, if that is ONNX."""
    if file is None or not is_onnx(file):
        return None
    from relational_tensat.formats.onnx_frame import figures_of_file  # needs onnx

    return FileChange(figures_of_file(file), figures_of_file(saved))
