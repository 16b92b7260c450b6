"""The runs that pages are made of."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.models import MODELS
from bench.scale.families import FAMILIES
from relational_tensat import EGraph, Options, optimize
from relational_tensat.formats import load_model
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph

_INPUTS = Path(__file__).resolve().parent.parent / "inputs"

#: The models whose pages are made, by name.
MODELS_SHOWN: dict[str, Callable[[], Graph]] = {
    "bert": MODELS["bert"],
    "nasrnn": MODELS["nasrnn"],
    "transformer_block": lambda: load_model(_INPUTS / "transformer_block.onnx"),
    "squeezenet": MODELS["squeezenet"],
    "gated_mlp": lambda: load_model(_INPUTS / "gated_mlp.onnx"),
}
#: Those that kernels are made for.
_FUSED = frozenset({"gated_mlp"})
_LAYERS = 250


def thousand_operators() -> Graph:
    """Return layers of four operators, each of which takes what the one before made."""
    kind = TensorType("float32", (8, 8))
    nodes: list[Node] = []
    last = "x"
    for layer in range(_LAYERS):
        nodes += [
            Node("matmul", (last, "w"), (f"product{layer}",)),
            Node("relu", (f"product{layer}",), (f"relu{layer}",)),
            Node("tanh", (f"relu{layer}",), (f"tanh{layer}",)),
            Node("add", (f"tanh{layer}", last), (f"add{layer}",)),
        ]
        last = f"add{layer}"
    return build_graph("thousand_operators", {"x": kind}, {"w": Weight(kind)}, nodes, [last])


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page that was made.

    Attributes:
        seconds: that it took to make it from the run's result.
    """

    name: str
    path: Path
    e_nodes: int
    steps: int
    seconds: float

    @property
    def kilobytes(self) -> float:
        """Its size."""
        return self.path.stat().st_size / 1000


def make_page(name: str, cost: str, folder: Path) -> MadePage:
    """Optimize a model, and write the page of the run into a folder."""
    is_large = name == thousand_operators.__name__
    graph = thousand_operators() if is_large else MODELS_SHOWN[name]()
    options = Options.of(cost=cost, fuse=name in _FUSED, iterations=0 if is_large else 15)
    result = optimize(graph, options)
    start_s = time.perf_counter()
    page = result.view()
    path = page.save(folder / f"{name}.html")
    seconds = time.perf_counter() - start_s
    film = page.data.film
    return MadePage(name, path, result.e_nodes, 0 if film is None else len(film.steps), seconds)


def make_large(e_nodes: int, path: Path) -> int:
    """Write the database of an e-graph of about so many e-nodes; return how many it has.

    Sums, one after the other, commuted and regrouped until nothing is new; extracted by trees.
    """
    family = FAMILIES["chain"]
    with EGraph.of(family.build(e_nodes), db=path) as egraph:
        egraph.explore(
            list(family.rules()), node_limit=2 * e_nodes, time_limit_s=600, iterations=30,
            allow_unsound=True,
        )  # fmt: skip
        egraph.extract("t4", extractor="greedy")
        return egraph.e_nodes
