"""The second opinion on files: onnxruntime runs the original's and the optimized one's.

It also saves a model as it is after its optimizations, with the weights beside the file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relational_tensat.base.errors import InputError, VerificationError, first_line
from relational_tensat.base.folders import temporary_folder, utf8_name
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import get_operator
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
from relational_tensat.verify.verification import Verification, not_compared

if TYPE_CHECKING:
    import onnx

#: Of a model that ONNX's reference evaluator runs.
_MOST_FLOPS = 2_000_000_000
_QUIET = 4  # onnxruntime's log level "fatal": its warnings on old models are none of ours

#: Where onnxruntime puts the weights of a graph that it writes: in the file itself, they end at 2 GiB.
_BESIDE = "session.optimized_model_external_initializers_file_name"
#: Whether it puts there, too, what kernels have packed of them: matrices of products.
_PACKED = "session.save_external_prepacked_constant_initializers"


class Session(Enum):
    """How onnxruntime runs a file: as it is, or with all its own optimizations, as by default."""

    AS_WRITTEN = "onnxruntime"
    AS_BY_DEFAULT = "onnxruntime with its optimizations"


@dataclass(frozen=True, slots=True)
class FileTrial:
    """What two files are run on.

    Attributes:
        original: what the first was read as: types of inputs and outputs, data of weights.
        inputs: real inputs by name; those missing are drawn.
        sizes: of dynamic dimensions, for reports; "" where there are none.
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
    by_reference: bool = False,
) -> Verification:
    """Run two ONNX files, or models in memory, on the same inputs in onnxruntime; compare all outputs.

    Where inputs are masks, more runs have rows that are masked, wholly and in part.

    Args:
        original: what ``before`` was read as: types of inputs and outputs, data of weights.
        inputs: real inputs by name; those missing are drawn.
        shrink: how many steps smaller inputs and weights are drawn.
        what: how reports call what is compared.
        run_as: how both are run.
        by_reference: instead, both are run by ONNX's reference evaluator, as they are where onnxruntime
            cannot run the original as it is written.

    Returns:
        What was compared; where the original cannot be run, a warning that says why, and no runs.

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
        by_reference=by_reference,
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
    by_reference: bool = False,
) -> list[Verification]:
    """Run two ONNX files as ``verify_files`` does, at several sizes; each is opened once.

    Returns:
        What was compared in each trial.

    Raises:
        VerificationError: the original can be run and the optimized file cannot.
    """
    trials = list(trials)
    if importlib.util.find_spec("onnxruntime") is None:
        missing = "onnxruntime is not installed: the written file was not run"
        return [not_compared(missing) for _ in trials]
    options = _Options(before, seed, runs, threads, shrink, what, run_as, by_reference)
    refusals: tuple[type[Exception], ...] = (InputError, *runtime_errors())
    try:
        session = options.opened(before)
    except refusals as error:
        begun: list[_Runs | Verification] = [options.not_run(error) for _ in trials]
    else:
        begun = [_begun(trial, session, options, refusals) for trial in trials]
        del session  # one at a time: each has a copy of the weights
    try:
        after_session = None
        for one in begun:
            if isinstance(one, _Runs):
                after_session = after_session or options.opened(after)
                one.finish(after_session)
    except refusals as error:
        text = f"{options.runner} cannot run the optimized model: {first_line(error)}"
        if by_reference:  # it lacks operators that runtimes have
            return [not_compared(text) for _ in trials]
        raise VerificationError(text) from error
    del after_session
    found = [one.verification(options) if isinstance(one, _Runs) else one for one in begun]
    if not by_reference and run_as is Session.AS_WRITTEN:
        for number, (one, trial) in enumerate(zip(begun, trials, strict=True)):
            if isinstance(one, _Runs) or not _is_little(trial.original):
                continue
            (other,) = verify_files_at(
                [trial], before, after, seed=seed, runs=runs, threads=threads, shrink=shrink,
                what=what, by_reference=True,
            )  # fmt: skip
            found[number] = one.joined(other)
    return [one.at_sizes(trial.sizes) for one, trial in zip(found, trials, strict=True)]


@dataclass(frozen=True, slots=True)
class _Options:
    """As ``verify_files`` has them."""

    before: Path | bytes
    seed: int
    runs: int
    threads: int
    shrink: int
    what: str
    run_as: Session
    by_reference: bool

    @property
    def runner(self) -> str:
        """What runs both files."""
        return "ONNX's reference evaluator" if self.by_reference else self.run_as.value

    def opened(self, file: Path | bytes) -> Any:
        if not self.by_reference:
            return open_session(file, self.threads, self.run_as)
        from relational_tensat.verify.reference import ReferenceSession  # few models need it

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


def _is_little(graph: Graph) -> bool:
    """Whether the arithmetic of a graph is little enough for an evaluator in NumPy."""
    flops = 0
    for node in graph.nodes:
        kinds = tuple(graph.types[name] for name in node.inputs)
        results = tuple(part for name in node.outputs for part in tensors_of(graph.types[name]))
        output = results[0] if len(results) == 1 else results
        flops += get_operator(node.op).flops(kinds, output, node.attrs)
    return flops <= _MOST_FLOPS


@dataclass
class _Trial:
    """Runs that are compared together.

    Attributes:
        draws: the inputs of each run, as they were drawn.
        feeds: the same, as a session takes them.
        expected, results: what the original's file returns, and the optimized one's.
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

        By default it has kernels on integers, which round sums and ties otherwise, and one quantization in
        place of two.
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


def open_session(
    model: Path | bytes,
    threads: int,
    run_as: Session,
    *,
    optimized: Path | None = None,
    is_packed: bool = False,
    profile: Path | None = None,
) -> Any:
    """Return a session of onnxruntime.

    Args:
        optimized: where it writes the graph that it runs, weights beside it, in ``NAME.data``.
        is_packed: whether matrices are there as kernels have packed them, too.
        profile: what the file begins with that it writes its nodes' times to.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if run_as is Session.AS_WRITTEN:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = utf8_name(profile)
    if optimized is not None:
        options.optimized_model_filepath = utf8_name(optimized)
        options.add_session_config_entry(_BESIDE, f"{optimized.name}.data")
        options.add_session_config_entry(_PACKED, str(int(is_packed)))
    return onnxruntime.InferenceSession(
        model if isinstance(model, bytes) else utf8_name(model),
        sess_options=options,
        providers=["CPUExecutionProvider"],
    )


def optimized_graph(model: Path | bytes) -> onnx.GraphProto:
    """Return the graph that onnxruntime runs after all its optimizations, with one thread.

    Each of its nodes is a call of a kernel. Large weights have no data in it.

    Raises:
        Exception: one of ``runtime_errors``.
    """
    import onnx

    with temporary_folder() as folder:
        file = folder / "optimized.onnx"
        open_session(model, 1, Session.AS_BY_DEFAULT, optimized=file)
        return onnx.load(file, load_external_data=False).graph


def session_feeds(
    session: Any, graph: Graph, inputs: Mapping[str, Array], weights: RandomWeights
) -> dict[str, Array]:
    """Return a value for each input of the session; weights without data are inputs of the file."""
    feeds: dict[str, Array] = {}
    for name in (item.name for item in session.get_inputs()):
        if name in graph.inputs:
            feeds[name] = _typed(inputs[name], graph.inputs[name].dtype)
        elif name in graph.weights:
            feeds[name] = _typed(weights[name], graph.weights[name].type.dtype)
    return feeds


def _of_session(session: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
    return {item.name: feeds[item.name] for item in session.get_inputs() if item.name in feeds}


def _typed(array: Array, dtype: str) -> Array:
    if dtype not in DTYPE_BYTES:
        return array  # strings
    # Contiguous all the same; ``ascontiguousarray`` would make a vector of a scalar.
    return np.asarray(array).astype(numpy_dtype(dtype), order="C")


def runtime_errors() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises: it has no common base class."""
    import onnxruntime

    state = onnxruntime.capi.onnxruntime_pybind11_state
    names = (
        "EPFail", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf",
        "NoSuchFile", "NotImplemented", "RuntimeException",
    )  # fmt: skip
    exceptions: list[type[Exception]] = [getattr(state, name) for name in names]
    return (*exceptions, ValueError, RuntimeError)


def _arrays(values: Sequence[Any]) -> list[Array]:
    return [as_array(value) for value in values]


def save_session(
    model: Path, target: Path, threads: int, *, is_packed: bool, properties: Mapping[str, str]
) -> int:
    """Save what onnxruntime makes of a model by its defaults, and check that it reads that.

    Weights go to ``NAME.data``, those of less than 1 KiB aside. Filters are there in the blocks that its
    convolutions take them in.

    Args:
        is_packed: whether constant matrices are there as its products take them, too.
        properties: what the file is to say of itself.

    Returns:
        Bytes of weights beside the model.

    Raises:
        InputError: it does not save it, or does not read what it saved.
    """
    import onnx

    errors: tuple[type[Exception], ...] = (*runtime_errors(), OSError, InputError)
    try:
        open_session(model, threads, Session.AS_BY_DEFAULT, optimized=target, is_packed=is_packed)
        if not target.exists():
            raise InputError("it wrote nothing")
        saved = onnx.load(target, load_external_data=False)
        onnx.helper.set_model_props(saved, {**_properties(saved), **properties})
        target.write_bytes(saved.SerializeToString())
        open_session(target, threads, Session.AS_BY_DEFAULT)
    except errors as error:
        raise InputError(f"onnxruntime does not save it: {first_line(error)}") from error
    data = data_of(target)
    return data.stat().st_size if data.exists() else 0


def data_of(saved: Path) -> Path:
    """Return where a saved model's weights are."""
    return saved.with_name(f"{saved.name}.data")


def _properties(model: object) -> dict[str, str]:
    return {entry.key: entry.value for entry in getattr(model, "metadata_props", ())}
