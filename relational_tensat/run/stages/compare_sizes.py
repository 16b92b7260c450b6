"""Graphs and files of a dynamic model compared at several sizes, in float64 and in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from relational_tensat.base.errors import (
    InputError,
    ModelError,
    NotComparedError,
    VerificationError,
)
from relational_tensat.formats.dynamic.expressions import Sizes
from relational_tensat.formats.dynamic.sized_model import (
    DynamicModel,
    SizedGraph,
    is_much_work,
    text_of,
)
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.values import CheckedRun, LoadedRun
from relational_tensat.tensor import Graph
from relational_tensat.verify import Verification, verify
from relational_tensat.verify.inputs import RandomWeights
from relational_tensat.verify.quantization import compare_quantized, is_quantized
from relational_tensat.verify.runtime import FilesBegun, FileTrial, begin_files_at
from relational_tensat.verify.sessions import Session
from relational_tensat.verify.verification import UNCHANGED

#: Files that were compared at fewer sizes are not returned.
_FEWEST_SIZES = 3
#: How reports call what is compared.
_WHAT = "the dynamic files"


def is_compared_at_others(loaded: LoadedRun) -> bool:
    """Whether the graphs are compared at small sizes only: each step was carried out there, too.

    Inputs that were given are for the sizes that it is optimized at, and kernels on integers are looked at
    in a file of fixed sizes.
    """
    model = loaded.model.dynamic
    if model is None or set(loaded.inputs) - set(model.base.known_inputs):
        return False
    return is_much_work(loaded.original) and not is_quantized(loaded.original)


def compare_graphs(
    loaded: LoadedRun, sized: SizedResult, drawn: dict[int, RandomWeights]
) -> Verification:
    """Compare the graphs in float64, at the first other sizes and at 1.

    Args:
        drawn: as of ``verify``.
    """
    model = loaded.model.dynamic
    assert model is not None
    folded = sized.folded if is_compared_at_others(loaded) else None
    outcome = UNCHANGED
    for place in (1, len(model.others)):
        there = model.all[place]
        checked = verify(
            with_shared_weights(there.graph, loaded.original),
            sized.graphs[place],
            folded=None if folded is None else folded[place],
            seed=loaded.run.options.process.seed,
            runs=1,
            inputs=there.known_inputs,
            drawn=drawn,
        ).at_sizes(_label(there.sizes))
        outcome = outcome.joined(checked)
    return outcome


class OriginalRuns:
    """Runs of the model's own file, once for all results, beside what is done meanwhile."""

    def __init__(self, beside: ThreadPoolExecutor) -> None:
        """Run nothing yet.

        Args:
            beside: one thread.
        """
        self._beside = beside
        self._begun: Future[list[FilesBegun]] | None = None
        self._drawn: Future[dict[int, RandomWeights]]

    def begin(self, loaded: LoadedRun) -> Future[list[FilesBegun]]:
        """Run the model's file, if that was not begun before."""
        if self._begun is None:
            seed = loaded.run.options.process.seed
            self._begun = self._beside.submit(_begun, loaded, tuple(Session), seed, _WHAT)
            self._drawn = self._beside.submit(_drawn, loaded)
        return self._begun

    def drawn(self) -> dict[int, RandomWeights]:
        """Return random weights by how often they were made smaller, which graphs are compared with."""
        return self._drawn.result()

    def compared(self, loaded: LoadedRun, file: Path) -> Future[Verification]:
        """Compare a file at all sizes once they are there."""
        seed, begun = loaded.run.options.process.seed, self.begin(loaded)
        return self._beside.submit(
            compare_file_at_all_sizes, loaded, file, tuple(Session), seed, begun=begun
        )


def compare_at_all_sizes(checked: CheckedRun, file: Path, originals: OriginalRuns) -> Verification:
    """Compare the dynamic files, and the graphs, at three sizes of each dimension, 1 among them.

    onnxruntime runs the files while NumPy computes the graphs.

    Args:
        file: where the result is written for that.

    Raises:
        VerificationError: the dynamic file is not valid, cannot be run, or at no size.
    """
    loaded, sized = checked.loaded, checked.sized
    model, process = loaded.model.dynamic, loaded.run.options.process
    assert model is not None and sized is not None
    try:
        sized.save(file)
    except ModelError as error:
        raise VerificationError(str(error).removeprefix(f"{file}: ")) from None
    quantized = None
    if is_quantized(loaded.original):
        quantized = compare_quantized(model.path, file, process.threads)
        if quantized is not None and quantized.gain:
            raise VerificationError(quantized.gain)
    files = originals.compared(loaded, file)
    graphs = compare_graphs(loaded, sized, originals.drawn())
    if graphs.failure():
        return graphs
    return replace(graphs, quantized=quantized).joined(files.result())


def compare_file_at_all_sizes(
    loaded: LoadedRun,
    file: Path,
    sessions: Sequence[Session],
    seed: int,
    *,
    what: str = _WHAT,
    libraries: Sequence[Path] = (),
    begun: Future[list[FilesBegun]] | None = None,
) -> Verification:
    """Compare a dynamic file with the model's at three sizes of each dimension, 1 among them.

    Args:
        sessions: how both are run.
        what: how reports call what is compared.
        libraries: of custom ops that the file is run with.
        begun: runs of the model's file, where these were begun before.

    Raises:
        NotComparedError: the original can be run at too few sizes.
        VerificationError: the file cannot be run where the original can.
    """
    model = loaded.model.dynamic
    assert model is not None
    outcome, compared = UNCHANGED, set[str]()
    for is_first in (True, False):
        if not is_first:
            runs = _begun(loaded, sessions, seed, what, _single_trials(model))
        else:
            runs = begun.result() if begun else _begun(loaded, sessions, seed, what)
        for one in runs:
            for trial, checked in zip(one.trials, one.compared(file, libraries), strict=True):
                compared |= {trial.sizes} if checked.runs else set()
                outcome = outcome.joined(checked)
        if _label(model.others[-1].sizes) in compared:  # no need to try each size of 1 alone
            break
    if len(compared) < _FEWEST_SIZES:
        reasons = "; ".join(outcome.warnings)
        raise NotComparedError(f"the files could be compared at {len(compared)} sizes: {reasons}")
    return outcome


def _drawn(loaded: LoadedRun) -> dict[int, RandomWeights]:
    """Return random weights of the original as they are at first."""
    model = loaded.model.dynamic
    assert model is not None
    original = with_shared_weights(model.all[1].graph, loaded.original)
    weights = RandomWeights(original, loaded.run.options.process.seed)
    weights.draw_ahead()
    return {0: weights}


def _begun(
    loaded: LoadedRun,
    sessions: Sequence[Session],
    seed: int,
    what: str,
    trials: Sequence[FileTrial] | None = None,
) -> list[FilesBegun]:
    """Run the model's file in trials, by default at several sizes."""
    model, threads = loaded.model.dynamic, loaded.run.options.process.threads
    assert model is not None
    trials = _trials(loaded, model) if trials is None else trials
    return [
        begin_files_at(trials, model.path, seed=seed, threads=threads, what=what, run_as=run_as)
        for run_as in sessions
    ]


def with_shared_weights(there: Graph, original: Graph) -> Graph:
    """Return the original at other sizes, with one weight in place of equal ones as in the explored one."""
    inputs = {node.outputs: node.inputs for node in original.nodes}
    nodes = tuple(replace(node, inputs=inputs[node.outputs]) for node in there.nodes)
    types = {name: kind for name, kind in there.types.items() if name not in there.weights}
    types |= {name: weight.type for name, weight in original.weights.items()}
    return replace(there, nodes=nodes, weights=original.weights, types=types)


def _label(sizes: Sizes) -> str:
    """Return sizes as reports name them; a colon in a report ends what is compared."""
    return text_of(sizes).replace(":", "/")


def _trials(loaded: LoadedRun, model: DynamicModel) -> list[FileTrial]:
    """Return sizes to run the files at: small ones, the given ones, and larger ones than any so far."""
    own = loaded.model.graph
    trials = [FileTrial(own, loaded.inputs, _label(model.base.sizes))]
    ran = [there for there in model.others[:-1] if there.fitting] or model.others
    trials += [_trial(there) for there in (*ran[:2], *_ends(model), model.others[-1])]
    sizes = {symbol: 3 * size + 2 for symbol, size in model.base.sizes.items()}
    sizes = model.dimensions.fitted(sizes)
    if is_compared_at_others(loaded):  # larger ones take long
        return trials[1:]
    if model.base.fitting:  # what these are there is not known
        return trials
    try:
        graph = model.at(sizes)
    except InputError:
        return trials
    weights = {
        **graph.weights,
        **{n: w for n, w in own.weights.items() if n in graph.weights},
    }
    return [*trials, FileTrial(replace(graph, weights=weights), {}, _label(sizes))]


def _ends(model: DynamicModel) -> list[SizedGraph]:
    """Return the model at both ends of what is promised."""
    ends = model.dimensions.ends(model.base.sizes)
    return [there for there in model.others if there.sizes in ends]


def _single_trials(model: DynamicModel) -> list[FileTrial]:
    """Return sizes of 1 one at a time, for models that do not run with all of them 1."""
    return [_trial(there) for there in model.others[2:-1] if 1 in there.sizes.values()]


def _trial(there: SizedGraph) -> FileTrial:
    return FileTrial(there.graph, there.known_inputs, _label(there.sizes))
