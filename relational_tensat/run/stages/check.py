"""The fourth stage: the chosen graph computes what the original computes, gains enough, and is no slower.

A graph that does not is not returned: the search continues without what made it wrong, and ends at the
original.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import InputError, LossError, VerificationError
from relational_tensat.base.files import folder_beside
from relational_tensat.cost import CostSource, Unmeasurable, graph_cost_us
from relational_tensat.cost.device import Device, WholeTiming
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.formats import load_model
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.run.gain import is_worth_it, is_worth_it_modelled, standing_of
from relational_tensat.run.options import ONNXRUNTIME, fuses_what_is_written
from relational_tensat.run.reports import ORIGINAL, FileChange, SizedResult
from relational_tensat.run.result_groups import Rejection, WholeRun
from relational_tensat.run.stages.compare import compare, is_compared_later
from relational_tensat.run.stages.race import race_again
from relational_tensat.run.values import CheckedRun, ExtractedRun, LoadedRun
from relational_tensat.tensor.uses import count_inference_ops
from relational_tensat.verify.verification import UNCHANGED, Verification

if TYPE_CHECKING:
    from relational_tensat.run.stages.compare_sizes import OriginalRuns

#: Why a file that was a result before is left as it is.
SAME = "the file is already what would be written"


def check(extracted: ExtractedRun) -> CheckedRun:
    """Return a graph that was compared and is worth to be written, or the original.

    Where graphs have raced and the winner is not returned, others race; if that one is not returned either,
    the one that is, alone.

    Raises:
        VerificationError: it computes something else, and the options are strict.
    """
    checked = _verified(extracted)
    for has_others in (True, False):
        extracted = checked.extracted
        if _is_other_than_raced(extracted) and not extracted.is_unchanged:
            extracted = _without_race_of_others(replace(extracted, notes=checked.notes))
            checked = _verified(race_again(extracted, has_others=has_others))
    own = _without_race_of_others(replace(checked.extracted, notes=checked.notes))
    checked = replace(checked, extracted=own, notes=own.notes)
    database = own.loaded.egraph.database
    database.run("run/set_estimated_costs", text=own.loaded.cost.counts.estimates)
    own.loaded.run.resources.close()
    timed = fused = _timed(checked)
    runtimes = timed.loaded.run.purpose.runtimes or (ONNXRUNTIME,)
    if fuses_what_is_written(timed.loaded.run.options) and ONNXRUNTIME in runtimes:
        from relational_tensat.run.stages.kernel_library import with_kernels  # few runs need it

        fused = with_kernels(timed)
    timed = _in_runtimes(timed, fused)
    if not timed.loaded.run.options.output.this_machine:
        return timed
    from relational_tensat.run.stages.machine_file import save_for_machine  # few runs need it

    return save_for_machine(timed)


def _verified(extracted: ExtractedRun) -> CheckedRun:
    """Return a graph that was compared, or the original."""
    if extracted.loaded.model.dynamic is None:
        return _compared(extracted, None)
    from concurrent.futures import ThreadPoolExecutor

    from relational_tensat.run.stages.compare_sizes import OriginalRuns  # few models need it

    with ThreadPoolExecutor(1) as beside:
        return _compared(extracted, OriginalRuns(beside))


def _compared(extracted: ExtractedRun, originals: OriginalRuns | None) -> CheckedRun:
    """Return the same; ``originals`` for dynamic models."""
    candidate = None
    while not extracted.copies_file:
        loaded, sized = extracted.loaded, None
        if originals is not None:
            from relational_tensat.run.stages.dynamic import sized_or_other  # few models need it

            originals.begin(loaded)
            extracted, sized = sized_or_other(extracted)
            if sized is None:
                _record(extracted)
                continue
        try:
            candidate = candidate or _place_beside(loaded)
            checked = compare(extracted, sized, candidate)
        except VerificationError as error:
            is_loss = isinstance(error, LossError)
            strict = loaded.run.options.verification.strict
            if extracted.is_unchanged or (strict and not is_loss):
                raise
            from relational_tensat.run.stages.second_search import search_again  # seldom needed

            extracted = search_again(extracted, error)
            _record(extracted)
            continue
        objection = _first_objection(checked)
        if objection and not extracted.is_unchanged:
            extracted = extracted.keeping_original(Rejection(f"{objection}: the original is kept"))
            _record(extracted)
            continue
        if sized is not None and originals is not None:
            from relational_tensat.run.stages.dynamic import compared_or_other

            compared = compared_or_other(checked, originals)
            if isinstance(compared, ExtractedRun):
                extracted = compared
                _record(extracted)
                continue
            checked = compared
            objection = _objection(checked.verification)
            if objection and not extracted.is_unchanged:
                extracted = extracted.keeping_original(
                    Rejection(f"{objection}: the original is kept")
                )
                _record(extracted)
                continue
        checked = replace(checked, change=_file_change(checked))
        extracted, reason = _worth(checked)
        if not reason:
            return checked.noting(_kernels(checked.verification))
        loaded.egraph.database.run("run/set_kept_original", why=reason)
        race = extracted.race
        if race is not None and extracted.is_raced:
            extracted = replace(extracted, race=replace(race, declined=reason))
        extracted = extracted.keeping_original().noting(f"{reason}: the original is kept")
    return _original(extracted, originals)


def _original(extracted: ExtractedRun, originals: OriginalRuns | None) -> CheckedRun:
    """Return the original as its file has it, or as it was read, if that is smaller and compares equal."""
    as_it_is = CheckedRun(extracted, extracted.loaded.model.graph, UNCHANGED, extracted.notes)
    loaded = extracted.loaded
    file, output = loaded.model.file, loaded.output
    if file is None or output is None or not (is_onnx(file) and is_onnx(output)):
        return as_it_is
    if loaded.model.returns_original or loaded.run.options.costs.min_speedup > 1:
        return as_it_is
    try:
        sized = None
        if originals is not None:
            from relational_tensat.run.stages.dynamic import as_read  # few models need it

            sized = as_read(loaded)
        if not _is_smaller(file, loaded, sized):
            return as_it_is
        rewritten = replace(extracted, rewrites_file=True)
        checked = compare(rewritten, sized, _place_beside(loaded))
        if sized is not None and originals is not None and not _first_objection(checked):
            from relational_tensat.run.stages.dynamic import compared_or_other

            compared = compared_or_other(checked, originals)
            if isinstance(compared, ExtractedRun):
                return as_it_is
            checked = compared
    except (InputError, VerificationError):
        return as_it_is
    if _objection(checked.verification):
        return as_it_is
    note = "the original, written without nodes that lead nowhere or are known before inference"
    return replace(checked, change=_file_change(checked)).noting(note)


def _is_smaller(file: Path, loaded: LoadedRun, sized: SizedResult | None) -> bool:
    """Whether the original is fewer nodes, and no more bytes, written as it was read.

    Nodes that lead nowhere, and values known before inference, are not read.
    """
    from relational_tensat.formats.onnx_frame import figures_of_file, figures_of_skeleton
    from relational_tensat.formats.onnx_write import write_skeleton  # both need onnx

    opset = loaded.run.options.output.opset
    skeleton, weights = sized.file if sized else write_skeleton(loaded.model.graph, opset)
    before, after = figures_of_file(file), figures_of_skeleton(skeleton, weights.values())
    return after.nodes < before.nodes and after.bytes <= before.bytes


def _place_beside(loaded: LoadedRun) -> Path | None:
    """Return a place, beside the output, for the ONNX file that is compared.

    Raises:
        InputError: nothing can be written there.
    """
    output = loaded.output
    if output is None or not is_onnx(output):
        return None
    folder = loaded.run.files.enter_context(folder_beside(output))
    return folder / output.name


def _first_objection(checked: CheckedRun) -> str:
    """Return why a graph is not returned before it is compared at several sizes, "" where it may be."""
    if is_compared_later(checked.loaded, checked.sized):
        return ""
    return _objection(checked.verification, is_final=checked.sized is None)


def _objection(verification: Verification, *, is_final: bool = True) -> str:
    """Return why a graph that is right is not returned, "" where it is.

    Args:
        is_final: whether the file that was compared is the one to be written, and not one of fixed sizes.
    """
    if not verification.runs:
        return f"nothing could be compared: {'; '.join(verification.warnings)}"
    quantized = verification.quantized
    return quantized.growth if quantized is not None and is_final else ""


def _kernels(verification: Verification) -> str:
    """Return which kernels the returned graph has: fewer on integers only where it was timed."""
    quantized = verification.quantized
    if quantized is None or not quantized.loss:
        return "" if quantized is None else quantized.kernels
    return f"{quantized.loss}; measured whole, it is faster"


def _record(extracted: ExtractedRun) -> None:
    """Write into the database why the original is returned although another graph is cheaper, if it is."""
    if extracted.is_unchanged and extracted.rejections:
        why = extracted.rejections[-1].why
        extracted.loaded.egraph.database.run("run/set_kept_original", why=why)


def _is_other_than_raced(extracted: ExtractedRun) -> bool:
    """Whether graphs have raced, and one has won that is not the chosen one."""
    race = extracted.race
    return race is not None and not race.keeps_original and not extracted.is_raced


def _without_race_of_others(extracted: ExtractedRun) -> ExtractedRun:
    """Take out a race that a graph has won which is not returned: it says nothing of the one that is."""
    race = extracted.race
    if race is None or not _is_other_than_raced(extracted):
        return extracted
    note = f"raced whole, {race.outcome}: that graph is not returned"
    return replace(extracted, race=None).noting(note)


def _worth(checked: CheckedRun) -> tuple[ExtractedRun, str]:
    """Return why the chosen graph is not worth to be written, "" if it is, and what that says of it."""
    extracted = checked.extracted
    if extracted.is_unchanged:
        return extracted, ""
    if _writes_the_same(checked):
        return replace(extracted, has_same_file=True), SAME
    least, is_smaller = extracted.loaded.run.options.costs.min_speedup, _has_smaller_graph(checked)
    if extracted.race is not None and extracted.is_raced:
        if is_worth_it(extracted.race.final, least, is_smaller=is_smaller):
            return extracted, ""
        size = "" if is_smaller else ", and no smaller"
        outcome = extracted.race.outcome
        return extracted, f"raced whole, {outcome}: not more than {least:g} times as fast{size}"
    before_us, after_us = extracted.costs_us
    if is_worth_it_modelled(before_us, after_us, least, is_smaller=is_smaller):
        return extracted, ""
    growth = checked.change.growth if checked.change is not None else ""
    what = f"the file would have {growth}, and" if growth else "as modelled, the result would"
    if least > 1.0:
        return extracted, f"{what} be no more than {least:g} times as fast"
    less = "hardly less" if after_us < before_us * (1 - COST_TOLERANCE) else "no less"
    return extracted, f"{what} cost {less}"


def _has_smaller_graph(checked: CheckedRun) -> bool:
    """Whether the chosen graph has fewer nodes or bytes in its file, and more of neither.

    Where there are no two ONNX files, its operators at inference are counted.
    """
    if checked.change is not None:
        before, after = checked.change.before, checked.change.after
        is_same = (after.nodes, after.bytes) == (before.nodes, before.bytes)
        return not checked.change.growth and not is_same
    extracted = checked.extracted
    graphs = (extracted.loaded.original, extracted.chosen)
    before_ops, after_ops = (sum(count_inference_ops(graph).values()) for graph in graphs)
    return after_ops < before_ops


def _writes_the_same(checked: CheckedRun) -> bool:
    """Whether the chosen graph is written as the file that the model is from, but for names.

    A graph may be of kernels that no file has words for: these are then in the original as much. One
    operator may have two spellings that are read alike, and that onnxruntime fuses or not.
    """
    change, loaded, candidate = checked.change, checked.loaded, checked.candidate
    if (
        change is None
        or change.before.operators != change.after.operators
        or loaded.kernel_costs is not None
    ):
        return False
    if candidate is None or loaded.model.file is None:
        return False
    contents, options, model = loaded.run.contents, loaded.run.options.model, loaded.model.dynamic
    dims = options.dims if model is None else model.dimensions.at(model.base.sizes)
    keeps = options.keep_overridable
    before = load_model(loaded.model.file, dims, keep_overridable=keeps)
    after = load_model(candidate, {} if checked.sized is None else dims, keep_overridable=keeps)
    return contents.of(before) == contents.of(after)


def _file_change(checked: CheckedRun) -> FileChange | None:
    """Return what writing the chosen graph makes of the file; None unless both are ONNX and it changes."""
    file, output = checked.loaded.model.file, checked.loaded.output
    if file is None or output is None or checked.extracted.copies_file:
        return None
    if not (is_onnx(file) and is_onnx(output)):
        return None
    from relational_tensat.formats.onnx_frame import figures_of_file, figures_of_skeleton
    from relational_tensat.formats.onnx_write import write_skeleton  # both need onnx

    opset, sized = checked.loaded.run.options.output.opset, checked.sized
    skeleton, weights = sized.file if sized else write_skeleton(checked.folded, opset)
    return FileChange(figures_of_file(file), figures_of_skeleton(skeleton, weights.values()))


def _timed(checked: CheckedRun) -> CheckedRun:
    """Time original and extracted graph end to end; keep the original unless the other is worth it.

    That is done where costs are measured here, and a graph other than the original was chosen and has
    been verified. Ctrl-C ends it: then the extracted graph is returned untimed.
    """
    extracted, loaded = checked.extracted, checked.loaded
    device, options = loaded.cost.device, loaded.run.options
    is_known = extracted.is_unchanged or extracted.is_raced
    if device is None or not options.costs.end_to_end or is_known:
        return checked
    timing = _whole_timing(checked, device)
    if isinstance(timing, Unmeasurable):
        return checked.noting(f"not run whole on {loaded.cost.name}: {timing.reason}")
    costs = _costs_as_timed(loaded)
    before_us, after_us = (
        graph_cost_us(graph, costs) for graph in (loaded.original, extracted.graph)
    )
    whole = WholeRun(timing, before_us, after_us)
    checked = replace(checked, whole=whole)
    if extracted.has_kernels:
        checked = checked.noting(
            "run whole with kernels as the plain operators of the file, not in C"
        )
    standing = standing_of(None, timing)
    assert standing is not None
    if is_worth_it(standing, options.costs.min_speedup, is_smaller=_has_smaller_graph(checked)):
        return checked
    reason = _loss(whole, loaded.cost.name)
    kept = _verified(replace(extracted, notes=checked.notes).keeping_original()).noting(reason)
    kept = replace(kept, whole=replace(whole, keeps_original=True))
    path = loaded.run.options.output.db
    from relational_tensat.run.account import remember_kept_original  # it imports results

    remember_kept_original(loaded.egraph.database if path is None else path, reason)
    return kept


def _in_runtimes(checked: CheckedRun, fused: CheckedRun) -> CheckedRun:
    """Race the original and the result in the runtimes that the run is for, if it is for several.

    Args:
        fused: the same as ``checked``, or what became of it with kernels.
    """
    if not checked.loaded.run.purpose.runtimes:
        return fused
    from relational_tensat.run.stages.runtimes import race_runtimes  # few runs need it

    least = checked.loaded.run.options.costs.min_speedup
    is_smaller = not checked.extracted.is_unchanged and _has_smaller_graph(checked)
    raced = race_runtimes(checked, fused, least, is_smaller=is_smaller)
    race = raced.runtimes
    if race is None or race.chosen.which != ORIGINAL or raced.extracted.is_unchanged:
        return raced
    extracted = replace(raced.extracted, notes=raced.notes).keeping_original()
    return replace(_verified(extracted), runtimes=race, kernels=raced.kernels)


def _whole_timing(checked: CheckedRun, device: Device) -> WholeTiming | Unmeasurable:
    loaded = checked.loaded
    seed = loaded.run.options.process.seed
    try:
        with loaded.run.phases.phase("whole"):
            before, after = map(loaded.cost.as_timed, (loaded.original, checked.folded))
            from relational_tensat.run.end_to_end import time_on_device  # measured runs need it

            return time_on_device(device, before, after, loaded.inputs, seed)
    except KeyboardInterrupt:
        return Unmeasurable("interrupted")


def _costs_as_timed(loaded: LoadedRun) -> CostSource:
    """Return the costs of what runs whole: of kernels the plain operators."""
    if loaded.kernel_costs is None:
        return loaded.cost
    from relational_tensat.mugraph.fusion.own_kernel import PlainCosts  # few runs need it

    return PlainCosts(loaded.kernel_costs)


def _loss(whole: WholeRun, source: str) -> str:
    """Return a sentence: the modelled gain, the measured one, and the step taken."""
    timing = whole.timing
    return (
        f"the extracted graph should take {whole.modelled_after_us:,.2f} µs under {source}, the original "
        f"{whole.modelled_before_us:,.2f}, but run whole it takes {timing.after_us:,.2f}, the original "
        f"{timing.before_us:,.2f} ({timing.speedup:.3f}x, {timing.speedup_p10:.3f} to "
        f"{timing.speedup_p90:.3f}): the original is kept"
    )
