"""A target's kernels as they are written, at several sizes at once."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import ModelError
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.expand_to_onnx import expand_alike
from relational_tensat.tensor import Graph, Node, build_graph
from tests.graphs import f32


def _at(n: int, kernel: Node) -> Graph:
    """Return a kernel of an [n, 1, 4] that is a reshape of x."""
    nodes = [Node("reshape", ("x",), ("v",), {"shape": (n, 1, 4)}), kernel]
    return build_graph("g", {"x": f32(n, 4), "b": f32(4)}, {}, nodes, ["y"])


def _original(n: int) -> Graph:
    """Return what reshapes x to [1, n, 4] first: as [n, 1, 4], where n is 1."""
    nodes = [
        Node("reshape", ("x",), ("u",), {"shape": (1, n, 4)}),
        Node("transpose", ("u",), ("w",), {"perm": (1, 0, 2)}),
        Node("add", ("w", "b"), ("s",)),
        Node("gelu", ("s",), ("y",)),
    ]
    return build_graph("g", {"x": f32(n, 4), "b": f32(4)}, {}, nodes, ["y"])


def test_what_the_original_computes_at_size_1_only_has_a_name_of_its_own_at_all_sizes() -> None:
    load_backend("onnxruntime")
    kernel = Node("ort_bias_gelu", ("v", "b"), ("y",))
    graphs, originals = zip(*((_at(n, kernel), _original(n)) for n in (3, 1)), strict=True)
    written = expand_alike(graphs, originals)
    names = [[(node.op, node.outputs) for node in graph.nodes] for graph in written]
    assert names[0] == names[1] == [("reshape", ("v",)), ("add", ("y/add",)), ("gelu", ("y",))]
    assert [graph.types["v"] for graph in written] == [f32(3, 1, 4), f32(1, 1, 4)]


def test_a_kernel_of_other_operators_at_another_size_is_refused() -> None:
    load_backend("onnxruntime")
    kernels = [Node("ort_quick_gelu", ("v",), ("y",), {"alpha": alpha}) for alpha in (1.0, 1.7)]
    with pytest.raises(ModelError, match="'y' is made of other operators at another size"):
        expand_alike([_at(n, kernel) for n, kernel in enumerate(kernels, 2)], [_original(2)] * 2)


def test_a_sum_for_a_norm_that_others_add_up_is_theirs() -> None:
    load_backend("onnxruntime")
    kinds = {"x": f32(2, 3, 8), "z": f32(2, 3, 8), "s": f32(8), "b": f32(8)}
    norm = Node("ort_sum_layer_norm", ("x", "z", "s", "b"), ("n",), {"axis": 2, "epsilon": 1e-5})
    again = Node("add", ("a", "n"), ("y",))
    for nodes in (
        [norm, Node("add", ("z", "x"), ("a",)), again],  # in the other order, and behind it
        [norm, Node("relu", ("x",), ("a",)), again],
    ):
        graph = build_graph("g", kinds, {}, nodes, ["y"])
        (written,) = expand_alike([graph], [graph])
        readers = {node.op: node.inputs[0] for node in written.nodes}
        is_added = nodes[1].op == "add"
        assert ("ort_sum" in readers) != is_added
        assert (readers["layer_norm"] == "a") == is_added
        assert [node.outputs[0] for node in written.nodes][-1] == "y"
