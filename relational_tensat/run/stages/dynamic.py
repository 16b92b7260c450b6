"""A result at all sizes of a dynamic model: the unions carried out at each, its file, and the comparison.

An e-node that holds at some sizes only is left out, and another graph is extracted from the same e-graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from relational_tensat.base.errors import (
    InputError,
    NoSolutionError,
    NotComparedError,
    RelationalTensatError,
    VerificationError,
)
from relational_tensat.base.files import folder_beside
from relational_tensat.base.folders import temporary_folder
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.fault import Fault, fault_at
from relational_tensat.explain.graphs import graph_of, names_after
from relational_tensat.explain.other_sizes import Counterpart, ShapeSpecificError, at_other_sizes
from relational_tensat.explain.unions_at_sizes import ChosenAtSizes, UnlikeValuesError
from relational_tensat.formats.dynamic.sized_model import DynamicModel, text_of
from relational_tensat.formats.dynamic.writer import write_dynamic
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.rules.backends.expand_to_onnx import expand_alike
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.stages.compare_sizes import (
    OriginalRuns,
    compare_at_all_sizes,
    is_compared_at_others,
    with_shared_weights,
)
from relational_tensat.run.stages.second_search import (
    NO_OTHER,
    give_up,
    search_again,
    without_nodes,
    without_rule,
)
from relational_tensat.run.values import CheckedRun, ExtractedRun, LoadedRun
from relational_tensat.tensor import Graph, TensorType, Weight
from relational_tensat.verify.fold import fold_alike

#: After so many times that something holds at some sizes only, the original is returned.
MOST_LEFT_OUT = 32


class NotDynamicError(Exception):
    """The extracted graph has no dynamic form.

    Attributes:
        fault: the step after which that is so; None where it is so from the start.
        refused: the extracted e-nodes that hold at some sizes only, and all others like that.
        rule: that makes values of the original one at some sizes only; "" where none does.
    """

    def __init__(
        self,
        reason: str,
        fault: Fault | None = None,
        refused: frozenset[int] = frozenset(),
        rule: str = "",
    ) -> None:
        super().__init__(reason)
        self.fault = fault
        self.refused = refused
        self.rule = rule


def sized_or_other(extracted: ExtractedRun) -> tuple[ExtractedRun, SizedResult | None]:
    """Carry the chosen graph's steps out at all sizes; where they do not hold, choose another graph.

    Returns:
        The chosen graph, and its form at all sizes; None if that is another graph.
    """
    try:
        with extracted.loaded.run.phases.phase("verify"):
            sized = _result_at_all_sizes(extracted.loaded)
    except NotDynamicError as error:
        return _search_dynamic(extracted, error), None
    chosen = sized.graphs[0]
    raced = chosen if extracted.is_raced else extracted.raced
    return replace(extracted, chosen=chosen, raced=raced), sized


def as_read(loaded: LoadedRun) -> SizedResult:
    """Return the original at all sizes as it was read, as one file.

    Raises:
        InputError: it has no dynamic form.
    """
    model = loaded.model.dynamic
    assert model is not None
    graphs = [with_shared_weights(sized.graph, loaded.original) for sized in model.all]
    folded = fold_alike(graphs)
    file = write_dynamic(model, folded, loaded.run.options.output.opset)
    return SizedResult(tuple(graphs), tuple(folded), file)


def compared_or_other(checked: CheckedRun, originals: OriginalRuns) -> CheckedRun | ExtractedRun:
    """Compare what is written at several sizes; choose another graph where it computes something else.

    Raises:
        VerificationError: it does, and the options are strict.
    """
    run, output = checked.loaded.run, checked.loaded.output
    try:
        with run.phases.phase("verify"), ExitStack() as files:
            candidate = None
            if output is not None and is_onnx(output):
                candidate = run.files.enter_context(folder_beside(output)) / output.name
            file = candidate or files.enter_context(temporary_folder()) / "dynamic.onnx"
            outcome = compare_at_all_sizes(checked, file, originals)
        if outcome.failure():
            raise VerificationError(outcome.failure())
    except VerificationError as error:
        if run.options.verification.strict:
            raise
        if isinstance(error, NotComparedError):
            return give_up(checked.extracted, f"no dynamic result: {error}: the original is kept")
        if is_compared_at_others(checked.loaded):  # at no other size: any step may be at fault
            return search_again(checked.extracted, error)
        return _search_dynamic(checked.extracted, NotDynamicError(str(error)))
    verification = checked.verification.joined(outcome)
    return replace(checked, verification=verification, candidate=candidate)


def sizes_note(model: DynamicModel) -> str:
    """Return what the report says of a file with dynamic dimensions."""
    others = "; ".join(dict.fromkeys(text_of(there.sizes) for there in model.others))
    base = text_of(model.base.sizes)
    ranges = "".join(
        f", {symbol} from {few.least} to {few.most}"
        for symbol, few in model.dimensions.promised.items()
    )
    return (
        f"dynamic dimensions stay dynamic, from 1 on{ranges}: optimized at {base}, each step checked "
        f"again at {others}"
    )


def _search_dynamic(extracted: ExtractedRun, error: NotDynamicError) -> ExtractedRun:
    """Leave out what holds at some sizes only, and extract again; at last, the original is chosen.

    The model is explored again without the rule only if a rule has made values of the original one that are
    two at other sizes, or leaving e-nodes out has not helped.

    Args:
        error: the fault found at other sizes.
    """
    fault, refused = error.fault, extracted.explored.refused
    rule = error.rule or (fault.step.rule if fault else "")
    e_nodes = error.refused or frozenset(fault.e_nodes if fault else ())
    by_rule = e_nodes <= refused.left_out  # there are none, or leaving these out did not help
    if (by_rule and not rule) or refused.n_left_out == MOST_LEFT_OUT:
        return give_up(extracted, f"no dynamic result: {error}: the original is kept")
    what = f"{fault.text} does not hold at all sizes: {error}" if fault else str(error)
    left_out = f"the rule {rule}" if by_rule else "that"
    extracted = _leaving_out(extracted, e_nodes, f"{what}: {left_out} is left out")
    try:
        if by_rule:
            return without_rule(extracted, rule)
        return without_nodes(extracted, e_nodes)
    except NoSolutionError:
        return give_up(extracted, NO_OTHER)


def _leaving_out(extracted: ExtractedRun, e_nodes: frozenset[int], note: str) -> ExtractedRun:
    refused = extracted.explored.refused
    refused = replace(
        refused, n_left_out=refused.n_left_out + 1, left_out=refused.left_out | e_nodes
    )
    return replace(extracted, explored=replace(extracted.explored, refused=refused)).noting(note)


def _result_at_all_sizes(loaded: LoadedRun) -> SizedResult:
    """Carry out the unions of the run at all sizes, and make one file of the extracted graph there.

    Raises:
        NotDynamicError: it holds at some sizes only, or cannot be written for all.
    """
    model, opset = loaded.model.dynamic, loaded.run.options.output.opset
    assert model is not None
    others = [other.graph for other in model.others]
    try:
        chosen = ChosenAtSizes(loaded.egraph.database.connection, others)
    except (RelationalTensatError, UnlikeValuesError) as error:
        raise NotDynamicError(str(error)) from None
    if chosen.refused:
        raise _refusal(chosen, model)
    originals = [with_shared_weights(sized.graph, loaded.original) for sized in model.all]
    try:
        graphs = [
            chosen.graph(original, None if place == 0 else place - 1)
            for place, original in enumerate(originals)
        ]
        return _written(model, graphs, originals, opset)
    except InputError as error:
        raise NotDynamicError(str(error), _fault_of_writing(loaded)) from None


def _refusal(chosen: ChosenAtSizes, model: DynamicModel) -> NotDynamicError:
    """Return what of the chosen graph does not hold, by rule, and all that is not to be extracted."""
    by_text: dict[str, list[str]] = {}
    for where, refusal in chosen.refused.values():
        there = text_of(model.others[refusal.place].sizes)
        by_text.setdefault(f"at {there}: {refusal.reason}", []).append(where)
    texts = [
        f"{', '.join(dict.fromkeys(where))} does not hold at all sizes: {text}"
        for text, where in by_text.items()
    ]
    return NotDynamicError("; ".join(texts), refused=chosen.left_out, rule=chosen.rule)


def _written(
    model: DynamicModel, graphs: Sequence[Graph], originals: Sequence[Graph], opset: int | None
) -> SizedResult:
    """Return graphs at all sizes as one file.

    Raises:
        InputError: they have none.
    """
    graphs = expand_alike(graphs, originals)
    folded = fold_alike(graphs)
    return SizedResult(tuple(graphs), tuple(folded), write_dynamic(model, folded, opset))


def _fault_of_writing(loaded: LoadedRun) -> Fault | None:
    """Return the first step after which a graph cannot be written for all sizes; None if none is known."""
    model, original = loaded.model.dynamic, loaded.original
    assert model is not None
    try:
        explanation = explain(loaded.egraph.database.connection)
        elsewhere = at_other_sizes(explanation, [other.graph for other in model.others])
    except (InputError, NoSolutionError, VerificationError, ShapeSpecificError):
        return None
    opset = loaded.run.options.output.opset
    history = _History(explanation, model, original, [None, *elsewhere], opset)
    step = history.first_unwritable()
    return None if step is None else fault_at(explanation, step, original)


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
        originals = [with_shared_weights(sized.graph, self.original) for sized in self.model.all]
        return _written(self.model, graphs, originals, self.opset)

    def first_unwritable(self) -> int | None:
        """Return the first step after which the graph has no dynamic form; None if it is no step."""

        def is_writable(steps: int) -> bool:
            try:
                self.result(steps)
            except InputError:
                return False
            return True

        good, bad = 0, len(self.explanation.rewrites)
        if not bad or not is_writable(good):
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


def as_constants(graph: Graph, model: DynamicModel) -> Graph:
    """Return a graph at the base sizes that has what is computed from sizes as weights, not as inputs."""
    computed = model.base.computed
    used = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    weights = {
        n: Weight(TensorType(str(v.dtype), v.shape), v) for n, v in computed.items() if n in used
    }
    inputs = {name: kind for name, kind in graph.inputs.items() if name not in computed}
    return replace(graph, inputs=inputs, weights={**graph.weights, **weights})
