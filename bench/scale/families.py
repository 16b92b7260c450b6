"""The e-graphs whose growth is measured: families of graphs with the rules that make them large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.models import GraphBuilder
from bench.models.sequences import bert, nasrnn
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

#: Terms of each sum in a chain, and the e-nodes that a link of the chain ends with: see ``chain``.
TERMS = 6
LINK_E_NODES = 3**TERMS - 2 ** (TERMS + 1) + 1 + TERMS

_SUMS = """
(rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
(rule regroup (law "(a + b) + c = a + (b + c)")
  (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
"""

#: The shape of every transformer here: (batch, positions, width), heads, and the MLP's width.
BATCH, POSITIONS, WIDTH, HEADS, MLP_WIDTH = 1, 16, 64, 4, 256


@dataclass(frozen=True, slots=True)
class Family:
    """Graphs of growing size.

    Attributes:
        what: one line for people.
        sized_by: what a size counts: ``e-nodes`` or ``layers``.
        build: makes the graph of a size.
        rules: the rules that it is explored with.
        stops_at_size: whether the node limit is the size; else the e-graph is saturated.
        multi_iterations: k_multi.
        is_whole_run: whether it is extracted from and verified, too.
    """

    what: str
    sized_by: str
    build: Callable[[int], Graph]
    rules: Callable[[], Sequence[Rule]]
    stops_at_size: bool
    multi_iterations: int
    is_whole_run: bool = False


def chain(links: int) -> Graph:
    """Return ``links`` sums one after the other, h ← relu(h + w1 + ... + w5).

    Commuted and regrouped until nothing is new, a sum of n terms has an e-class for every subset of two and
    more, and in each an e-node for every ordered way to part it in two: 3^n - 2^(n+1) + 1 in all.
    """
    graph = GraphBuilder(f"chain_{links}")
    hidden = graph.input("x", 2, 2)
    for link in range(1, links + 1):
        with graph.scope(f"link{link}"):
            for term in range(1, TERMS):
                hidden = graph.op("add", hidden, graph.weight(f"w{term}", 2, 2))
            hidden = graph.op("relu", hidden)
    return graph.build(hidden)


def transformer(layers: int) -> Graph:
    """Return an encoder of pre-norm blocks: attention and an MLP with GELU, each with its residual.

    Input and output ``[1, 16, 64]``; every block has 29 operators and 16 weights of its own.
    """
    graph = GraphBuilder(f"transformer_{layers}")
    x = graph.input("x", BATCH, POSITIONS, WIDTH)
    for layer in range(1, layers + 1):
        with graph.scope(f"layer{layer}"):
            x = graph.op("add", x, _attention(graph, _norm(graph, x, "attention_norm")))
            inner = _linear(graph, _norm(graph, x, "mlp_norm"), MLP_WIDTH, "expand")
            x = graph.op("add", x, _linear(graph, graph.op("gelu", inner), WIDTH, "reduce"))
    return graph.build(x)


def _attention(graph: GraphBuilder, x: str) -> str:
    depth = WIDTH // HEADS

    def project(name: str, perm: tuple[int, ...]) -> str:
        split = (BATCH, POSITIONS, HEADS, depth)
        per_head = graph.op("reshape", _linear(graph, x, WIDTH, name), shape=split)
        return graph.op("transpose", per_head, perm=perm)

    query = project("query", (0, 2, 1, 3))
    key = project("key", (0, 2, 3, 1))
    value = project("value", (0, 2, 1, 3))
    scale = graph.op("fill", value=depth**0.5, dtype="float32", shape=())
    scores = graph.op("div", graph.op("matmul", query, key), scale)
    mixed = graph.op("matmul", graph.op("softmax", scores, axis=3), value)
    joined = graph.op("transpose", mixed, perm=(0, 2, 1, 3))
    joined = graph.op("reshape", joined, shape=(BATCH, POSITIONS, WIDTH))
    return _linear(graph, joined, WIDTH, "output")


def _linear(graph: GraphBuilder, x: str, width: int, name: str) -> str:
    with graph.scope(name):
        weight = graph.weight("weight", graph.shape(x)[-1], width)
        return graph.op("add", graph.op("matmul", x, weight), graph.weight("bias", width))


def _norm(graph: GraphBuilder, x: str, name: str) -> str:
    with graph.scope(name):
        affine = [graph.weight(part, WIDTH) for part in ("scale", "bias")]
        return graph.op("layer_norm", x, *affine, axis=2, epsilon=1e-5)


def _links(e_nodes: int) -> Graph:
    return chain(max(e_nodes // LINK_E_NODES, 1))


#: By name.
FAMILIES = {
    "nasrnn": Family(
        "NasRNN, TASO's rules, multi-pattern rules in four iterations, up to the node limit",
        "e-nodes", lambda _: nasrnn(), taso_rules, True, 4,
    ),
    "bert": Family(
        "BERT, TASO's rules, multi-pattern rules in four iterations, up to the node limit",
        "e-nodes", lambda _: bert(), taso_rules, True, 4,
    ),
    "chain": Family(
        "sums of six terms one after the other, commuted and regrouped until saturated",
        "e-nodes", _links, lambda: parse_rules(_SUMS, "chain.rules"), False, 0,
    ),
    "transformer": Family(
        "pre-norm encoders, the shipped rules, extracted and verified",
        "layers", transformer, load_rules, False, 1, True,
    ),
}  # fmt: skip
