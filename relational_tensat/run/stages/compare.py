"""A graph is compared with the original: in float64, in onnxruntime, and in how onnxruntime runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.errors import (
    CrossingError,
    InputError,
    LossError,
    MissingDependencyError,
    ModelError,
    PrecisionError,
    VerificationError,
)
from relational_tensat.base.folders import temporary_folder
from relational_tensat.formats import save_model, to_onnx_model
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.run.options import Options
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.values import CheckedRun, ExtractedRun, LoadedRun
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify import Verification, not_compared, verify, verify_files
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import RandomWeights, can_reseed, is_small, own_weights, reseed
from relational_tensat.verify.quantization import compare_quantized, is_quantized
from relational_tensat.verify.sensitivity import crossing_draws, crossings
from relational_tensat.verify.sessions import Session
from relational_tensat.verify.verification import UNCHANGED

_NOT_RESEEDED = (
    "onnxruntime's comparison proves nothing with the model's own weights, and random ones were "
    "not tried: they are too large to be written for a check"
)
_NOT_WRITTEN = (
    "compared in float64 only: the weights have more than 256 MiB; "
    "write the model as .onnx to have it run in onnxruntime"
)


def compare(
    extracted: ExtractedRun, sized: SizedResult | None, candidate: Path | None
) -> CheckedRun:
    """Fold the chosen graph, and compare what it computes with the original.

    A graph of much work at all sizes is not compared yet, but at small sizes, beside its file.

    Args:
        sized: the graph at all sizes, where dimensions stay dynamic.
        candidate: where the ONNX file that is compared is written, to stay, if it is at these sizes; None
            for nowhere that lasts.

    Raises:
        VerificationError: it computes something else.
        CrossingError: outputs of integers would be made of other floats.
        PrecisionError: onnxruntime rounds it more than the original.
        LossError: it runs on integers less than the original, and is not known to be faster whole.
    """
    loaded, race, is_unchanged = extracted.loaded, extracted.race, extracted.is_unchanged
    with loaded.run.phases.phase("verify"):
        cautions = () if is_unchanged else _crossed(loaded, extracted.chosen)
        is_later = is_compared_later(loaded, sized)
        if sized is not None and is_later:  # what is alike at all sizes is folded there already
            folded, verification = fold_weights(sized.folded[0]), UNCHANGED
        else:
            folded, verification = check_result(
                loaded.original,
                extracted.chosen,
                loaded.inputs,
                loaded.run.options,
                source=loaded.model.compared_file,
                output=loaded.output,
                candidate=candidate,
            )
    # Kernels are counted only where it is not known that the graph is faster whole, beyond the noise.
    is_faster = race is not None and race.final.is_faster and extracted.is_raced
    quantized = verification.quantized
    if quantized is not None and quantized.gain and not is_unchanged:
        raise PrecisionError(quantized.gain)
    if quantized is not None and quantized.loss and not (is_unchanged or is_faster):
        raise LossError(quantized.loss)
    if verification.failure():
        raise VerificationError(verification.failure())
    is_compared = is_later or bool(verification.runs)
    if is_unchanged and not is_compared:  # not even folded
        folded, candidate = loaded.original, None
    verification = replace(verification, warnings=(*verification.warnings, *cautions))
    return CheckedRun(extracted, folded, verification, extracted.notes, candidate, sized)


def is_compared_later(loaded: LoadedRun, sized: SizedResult | None) -> bool:
    """Whether a graph is compared beside its file with dynamic dimensions only."""
    if sized is None:
        return False
    # few models need it
    from relational_tensat.run.stages.compare_sizes import is_compared_at_others

    return is_compared_at_others(loaded)


def _crossed(loaded: LoadedRun, chosen: Graph) -> tuple[str, ...]:
    """Return at which discontinuities a graph has other floats than the original.

    Raises:
        CrossingError: outputs of integers depend on one of these.
    """
    seed, original = loaded.run.options.process.seed, loaded.original
    draws = crossing_draws(original, seed, loaded.inputs)
    weights = own_weights(original, RandomWeights(original, seed, 0))
    found = crossings(original, chosen, draws, weights)
    if found.to_integers:
        raise CrossingError(
            f"outputs of integers would depend on floats that are rounded otherwise before "
            f"{', '.join(found.to_integers)}"
        )
    if not found.to_floats:
        return ()
    places = ", ".join(found.to_floats)
    return (f"floats are rounded otherwise before {places}: those on a step may come out one off",)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that are compared in onnxruntime.

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
    output: Path | None,
    candidate: Path | None = None,
) -> tuple[Graph, Verification]:
    """Fold the optimized graph, compare it with the original; return both outcomes.

    Graphs that are of no ONNX file are compared in onnxruntime, too, as the files that they would be.

    Args:
        inputs: inputs to compare with, by name.
        source: the file that the original is from, if it is from one.
        output: the file that the folded graph is for, if it is for one.
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
    check = _check_files if is_onnx(source) or is_onnx(output) else _check_as_files
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
        try:
            save_model(files.folded, after, options.output.opset)
        except ModelError:
            from relational_tensat.formats.onnx_write import check_types  # seldom needed

            check_types(before)  # the fault may be the original's
            raise
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
