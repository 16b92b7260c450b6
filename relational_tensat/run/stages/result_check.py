"""Whether the result may be written: it equals the original, gains enough, and is not too large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost import graph_cost_us
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.formats import load_model, save_model, to_onnx_model
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.run.gain import Gain, is_worth_it, is_worth_it_modelled, standing_of
from relational_tensat.run.options import Options
from relational_tensat.run.reports import FileChange
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.uses import count_inference_ops
from relational_tensat.verify import Verification, not_compared, verify, verify_files
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import RandomWeights, can_reseed, is_small, reseed
from relational_tensat.verify.quantized import compare_quantized, is_quantized
from relational_tensat.verify.runtime import Session

_NOT_RESEEDED = (
    "onnxruntime's comparison proves nothing with the model's own weights, and random ones were "
    "not tried: they are too large to be written for a check"
)
_NOT_WRITTEN = (
    "compared in float64 only: the weights have more than 256 MiB; "
    "write the model as .onnx to have it run in onnxruntime"
)


@dataclass(frozen=True, slots=True)
class _Files:
    """What is compared in onnxruntime.

    Attributes:
        before: the file that the original is from, if it is from one.
        after: where the folded graph is to be written; None for nowhere that lasts.
    """

    original: Graph
    optimized: Graph
    folded: Graph
    before: Path | None
    after: Path | None


def check_result(
    original: Graph,
    optimized: Graph,
    inputs: Mapping[str, Array],
    options: Options,
    *,
    source: Path | None,
    target: Path | None,
    candidate: Path | None = None,
) -> tuple[Graph, Verification]:
    """Fold the optimized graph, compare it with the original; return both outcomes.

    Graphs that are of no ONNX file are compared in onnxruntime, too, as the files that they would be.

    Args:
        inputs: inputs to compare with, by name.
        source: the file that the original is from, if it is from one.
        target: the file that the folded graph is for, if it is for one.
        candidate: where the ONNX file that is compared is written, to stay; None for nowhere that lasts.
    """
    folded = fold_weights(optimized)
    outcome = verify(
        original,
        optimized,
        folded=folded,
        seed=options.process.seed,
        runs=options.verification.runs,
        inputs=inputs,
    )
    if outcome.failure():
        return folded, outcome
    files = _Files(original, optimized, folded, source, candidate)
    check = _check_files if is_onnx(source) or is_onnx(target) else _check_as_files
    return folded, outcome.joined(check(files, inputs, options, outcome.shrink))


def is_as_quantized(
    original: Graph, optimized: Graph, options: Options, *, source: Path | None
) -> bool:
    """Whether onnxruntime runs the optimized graph on integers as much as the original, and no more.

    Args:
        source: the file that the original is from, if it is from one.

    Raises:
        VerificationError: onnxruntime cannot run it.
    """
    with temporary_folder() as folder:
        before, after = original_file(original, source, folder), folder / "optimized.onnx"
        save_model(fold_weights(optimized), after, options.output.opset)
        check = compare_quantized(before, after, options.process.threads)
    return check is None or not (check.loss or check.gain)


def _check_as_files(
    files: _Files, inputs: Mapping[str, Array], options: Options, shrink: int
) -> Verification:
    """Compare graphs that are of no ONNX file, and for none, as the files that they would be."""
    if not is_small(files.original):
        return not_compared(_NOT_WRITTEN)
    try:
        return _check_files(files, inputs, options, shrink)
    except (InputError, MissingDependencyError) as error:
        return not_compared(f"compared in float64 only: {error}")


def _check_files(
    files: _Files, inputs: Mapping[str, Array], options: Options, shrink: int
) -> Verification:
    """Compare in onnxruntime; where the model's own weights prove nothing, with random ones."""

    def compare(
        label: str, graph: Graph, before: Path | bytes, after: Path | bytes
    ) -> Verification:
        as_written, by_default = (
            verify_files(
                graph,
                before,
                after,
                seed=options.process.seed,
                threads=options.process.threads,
                inputs=inputs,
                shrink=shrink,
                what=label,
                run_as=run_as,
            )
            for run_as in (Session.AS_WRITTEN, Session.AS_BY_DEFAULT)
        )
        return as_written.joined(by_default)

    with temporary_folder() as folder:
        before = original_file(files.original, files.before, folder)
        after = files.after or folder / "optimized.onnx"
        save_model(files.folded, after, options.output.opset)
        outcome = compare("the two files", files.original, before, after)
        if outcome.runs and is_quantized(files.original):
            check = compare_quantized(before, after, options.process.threads)
            outcome = replace(outcome, quantized=check)
    proven = any(check.proves_something for check in outcome.outputs)
    if outcome.failure() or proven or not outcome.runs:
        return outcome
    if not can_reseed(files.original):
        return outcome.joined(not_compared(_NOT_RESEEDED))
    weights = RandomWeights(files.original, options.process.seed, shrink)
    original = reseed(files.original, weights)
    optimized = fold_weights(reseed(files.optimized, weights))
    return outcome.joined(
        compare("random weights", original, _in_memory(original), _in_memory(optimized))
    )


def original_file(original: Graph, source: Path | None, folder: Path) -> Path:
    """Return the original's ONNX file: the one that it is from, or one that is written into a folder."""
    if source is not None and is_onnx(source):
        return source
    path = folder / "original.onnx"
    save_model(original, path)
    return path


def _in_memory(graph: Graph) -> bytes:
    model: bytes = to_onnx_model(graph).SerializeToString()
    return model


#: Why a file that was a result before is left as it is.
SAME = "the file is already what would be written"


def weigh(state: RunState) -> tuple[RunState, bool]:
    """Choose the original if the chosen graph and its file gain too little against it.

    Returns:
        The state, and whether the chosen graph stays.
    """
    if state.is_unchanged:
        return replace(state, change=_file_change(state)), True
    state = replace(state, change=_file_change(state))
    if writes_the_same(state):
        state = replace(state, has_same_file=True)
    reason = SAME if state.has_same_file else _objection(state)
    if not reason:
        return state, True
    return _with_original(state, f"{reason}: the original is kept"), False


def _objection(state: RunState) -> str:
    """Return why the chosen graph is not worth to be written, "" if it is."""
    least = state.options.costs.min_speedup
    is_timed = state.race is not None and state.chosen is state.raced
    if is_timed:
        assert state.race is not None
        if is_worth_it(state.race.final, least, is_smaller=is_smaller(state)):
            return ""
        return f"raced whole, {state.race.outcome}: not more than {least:g} times as fast" + (
            "" if is_smaller(state) else ", and no smaller"
        )
    before, after = _costs_us(state)
    if is_worth_it_modelled(before, after, least, is_smaller=is_smaller(state)):
        return ""
    growth = state.change.growth if state.change is not None else ""
    what = f"the file would have {growth}, and" if growth else "as modelled, the result would"
    if least > 1.0:
        return f"{what} be no more than {least:g} times as fast"
    less = "hardly less" if after < before * (1 - COST_TOLERANCE) else "no less"
    return f"{what} cost {less}"


def _with_original(state: RunState, reason: str) -> RunState:
    """Return the state with the original chosen; a race that the other graph was in says so."""
    state.egraph.database.run("run/set_kept_original", why=reason)
    race = state.race
    if race is not None and state.chosen is state.raced:
        race = replace(race, declined=reason)
    return replace(state, chosen=state.original, race=race).noting(reason)


def is_smaller(state: RunState) -> bool:
    """Whether the chosen graph has fewer nodes or bytes in its file, and more of neither.

    Where there are no two ONNX files, its operators at inference are counted.
    """
    if state.change is not None:
        before, after = state.change.before, state.change.after
        return not state.change.growth and (after.nodes, after.bytes) != (
            before.nodes,
            before.bytes,
        )
    counts = (count_inference_ops(graph) for graph in (state.original, state.chosen))
    before_ops, after_ops = (sum(count.values()) for count in counts)
    return after_ops < before_ops


def writes_the_same(state: RunState) -> bool:
    """Whether the chosen graph is written as the file that the model is from, but for names.

    A graph may be of kernels that no file has words for: these are then in the original as much. One
    operator may have two spellings that are read alike, and that onnxruntime fuses or not.
    """
    change = state.change
    if (
        change is None
        or change.before.operators != change.after.operators
        or state.kernel_costs is not None
    ):
        return False
    if state.candidate is None or not state.candidate.exists() or state.file is None:
        return False
    model = state.dynamic
    dims = state.options.model.dims if model is None else model.dimensions.at(model.base.sizes)
    keeps = state.options.model.keep_overridable
    original = load_model(state.file, dims, keep_overridable=keeps)
    candidate = load_model(state.candidate, keep_overridable=keeps)
    return state.contents.of(original) == state.contents.of(candidate)


def gain_so_far(state: RunState) -> Gain:
    """Return what is gained by the chosen graph, as far as it is known."""
    before, after = _costs_us(state)
    return Gain(
        state.runs_on,
        before,
        after,
        standing_of(state.race, state.whole.timing if state.whole else None),
        from_kernels=state.cost.counts.are_found_out,
        is_kept=state.is_unchanged,
    )


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
    after = graph_cost_us(state.extracted if state.has_same_file else state.chosen, state.cost)
    return after if state.has_same_file else graph_cost_us(state.original, state.cost), after


def _file_change(state: RunState) -> FileChange | None:
    """Return what writing the chosen graph makes of the file; None unless both are ONNX and it changes."""
    files = (state.file, state.target)
    if state.copies_file or not all(map(is_onnx, files)):
        return None
    from relational_tensat.formats.onnx_frame import figures_of_file, figures_of_skeleton
    from relational_tensat.formats.onnx_write import write_skeleton  # both need onnx

    assert state.file is not None
    opset = state.options.output.opset
    skeleton, weights = state.sized.file if state.sized else write_skeleton(state.folded, opset)
    return FileChange(figures_of_file(state.file), figures_of_skeleton(skeleton, weights.values()))
