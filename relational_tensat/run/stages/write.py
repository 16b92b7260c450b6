"""The last stage: the result goes into its file, its kernels into a folder; both files are counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import move_into_place
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.formats import copy_model, save_model
from relational_tensat.formats.frontend import OtherDataError, is_onnx
from relational_tensat.run.reports import FileChange
from relational_tensat.run.values import CheckedRun, WrittenRun

#: Where kernels were measured as C.
_AS_PLAIN = "costs are of kernels in C; the file has them as local functions of plain operators"


class _File(NamedTuple):
    """A written file, the remarks for its reader, and the file of its weights."""

    notes: tuple[str, ...] = ()
    data: Path | None = None


def write(checked: CheckedRun) -> WrittenRun:
    """Write what was requested: kernels, and the result.

    Raises:
        InputError: it cannot be written.
    """
    notes, output, file = _write_kernels(checked), checked.loaded.output, _File()
    if output is not None:
        chosen = checked.loaded.run.output
        place = chosen.free() if isinstance(chosen, DefaultOutput) else output
        is_there = place != output
        if is_there:
            notes.append(
                f"{output}: something is there that was not when the run began: it is left alone"
            )
        with checked.loaded.run.phases.phase("write"):
            file = _write_file(checked, place, with_candidate=not is_there)
        output = place
    machine = checked.machine
    if machine is not None and file.data is not None:
        machine = replace(machine, data=file.data)
    form = checked.kernels
    library = None if form is None else form.report
    if form is not None and form.is_taken and output is not None:
        from relational_tensat.custom_ops.manifest import write_manifest  # few runs need it

        library = replace(form.report, folder=write_manifest(form.ops, output, form.overrides))
    elif output is not None and is_onnx(output) and output.with_suffix(".kernels").is_dir():
        from relational_tensat.custom_ops.manifest import remove_stale  # of the file that was there

        remove_stale(output)
    all_notes = checked.noting(*notes, *file.notes).notes
    return WrittenRun(checked, output, machine, all_notes, _change(checked, output), library)


def _change(checked: CheckedRun, output: Path | None) -> FileChange | None:
    """Return the figures of the original's file and of the written one; None unless both are ONNX.

    Where nothing is written, the result counts as the file that it would be.
    """
    file = checked.loaded.model.file
    places = [file, file if output is None else output]
    if any(place is None or place.suffix.lower() != ".onnx" for place in places):
        return None
    from relational_tensat.formats.onnx_frame import figures_of_file, figures_of_skeleton
    from relational_tensat.formats.onnx_write import write_skeleton  # both need onnx

    assert file is not None
    before = figures_of_file(file) if checked.change is None else checked.change.before
    if output is not None:
        return FileChange(before, figures_of_file(output))
    if checked.extracted.copies_file:
        return FileChange(before, before)
    try:
        skeleton, weights = write_skeleton(checked.folded, checked.loaded.run.options.output.opset)
    except InputError:  # ONNX has no words for it: its own operators are counted
        return None
    return FileChange(before, figures_of_skeleton(skeleton, weights.values()))


def _write_file(checked: CheckedRun, output: Path, *, with_candidate: bool) -> _File:
    """Write the result; the original as the file that it is.

    Args:
        with_candidate: the compared file may be moved; with its data it goes by the output's name alone.
    """
    loaded, extracted = checked.loaded, checked.extracted
    sizes = ""
    if checked.sized is not None:
        from relational_tensat.run.stages.dynamic import sizes_note  # needs onnx

        assert loaded.model.dynamic is not None
        sizes = sizes_note(loaded.model.dynamic)
    if checked.saved is not None:
        from relational_tensat.formats.onnx_external import move_with_data  # both need onnx
        from relational_tensat.verify.sessions import data_of

        saved = checked.saved
        data = move_with_data(saved, data_of(saved), output, _data_of_model(loaded.model.file))
        return _File((sizes, *_change_notes(checked)), data)
    if not extracted.copies_file:
        candidate = checked.candidate if with_candidate else None
        if candidate is not None and candidate.exists():
            move_into_place(candidate.parent, output)
        elif checked.sized is not None:
            checked.sized.save(output)
        else:
            save_model(checked.folded, output, loaded.run.options.output.opset)
        return _File((sizes, *_change_notes(checked)))
    assert loaded.model.file is not None
    if loaded.model.moved_data is not None:
        from relational_tensat.formats.onnx_write import copy_with_data  # few runs need it

        copy_with_data(loaded.model.file, output, loaded.model.moved_data)
        note = "the written file is the original, with its large weights in another place"
        return _File((note,))
    try:
        copied = copy_model(loaded.model.file, output)
    except OtherDataError as error:
        save_model(checked.folded, output)
        return _File((f"{error}: the original is written from its graph instead of copied",))
    beside = f", with {', '.join(map(str, copied))}" if copied else ""
    return _File((f"the written file is the original, byte for byte{beside}",))


def _data_of_model(file: Path | None) -> list[Path]:
    """Return the files that the weights of the run's own model are in."""
    if file is None or not is_onnx(file):
        return []
    from relational_tensat.formats.onnx_external import external_locations  # needs onnx

    return [file.parent / name for name in external_locations(file)]


def _change_notes(checked: CheckedRun) -> tuple[str, ...]:
    """Return why the written file is larger, which versions were raised, which inputs it lacks; or ""."""
    change = checked.change
    if change is None:
        return ()
    before_us, after_us = checked.extracted.costs_us
    name = checked.loaded.cost.name
    why = f"under {name} it costs {after_us:,.2f} µs instead of {before_us:,.2f}"
    if checked.saved is not None:
        why = "onnxruntime has saved it for this machine"
    elif checked.extracted.is_unchanged:
        why = "the original is written in another version"
    growth = f"the file has {change.growth}: {why}" if change.growth else ""
    return growth, change.versions, change.fixed_inputs


def _write_kernels(checked: CheckedRun) -> list[str]:
    """Write the kernels that the chosen graph has, if there is a folder for them; return notes on them."""
    loaded, extracted = checked.loaded, checked.extracted
    options, costs = loaded.run.options.fusion, loaded.kernel_costs
    is_measured = costs is not None and costs.is_measured and extracted.has_kernels
    if options.kernels is None:
        return [f"{_AS_PLAIN}; give --kernels DIR to have them in C"] if is_measured else []
    from relational_tensat.mugraph.fusion import kernel_files  # few runs need it

    kernels, chosen = extracted.explored.kernels, extracted.chosen
    if checked.kernels is not None:
        kernels, chosen, is_measured = checked.kernels.kernels, checked.folded, True
    integers = sum(bool(kernel.quantized) for kernel in kernels)
    kernels = tuple(kernel for kernel in kernels if not kernel.quantized)
    count = kernel_files.write_kernels(kernels, chosen, options.kernels, has_torch=options.torch)
    modelled = ", modelled, not timed" if count and not is_measured else ""
    how = [f"{_AS_PLAIN}; in C they run by relational_tensat.kernels.load"] if is_measured else []
    how += [f"{integers} kernels between integers run in onnxruntime alone"] if integers else []
    return [*how, f"kernels in {options.kernels}: {count}{modelled}"]
