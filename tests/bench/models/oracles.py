"""Facts of the published experiments that a rebuilt model can be held against."""

from __future__ import annotations

from collections.abc import Iterable

from relational_tensat.tensor import AttrValue, Graph, Node, TensorType
from relational_tensat.tensor.operators import get_operator

PADDING_CODES = {"same": 0, "valid": 1}
ACTIVATION_CODES = {"none": 0, "sigmoid": 1, "relu": 2, "tanh": 3}
FREE_OPERATORS = frozenset({"noop", "dropout", "reshape", "transpose", "concat"})
FLOPS_PER_US = 10e12 / 1e6
LAUNCH_US = 6.0


def count_tensat_enodes(graph: Graph) -> int:
    """Count the e-nodes of TENSAT's first e-graph, where numbers and names are e-nodes too.

    Every input and weight has a name of its own; equal numbers, permutations and shapes are one.
    """
    literals = {literal for node in graph.nodes for literal in _literals(graph, node)}
    return len(graph.nodes) + 2 * (len(graph.inputs) + len(graph.weights)) + len(literals)


def _literals(graph: Graph, node: Node) -> Iterable[AttrValue]:
    attrs = node.attrs
    match node.op:
        case "conv" | "max_pool" | "avg_pool":
            yield from (*attrs["stride"], *attrs.get("kernel", ()))  # type: ignore[misc]
            yield PADDING_CODES[str(attrs["pad"])]
            yield ACTIVATION_CODES[str(attrs["act"])]
        case "matmul":
            yield ACTIVATION_CODES[str(attrs["act"])]
        case "concat":
            kind = graph.types[node.outputs[0]]
            assert isinstance(kind, TensorType)
            yield from (attrs["axis"], kind.rank)
        case "transpose":
            yield from (1, attrs["perm"])  # 1: the data is shuffled
        case "reshape":
            yield attrs["shape"]


def tree_and_dag_us(graph: Graph) -> tuple[float, float]:
    """Return the cost of the graph's output as a tree (a value is paid at each use) and as a DAG.

    The kernel times are rough on purpose: the ratio of the two says how a graph shares its values.
    """
    tree_us: dict[str, float] = dict.fromkeys([*graph.inputs, *graph.weights], 0.0)
    dag_us = 0.0
    for node in graph.nodes:
        kernel_us = _kernel_us(graph, node)
        dag_us += kernel_us
        tree_us[node.outputs[0]] = kernel_us + sum(tree_us[name] for name in node.inputs)
    return tree_us[graph.outputs[0]], dag_us


def _kernel_us(graph: Graph, node: Node) -> float:
    if node.op in FREE_OPERATORS:
        return 0.0
    inputs = tuple(graph.types[name] for name in node.inputs)
    flops = get_operator(node.op).flops(inputs, graph.types[node.outputs[0]], node.attrs)
    return flops / FLOPS_PER_US + LAUNCH_US
