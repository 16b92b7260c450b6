"""The application that made a result wrong: bisecting the chain of steps finds it.

A few lines of Python run what a step replaced and what it put in its place, alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from relational_tensat.base import duckdb
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.egraph_tables import StoredNode
from relational_tensat.explain.explanation import ExplainedStep, Explanation, explain
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.tensor import Graph, TensorType, ValueType
from relational_tensat.tensor.operators import get_operator

_IMPORTS = (
    "import numpy as np",
    "from relational_tensat.formats import to_onnx_model",
    "from relational_tensat.tensor import Node, TensorType, Weight, build_graph",
    "from relational_tensat.verify import verify, verify_files",
)
#: Kernels of a target are compared as they are written.
_IMPORTS_OF_KERNELS = (
    "from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx",
    "from relational_tensat.rules.backends.backend import know_kernels",
    "know_kernels()",
)
_KERNELS_WRITTEN = ("before, after = (expand_to_onnx(graph, before) for graph in (before, after))",)
_COMPARISON = (
    "files = [to_onnx_model(graph).SerializeToString() for graph in (before, after)]",
    "print(verify(before, after).failure() or verify_files(before, *files).failure())",
)
#: Weights of at most so many elements are written out.
_FEW = 16


def reproduce(explanation: Explanation, rewrite: RewriteStep, original: Graph) -> tuple[str, ...]:
    """Return the lines.

    Args:
        original: has the data of weights.
    """
    terms = explanation.terms
    signatures = explanation.stored.signatures
    stop = {
        term
        for term in rewrite.operands
        if signatures[terms[term].signature].symbol.op not in ("weight", "fill")
    }

    has_kernels = False

    def graph_line(name: str, roots: list[int]) -> list[str]:
        nonlocal has_kernels
        reachable: dict[int, None] = {}
        stack = list(roots)
        while stack:
            term = stack.pop()
            if term not in reachable:
                reachable[term] = None
                if term not in stop:
                    stack += terms[term].children
        inputs: list[str] = []
        weights: list[str] = []
        nodes: list[str] = []
        for term in sorted(reachable):
            signature, children = terms[term]
            stored = signatures[signature]
            attrs = dict(stored.symbol.attrs)
            if term in stop or stored.symbol.op in ("input", "weight"):
                data = _data(original, attrs) if stored.symbol.op == "weight" else ""
                place = weights if data else inputs
                place.append(f"{_name(term)!r}: {_typed(stored.type, data)}")
                continue
            has_kernels |= isinstance(get_operator(stored.symbol.op), FusedKernel)
            operands = tuple(map(_name, children))
            suffix = f", {attrs!r}" if attrs else ""
            nodes.append(f"Node({stored.symbol.op!r}, {operands!r}, ({_name(term)!r},){suffix})")
        return [
            f"{name} = build_graph({name!r}, {{{', '.join(inputs)}}}, {{{', '.join(weights)}}}, [",
            *(f"    {node}," for node in nodes),
            f"], {[_name(root) for root in roots]!r})",
        ]

    before = graph_line("before", [replaced.before for replaced in rewrite.replaced])
    after = graph_line("after", [replaced.after for replaced in rewrite.replaced])
    if not has_kernels:
        return (*_IMPORTS, *before, *after, *_COMPARISON)
    return (
        *_IMPORTS,
        *_IMPORTS_OF_KERNELS,
        *before,
        *after,
        *_KERNELS_WRITTEN,
        *_COMPARISON,
    )


def _name(term: int) -> str:
    return f"v{term}"


def _data(original: Graph, attrs: Mapping[str, object]) -> str:
    """Return a small weight's elements as an expression; "" for others."""
    weight = original.weights.get(str(attrs["name"]))
    if weight is None or weight.data is None or weight.type.size > _FEW:
        return ""
    return f"np.array({weight.data.tolist()!r}, {str(weight.data.dtype)!r})"


def _typed(kind: ValueType, data: str) -> str:
    assert isinstance(kind, TensorType)  # a rule's operands are no tuples, nor are weights
    text = f"TensorType({kind.dtype!r}, {kind.shape!r})"
    return f"Weight({text}, {data})" if data else text


@dataclass(frozen=True, slots=True)
class Fault:
    """The first step after which the graph is wrong.

    Attributes:
        step: the step at fault; ``steps`` how many there are.
        e_nodes: ids of the e-nodes that the application built and that the graph has instead of the
            replaced ones; empty if one of these is of the original graph, so that it cannot be left out.
        reproduction: Python that runs what was replaced and what replaced it, alone.
    """

    step: ExplainedStep
    steps: int
    e_nodes: tuple[int, ...]
    reproduction: tuple[str, ...]

    @property
    def text(self) -> str:
        """The rule, its law, and where it was applied."""
        places = " and ".join(place.tensor for place in self.step.at)
        return (
            f"{self.step.rule} ({self.step.law}) at {places}, step {self.step.number} of "
            f"{self.steps},"
        )


def find_fault(
    connection: duckdb.DuckDBPyConnection, original: Graph, is_right: Callable[[Graph], bool]
) -> Fault:
    """Find a step that leads from a right graph to a wrong one, between original and extracted graph.

    Args:
        connection: to the run's database, which has a chosen graph.
        original: the graph that was explored.
        is_right: whether a graph computes what the original computes.

    Raises:
        InputError, VerificationError: nothing was extracted, or the steps cannot be checked.
        NoSolutionError: no explanation was found, nothing was changed, or no rule is at fault: the original
            is wrong as soon as it is written.
    """
    explanation = explain(connection)
    graphs = [explanation.original, *(rewrite.after for rewrite in explanation.rewrites)]
    right, wrong = 0, len(graphs) - 1
    if right == wrong:
        raise NoSolutionError("no rule was applied")

    def is_right_after(step: int) -> bool:
        graph = graph_of(graphs[step], explanation.terms, explanation.stored, explanation.names)
        weights = {name: original.weights[name] for name in graph.weights}
        return is_right(
            replace(graph, weights=weights, metadata=original.metadata, origin=original.origin)
        )

    if not is_right_after(0):
        raise NoSolutionError("the original, read and written without a change, is wrong, too")
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_right_after(middle):
            right = middle
        else:
            wrong = middle
    return fault_at(explanation, right, original)


def fault_at(explanation: Explanation, index: int, original: Graph) -> Fault:
    """Return a step of an explanation as a fault.

    Args:
        original: has the data of weights.
    """
    rewrite = explanation.rewrites[index]
    return Fault(
        explanation.steps[index],
        len(explanation.steps),
        _new_enodes(explanation, rewrite),
        reproduce(explanation, rewrite, original),
    )


def _new_enodes(explanation: Explanation, rewrite: RewriteStep) -> tuple[int, ...]:
    """Return the e-nodes that a step put in place of others; none if one was in the original."""
    nodes = {(node.signature, node.children): node for node in explanation.stored.nodes.values()}
    roots = [replaced.after for replaced in rewrite.replaced]
    node_of: dict[int, StoredNode] = {}
    for term in explanation.terms.of(roots):
        signature, children = explanation.terms[term]
        form = (signature, tuple(node_of[child].owner for child in children))
        if form not in nodes:
            return ()
        node_of[term] = nodes[form]
    enodes = [node_of[root] for root in roots]
    return tuple(node.id for node in enodes) if all(node.iteration for node in enodes) else ()
