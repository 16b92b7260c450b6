"""Rules, graphs and finished runs that tests of ``--why-not`` ask about."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from relational_tensat.cli.explain_text import print_why_not
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explain.why_not.funnel import Trace, WhyNot, why_not
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import extract
from relational_tensat.extract.tables import choose, extraction_problem
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.graphs import f32

RULES = {
    rule.name: rule
    for rule in parse_rules(
        """
(rule twice (law "relu is idempotent") (from (relu (relu ?x))) (to (relu ?x)))
(rule same-twice (law "x + x = 2 x, badly said") (from (add (relu ?x) ?x)) (to (add ?x (relu ?x))))
(rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
(rule tanh-of-tanh (law "no law") (unsound) (from (tanh (tanh ?x))) (to (tanh ?x)))
(rule conv-of-relu (law "none") (unsound) (from (conv (relu ?x) ?w :act ?f :stride ?s :pad ?p
  :dilation ?d)) (to (conv ?x ?w :act ?f :stride ?s :pad ?p :dilation ?d)))
(rule active-conv (law "none") (unsound) (from (conv ?x ?w :act tanh :stride ?s :pad ?p
  :dilation ?d)) (to (conv ?x ?w :act relu :stride ?s :pad ?p :dilation ?d)))
(rule one-group (law "a condition on groups") (from (conv ?x ?w :act ?f :stride ?s :pad ?p
  :dilation ?d)) (to (conv ?x ?w :act ?f :stride ?s :pad ?p :dilation ?d))
  (where (= (rank ?x) 4) (= (groups ?x ?w) 1)))
(rule big-only (law "a + b = b + a, where it pays") (from (add ?a ?b)) (to (add ?b ?a))
  (worth (< (size ?b) (size ?a))))
(rule known-only (law "a + b = b + a, of what is known") (from (add ?a ?b)) (to (add ?b ?a))
  (worth (known ?b)))
(rule as-product (law "only for squares") (unsound) (from (add ?a ?b)) (to (matmul ?a ?b)))
(rule transposed (law "only for squares") (unsound) (from (relu ?x))
  (to (transpose ?x :perm [1 0])))
(rule same-axis (law "concat of concat") (from (concat (concat ?a ?b :axis ?i) ?c :axis ?i))
  (to (concat ?a ?b ?c :axis ?i)))
(rule join-relus (law "[f(a), f(b)] = f([a, b])") (symmetric) (from (relu ?a) (relu ?b))
  (let ?both (split (relu (concat ?a ?b :axis 0)) :axis 0 :sizes (list (dim ?a 0) (dim ?b 0))))
  (to (part ?both :index 0) (part ?both :index 1)))
(rule join-sums (law "a + b and a + c, each its own way") (from (add ?a ?b) (add ?a ?c))
  (let ?both (split (concat (add ?a ?b) (add ?a ?c) :axis 0) :axis 0
                    :sizes (list (dim ?a 0) (dim ?a 0))))
  (to (part ?both :index 0) (part ?both :index 1)))
(rule triple (law "x = -(-x)") (from (neg ?x)) (to (neg (neg (neg ?x)))))
""",
        "test.rules",
    )
}


def sums() -> Graph:
    """Return relus and sums of which some share operands, and concatenations along two axes."""
    nodes = [
        Node("relu", ("x",), ("r",)),
        Node("relu", ("r",), ("rr",)),
        Node("relu", ("y",), ("q",)),
        Node("add", ("r", "x"), ("s",)),
        Node("add", ("q", "x"), ("t",)),
        Node("add", ("x", "v"), ("u",)),
        Node("concat", ("s", "t"), ("c0",), {"axis": 0}),
        Node("concat", ("c0", "c0"), ("c1",), {"axis": 1}),
        Node("neg", ("u",), ("n",)),
    ]
    inputs = {"x": f32(3, 4), "y": f32(3, 4)}
    return build_graph("sums", inputs, {"v": Weight(f32(4))}, nodes, ["c1", "rr", "n"])


def joined_sums() -> Graph:
    """Return ``sums`` with the two relus of its inputs in one."""
    graph = sums()
    nodes = [
        Node("concat", ("x", "y"), ("xy",), {"axis": 0}),
        Node("relu", ("xy",), ("rq",)),
        Node("split", ("rq",), ("r", "q"), {"axis": 0, "sizes": (3, 3)}),
        *(node for node in graph.nodes if node.outputs[0] not in ("r", "q")),
    ]
    return build_graph("sums", graph.inputs, graph.weights, nodes, graph.outputs)


def convolutions() -> Graph:
    """Return two convolutions of 32 groups, one of which is followed by nothing but an output."""
    nodes = [
        Node("conv", ("x", "w"), ("a",), {"stride": (1, 1), "pad": "same", "act": "none"}),
        Node("conv", ("a", "v"), ("b",), {"stride": (1, 1), "pad": "same", "act": "relu"}),
        Node("relu", ("b",), ("c",)),
    ]
    kind = TensorType("float32", (32, 1, 3, 3))
    weights = {"w": Weight(kind), "v": Weight(kind)}
    return build_graph("convolutions", {"x": f32(1, 32, 8, 8)}, weights, nodes, ["c"])


class Ran:
    """A finished run in memory."""

    def __init__(
        self, graph: Graph, *names: str, iterations: int = 5, file: Path | None = None
    ) -> None:
        self.egraph = EGraph.create(graph, file)
        explore(
            self.egraph, [RULES[name] for name in names], ExplorationOptions(iterations=iterations)
        )
        table = extraction_problem(self.egraph, load_profile("t4"))
        choose(self.egraph, table, extract(table.problem).choice)

    def ask(self, name: str, tensor: str = "") -> WhyNot:
        rules = None if RULES[name].name in self.names() else list(RULES.values())
        (answer,) = why_not(self.egraph.connection, name, tensor, rules)
        return answer

    def trace(self, name: str, tensor: str = "") -> Trace:
        return self.ask(name, tensor).traces[0]

    def names(self) -> list[str]:
        rows = self.egraph.connection.execute("SELECT name FROM rule").fetchall()
        return [name for (name,) in rows]


def printed(answer: WhyNot) -> str:
    """Return what people read."""
    console = Console(width=200, record=True, file=io.StringIO(), highlight=False, markup=False)
    print_why_not(answer, console)
    return console.export_text()
