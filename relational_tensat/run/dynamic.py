"""A result at all sizes of a dynamic model: its steps carried out at each, its file, and the comparison."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from relational_tensat.base.errors import (
    InputError,
    ModelError,
    NoSolutionError,
    VerificationError,
)
from relational_tensat.base.folders import temporary_folder
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.fault import Fault, fault_at
from relational_tensat.explain.graphs import graph_of, names_after
from relational_tensat.explain.other_sizes import Counterpart, HoldsHereOnlyError, at_other_sizes
from relational_tensat.explain.replay import UnexplainedError
from relational_tensat.formats.dynamic.expressions import Sizes
from relational_tensat.formats.dynamic.sized_model import (
    DynamicModel,
    text_of,
)
from relational_tensat.formats.dynamic.writer import write_dynamic
from relational_tensat.rules.targets.as_written import as_written_alike
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Array, Graph, TensorType, Weight
from relational_tensat.verify import Verification, verify, verify_files
from relational_tensat.verify.fold import fold_alike
from relational_tensat.verify.quantized import compare_quantized, is_quantized
from relational_tensat.verify.runtime import Session

#: Files that were compared at fewer sizes are not returned.
_FEWEST_SIZES = 3


class NotDynamicError(Exception):
    """What was extracted has no dynamic form.

    Attributes:
        fault: the step after which that is so; None where it is so from the start.
        unexplained: an extracted e-node that no steps were found to; None where there are steps.
    """

    def __init__(
        self, reason: str, fault: Fault | None = None, unexplained: int | None = None
    ) -> None:
        super().__init__(reason)
        self.fault = fault
        self.unexplained = unexplained


def result_at_all_sizes(state: RunState) -> SizedResult:
    """Carry out the steps to the extracted graph at all sizes, and make one file of the results.

    Raises:
        NotDynamicError: a step holds at some sizes only, or what it leads to cannot be written.
    """
    assert state.dynamic is not None
    model, original = state.dynamic, state.original
    try:
        explanation = explain(state.egraph.database.connection)
    except (InputError, NoSolutionError, VerificationError) as error:
        unexplained = error.e_node if isinstance(error, UnexplainedError) else None
        text = f"the steps to the result are not known: {error}"
        raise NotDynamicError(text, unexplained=unexplained) from None
    counterparts: list[Mapping[int, Counterpart] | None] = [None]
    for other in model.others:
        try:
            counterparts.append(at_other_sizes(explanation, other.graph))
        except HoldsHereOnlyError as error:
            fault = fault_at(explanation, error.step, original) if error.step >= 0 else None
            raise NotDynamicError(f"at {text_of(other.sizes)} {error.reason}", fault) from None
    opset = state.options.output.opset
    history = _History(explanation, model, original, counterparts, opset)
    try:
        return history.result(len(explanation.rewrites))
    except InputError as error:
        step = history.first_unwritable()
        fault = fault_at(explanation, step, original) if step is not None else None
        raise NotDynamicError(str(error), fault) from None


@dataclass(frozen=True, slots=True, eq=False)
class _History:
    """The graphs after each step, at all sizes."""

    explanation: Explanation
    model: DynamicModel
    original: Graph
    counterparts: list[Mapping[int, Counterpart] | None]
    opset: int | None

    def result(self, steps: int) -> SizedResult:
        """Return what so many steps lead to.

        Raises:
            InputError: it has no dynamic form.
        """
        explanation = self.explanation
        outputs = explanation.rewrites[steps - 1].after if steps else explanation.original
        terms, stored = explanation.terms, explanation.stored
        names = names_after(explanation.names, terms, explanation.rewrites[:steps])
        graphs = [
            _like(graph_of(outputs, terms, stored, names, there), self.original, sized.graph)
            for sized, there in zip(self.model.all, self.counterparts, strict=True)
        ]
        originals = [_with_shared_weights(sized.graph, self.original) for sized in self.model.all]
        graphs = as_written_alike(graphs, originals)
        return SizedResult(tuple(graphs), write_dynamic(self.model, fold_alike(graphs), self.opset))

    def first_unwritable(self) -> int | None:
        """Return the first step after which the graph has no dynamic form; None if it has none before."""

        def is_writable(steps: int) -> bool:
            try:
                self.result(steps)
            except InputError:
                return False
            return True

        good, bad = 0, len(self.explanation.rewrites)
        if not is_writable(good):
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if is_writable(middle) else (good, middle)
        return good


def _like(graph: Graph, original: Graph, there: Graph) -> Graph:
    """Return a graph made of terms with the original's inputs, weights, metadata and names of nodes.

    Args:
        there: the original at the graph's sizes.
    """
    called = {name: node.name for node in original.nodes for name in node.outputs}
    return replace(
        graph,
        inputs=there.inputs,
        weights={name: original.weights[name] for name in graph.weights},
        nodes=tuple(replace(node, name=called.get(node.outputs[0], "")) for node in graph.nodes),
        types={**graph.types, **there.inputs},
        metadata=original.metadata,
        origin=there.origin,
    )


def compare_at_all_sizes(state: RunState) -> Verification:
    """Compare the dynamic files, and the graphs, at three sizes of each dimension, 1 among them.

    Raises:
        VerificationError: the dynamic file is not valid, cannot be run, or at no size.
    """
    model, sized = state.dynamic, state.sized
    assert model is not None and sized is not None
    outcome = _compare_graphs(state, model, sized)
    if outcome.failure():
        return outcome
    with temporary_folder() as folder:
        file = folder / "dynamic.onnx"
        try:
            sized.save(file)
        except ModelError as error:
            raise VerificationError(str(error).removeprefix(f"{file}: ")) from None
        if is_quantized(state.original):
            check = compare_quantized(model.path, file, state.options.process.threads)
            if check is not None and check.gain:
                raise VerificationError(check.gain)
        seed = state.options.process.seed
        return outcome.joined(compare_file_at_all_sizes(state, file, tuple(Session), seed))


def compare_file_at_all_sizes(
    state: RunState, file: Path, sessions: Sequence[Session], seed: int
) -> Verification:
    """Compare a dynamic file with the model's at three sizes of each dimension, 1 among them.

    Args:
        sessions: how both are run.

    Raises:
        VerificationError: it cannot be run, or at too few sizes.
    """
    model = state.dynamic
    assert model is not None
    outcome: Verification | None = None
    compared: set[str] = set()
    for trial in _trials(state, model, compared):
        for run_as in sessions:
            checked = verify_files(
                trial.graph,
                model.path,
                file,
                seed=seed,
                threads=state.options.process.threads,
                inputs=trial.inputs,
                what="the dynamic files",
                run_as=run_as,
            ).at_sizes(_label(trial.sizes))
            compared |= {_label(trial.sizes)} if checked.runs else set()
            outcome = checked if outcome is None else outcome.joined(checked)
    assert outcome is not None
    if len(compared) < _FEWEST_SIZES:
        reasons = "; ".join(outcome.warnings)
        raise VerificationError(f"the files could be compared at {len(compared)} sizes: {reasons}")
    return outcome


class _SizeTrial(NamedTuple):
    """Sizes to run the files at, the original graph there, and what some of its inputs have to be."""

    sizes: Sizes
    graph: Graph
    inputs: Mapping[str, Array]


def as_constants(graph: Graph, model: DynamicModel) -> Graph:
    """Return a graph at the base sizes that has what is computed from sizes as weights, not as inputs."""
    computed = model.base.computed
    used = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    weights = {
        n: Weight(TensorType(str(v.dtype), v.shape), v) for n, v in computed.items() if n in used
    }
    inputs = {name: kind for name, kind in graph.inputs.items() if name not in computed}
    return replace(graph, inputs=inputs, weights={**graph.weights, **weights})


def _compare_graphs(state: RunState, model: DynamicModel, sized: SizedResult) -> Verification:
    """Compare the graphs in float64, at the first other sizes and at 1."""
    outcome: Verification | None = None
    for place in (1, len(model.others)):
        there = model.all[place]
        checked = verify(
            _with_shared_weights(there.graph, state.original),
            sized.graphs[place],
            seed=state.options.process.seed,
            runs=1,
            inputs=there.computed,
        ).at_sizes(_label(there.sizes))
        outcome = checked if outcome is None else outcome.joined(checked)
    assert outcome is not None
    return outcome


def _with_shared_weights(there: Graph, original: Graph) -> Graph:
    """Return the original at other sizes, with one weight in place of equal ones as in the explored one."""
    inputs = {node.outputs: node.inputs for node in original.nodes}
    nodes = tuple(replace(node, inputs=inputs[node.outputs]) for node in there.nodes)
    types = {name: kind for name, kind in there.types.items() if name not in there.weights}
    types |= {name: weight.type for name, weight in original.weights.items()}
    return replace(there, nodes=nodes, weights=original.weights, types=types)


def _label(sizes: Sizes) -> str:
    """Return sizes as reports name them; a colon in a report ends what is compared."""
    return text_of(sizes).replace(":", "/")


def _trials(state: RunState, model: DynamicModel, compared: Container[str]) -> Iterator[_SizeTrial]:
    """Yield sizes to run the files at: the given ones, larger ones that nothing was derived from, and 1.

    Args:
        compared: the sizes that both files ran at so far. If all sizes of 1 together are not among them,
            each is tried alone.
    """
    yield _SizeTrial(model.base.sizes, state.graph, state.inputs)
    for there in (*model.others[:2], model.others[-1]):
        yield _SizeTrial(there.sizes, there.graph, there.computed)
    if _label(model.others[-1].sizes) not in compared:
        for there in model.others[2:-1]:
            if 1 in there.sizes.values():
                yield _SizeTrial(there.sizes, there.graph, there.computed)
    sizes = {symbol: 3 * size + 2 for symbol, size in model.base.sizes.items()}
    try:
        graph = model.at(sizes)
    except InputError:
        return
    weights = {
        **graph.weights,
        **{n: w for n, w in state.graph.weights.items() if n in graph.weights},
    }
    yield _SizeTrial(sizes, replace(graph, weights=weights), {})
