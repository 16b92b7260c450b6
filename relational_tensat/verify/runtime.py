"""The second opinion on files: onnxruntime runs the original's and the optimized one's."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError, VerificationError, first_line
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.uses import graph_flops
from relational_tensat.verify.comparison import Comparison, Setting, as_array
from relational_tensat.verify.equivalence import rounded_tolerance
from relational_tensat.verify.evaluate import Weights, check_memory
from relational_tensat.verify.inputs import (
    Masking,
    RandomWeights,
    describe_step,
    draw_inputs,
    own_weights,
)
from relational_tensat.verify.outputs import DefinedElements, Runs, output_names, random_positions
from relational_tensat.verify.sensitivity import excuse_rounding
from relational_tensat.verify.sessions import Session, open_session, runtime_errors, session_feeds
from relational_tensat.verify.verification import Verification, not_compared

#: Of a model that ONNX's reference evaluator runs.
_MOST_FLOPS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FileTrial:
    """The inputs that two files are run on.

    Attributes:
        original: the graph that the first was read as: types of inputs and outputs, data of weights.
        inputs: real inputs by name; those missing are drawn.
        sizes: of dynamic dimensions, for reports; "" for fixed ones.
    """

    original: Graph
    inputs: Mapping[str, Array]
    sizes: str = ""


def verify_files(
    original: Graph,
    before: Path | bytes,
    after: Path | bytes,
    *,
    seed: int = 0,
    runs: int = 1,
    threads: int = 1,
    inputs: Mapping[str, Array] | None = None,
    shrink: int = 0,
    what: str = "the two files",
    run_as: Session = Session.AS_WRITTEN,
    libraries: Sequence[Path] = (),
) -> Verification:
    """Run two ONNX files, or models in memory, on the same inputs in onnxruntime; compare all outputs.

    Where inputs are masks, more runs have rows that are masked, wholly and in part.

    Args:
        original: the graph that ``before`` was read as: types of inputs and outputs, data of weights.
        inputs: real inputs by name; those missing are drawn.
        shrink: how many steps smaller inputs and weights are drawn.
        what: how reports call what is compared.
        run_as: how both are run.
        libraries: of custom ops that ``after`` is run with.

    Returns:
        The comparisons; if the original cannot be run, a warning that says why, and no runs.

    Raises:
        VerificationError: the original can be run and the optimized file cannot.
    """
    (outcome,) = verify_files_at(
        [FileTrial(original, inputs or {})],
        before,
        after,
        seed=seed,
        runs=runs,
        threads=threads,
        shrink=shrink,
        what=what,
        run_as=run_as,
        libraries=libraries,
    )
    return outcome


def verify_files_at(
    trials: Iterable[FileTrial],
    before: Path | bytes,
    after: Path | bytes,
    *,
    seed: int = 0,
    runs: int = 1,
    threads: int = 1,
    shrink: int = 0,
    what: str = "the two files",
    run_as: Session = Session.AS_WRITTEN,
    libraries: Sequence[Path] = (),
) -> list[Verification]:
    """Run two ONNX files as ``verify_files`` does, at several sizes; each is opened once.

    Returns:
        The comparisons of each trial.

    Raises:
        VerificationError: the original can be run and the optimized file cannot.
    """
    options = _Options(before, seed, runs, threads, shrink, what, run_as)
    return _begin(trials, options).compared(after, libraries)


def begin_files_at(
    trials: Iterable[FileTrial],
    before: Path | bytes,
    *,
    seed: int,
    threads: int,
    what: str,
    run_as: Session,
) -> FilesBegun:
    """Run the first of two ONNX files once as ``verify_files_at`` does, to be compared with others."""
    return _begin(trials, _Options(before, seed, 1, threads, 0, what, run_as))


def _begin(trials: Iterable[FileTrial], options: _Options) -> FilesBegun:
    trials = list(trials)
    if importlib.util.find_spec("onnxruntime") is None:
        missing = not_compared("onnxruntime is not installed: the written file was not run")
        return FilesBegun(options, trials, [missing for _ in trials])
    refusals: tuple[type[Exception], ...] = (InputError, *runtime_errors())
    try:
        session = options.opened(options.before)
    except refusals as error:
        return FilesBegun(options, trials, [options.not_run(error) for _ in trials])
    # One session at a time: each has a copy of the weights.
    return FilesBegun(
        options, trials, [_begun(trial, session, options, refusals) for trial in trials]
    )


@dataclass(frozen=True, slots=True)
class FilesBegun:
    """The outputs of the first of two files, to be compared with others."""

    options: _Options
    trials: Sequence[FileTrial]
    runs: Sequence[_Runs | Verification]

    def compared(self, after: Path | bytes, libraries: Sequence[Path] = ()) -> list[Verification]:
        """Run the other file and compare; see ``verify_files_at``."""
        options = self.options
        has_runs = any(isinstance(one, _Runs) for one in self.runs)
        refusals: tuple[type[Exception], ...] = (
            InputError,
            *(runtime_errors() if has_runs else ()),
        )
        try:
            session = None
            for one in self.runs:
                if isinstance(one, _Runs):
                    session = session or options.opened(after, libraries)
                    one.finish(session)
        except refusals as error:
            text = f"{options.runner} cannot run the optimized model: {first_line(error)}"
            if options.by_reference:  # it lacks operators that runtimes have
                return [not_compared(text) for _ in self.trials]
            raise VerificationError(text) from error
        del session
        found = [one.verification(options) if isinstance(one, _Runs) else one for one in self.runs]
        if not options.by_reference and options.run_as is Session.AS_WRITTEN:
            for number, (one, trial) in enumerate(zip(self.runs, self.trials, strict=True)):
                if isinstance(one, _Runs) or graph_flops(trial.original) > _MOST_FLOPS:
                    continue
                (other,) = _begin([trial], replace(options, by_reference=True)).compared(after)
                found[number] = one.joined(other)
        return [one.at_sizes(trial.sizes) for one, trial in zip(found, self.trials, strict=True)]


@dataclass(frozen=True, slots=True)
class _Options:
    """As ``verify_files`` has them.

    Attributes:
        by_reference: both files are run by ONNX's reference evaluator instead, as is done where onnxruntime
            cannot run the original as it is written.
    """

    before: Path | bytes
    seed: int
    runs: int
    threads: int
    shrink: int
    what: str
    run_as: Session
    by_reference: bool = False

    @property
    def runner(self) -> str:
        """Runs both files."""
        return "ONNX's reference evaluator" if self.by_reference else self.run_as.value

    def opened(self, file: Path | bytes, libraries: Sequence[Path] = ()) -> Any:
        if not self.by_reference:
            return open_session(file, self.threads, self.run_as, libraries=libraries)
        from relational_tensat.verify.sessions import ReferenceSession  # few models need it

        return ReferenceSession(file)

    def not_run(self, error: Exception) -> Verification:
        return not_compared(f"{self.runner} cannot run the original: {first_line(error)}")


def _begun(
    trial: FileTrial, session: Any, options: _Options, refusals: tuple[type[Exception], ...]
) -> _Runs | Verification:
    """Run the original; return that, or why it cannot be."""
    original = trial.original
    try:
        check_memory(original)
        weights = RandomWeights(original, options.seed, options.shrink)
        draws = [
            draw_inputs(original, options.seed + run, options.shrink, trial.inputs)
            for run in range(options.runs)
        ]
        begun = _Runs(trial, weights, [_Trial(Setting(f"{options.runner}, {options.what}"), draws)])
        _run_original(session, original, weights, begun.trials[0])
    except refusals as error:
        return options.not_run(error)
    masking = Masking(original, trial.inputs)
    for masked in masking.runs(draws[0]):
        one = _Trial(replace(begun.trials[0].setting, rows=masking.label), [masked])
        try:
            _run_original(session, original, weights, one)
        except refusals as error:
            reason = f"cannot run the original with {masking.label} masked: {first_line(error)}"
            begun.warnings.append(f"{options.runner} {reason}")
        else:
            begun.trials.append(one)
    return begun


@dataclass
class _Runs:
    """All runs of one trial of files, on random inputs and on masked ones."""

    given: FileTrial
    weights: RandomWeights
    trials: list[_Trial]
    warnings: list[str] = field(default_factory=list)

    def finish(self, session: Any) -> None:
        """Run the optimized file."""
        for trial in self.trials:
            trial.results = [
                _arrays(session.run(None, _of_session(session, feed))) for feed in trial.feeds
            ]

    def verification(self, options: _Options) -> Verification:
        """Return what was compared."""
        original = self.given.original
        weights = own_weights(original, self.weights)
        judge = _Judge(
            original, weights, options.seed, options.before, options.threads, options.run_as
        )
        has_random_inputs = bool(set(original.inputs) - set(self.given.inputs))
        comparisons = [
            judge.compared(
                trial, is_masked=number > 0, varies=options.runs > 1 and has_random_inputs
            )
            for number, trial in enumerate(self.trials)
        ]
        smaller = describe_step(options.shrink, weights=False)
        return Verification(
            runs=sum(comparison.runs for comparison in comparisons),
            outputs=tuple(check for comparison in comparisons for check in comparison.results()),
            compared=tuple(
                same[0].compared(has_random_inputs, smaller, sum(one.runs for one in same))
                for same in (comparisons[:1], comparisons[1:])
                if same
            ),
            warnings=tuple(dict.fromkeys((*self.warnings, *judge.warnings))),
        )


@dataclass
class _Trial:
    """Runs that are compared together.

    Attributes:
        draws: the inputs of each run, as they were drawn.
        feeds: the same, as a session takes them.
        expected, results: the outputs of the original's file, and of the optimized one's.
    """

    setting: Setting
    draws: Sequence[Mapping[str, Array]]
    feeds: list[dict[str, Array]] = field(default_factory=list)
    expected: Runs = field(default_factory=list)
    results: Runs = field(default_factory=list)


def _run_original(session: Any, graph: Graph, weights: RandomWeights, trial: _Trial) -> None:
    trial.feeds = [session_feeds(session, graph, draw, weights) for draw in trial.draws]
    trial.expected = [_arrays(session.run(None, feed)) for feed in trial.feeds]


@dataclass
class _Judge:
    """Compares what two files return, and takes out what is undefined, or rounding.

    Attributes:
        weights: those that the files have.
        before: the original's file.
        warnings: of what could not be compared.
    """

    original: Graph
    weights: Weights
    seed: int
    before: Path | bytes
    threads: int
    run_as: Session
    warnings: list[str] = field(default_factory=list)

    def compared(self, trial: _Trial, *, is_masked: bool, varies: bool) -> Comparison:
        """Return the comparison of a trial.

        Args:
            is_masked: whether its inputs have masked rows.
            varies: whether the inputs differ from run to run.
        """
        comparison = self._compared(trial, trial.expected, trial.results, varies)
        if comparison.ok:
            return comparison
        original, weights = self.original, self.weights
        defined = DefinedElements(original, trial.draws, weights)
        self.warnings += defined.warnings
        comparison = self._compared(
            trial, defined.only(trial.expected), defined.only(trial.results), varies
        )
        draw = trial.draws[0]
        excuse_rounding(comparison, original, draw, weights, self.seed, large_sums=is_masked)
        if self.run_as is Session.AS_BY_DEFAULT and not comparison.ok:
            self._excuse_own_kernels(comparison, trial, defined, varies)
        return comparison

    def _excuse_own_kernels(
        self, comparison: Comparison, trial: _Trial, defined: DefinedElements, varies: bool
    ) -> None:
        """Accept outputs no farther from those of the original as written than its own are by default.

        By default it has kernels on integers. These round sums and ties otherwise, and quantize once in
        place of twice.
        """
        try:
            session = open_session(self.before, self.threads, Session.AS_WRITTEN)
            as_written = [_arrays(session.run(None, feed)) for feed in trial.feeds]
        except runtime_errors():
            return
        own, others = (
            self._compared(trial, defined.only(as_written), defined.only(outputs), varies).results()
            for outputs in (trial.expected, trial.results)
        )
        explained = [
            check.max_relative_error
            if other.max_relative_error <= self_check.max_relative_error + check.tolerance
            and np.isfinite(self_check.max_relative_error)
            else 0.0
            for check, self_check, other in zip(comparison.results(), own, others, strict=True)
        ]
        comparison.excuse(explained, "onnxruntime's optimizations, as the original itself is")

    def _compared(self, trial: _Trial, expected: Runs, results: Runs, varies: bool) -> Comparison:
        comparison = Comparison(
            trial.setting,
            output_names(self.original),
            self.original.output_types(),
            rounded_tolerance(self.original),
            random=random_positions(self.original),
            varies=varies,
        )
        for outputs, candidates in zip(expected, results, strict=True):
            comparison.add(outputs, candidates)
        return comparison


def _of_session(session: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
    return {item.name: feeds[item.name] for item in session.get_inputs() if item.name in feeds}


def _arrays(values: Sequence[Any]) -> list[Array]:
    return [as_array(value) for value in values]
