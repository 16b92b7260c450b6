"""Windows of a model: those that a search through all subsets of its operators finds."""

from __future__ import annotations

import itertools

from bench.synthesis.windows import form_of, setting_of_windows, windows_of
from relational_tensat.tensor.graph import Graph, Node, Weight, build_graph
from relational_tensat.tensor.types import TensorType

_KIND = TensorType("float32", (64, 192))


def graph() -> Graph:
    """A chain with a branch, a number, and a product of weights alone."""
    nodes = [
        Node("transpose", ("w",), ("turned",), {"perm": (1, 0)}),
        Node("matmul", ("x", "turned"), ("a",)), Node("relu", ("a",), ("b",)),
        Node("fill", (), ("half",), {"value": 0.5, "dtype": "float32", "shape": ()}),
        Node("sub", ("b", "half"), ("c",)), Node("neg", ("b",), ("d",)),
        Node("mul", ("c", "d"), ("e",)), Node("abs", ("e",), ("y",)),
    ]  # fmt: skip
    weights = {"w": Weight(TensorType("float32", (192, 192)))}
    return build_graph("g", {"x": _KIND}, weights, nodes, ["y"], where="g")


def slow_windows(model: Graph, most: int) -> set[tuple[str, ...]]:
    """Return the sets of operators with one result that is used outside, and up to three tensors."""
    usable = [node for node in model.nodes if node.op not in ("fill", "transpose")]
    found = set()
    for size in range(2, most + 1):
        for nodes in itertools.combinations(usable, size):
            made = {name for node in nodes for name in node.outputs}
            outside = [node for node in model.nodes if node not in nodes]
            read = {name for node in outside for name in node.inputs} | set(model.outputs)
            outer = {name for node in nodes for name in node.inputs} - made - {"half"}
            inner = [name for node in nodes for name in node.inputs if name in made]
            last = made & read
            one = len(last) == 1 and not last & set(inner) and made - last <= set(inner)
            if one and len(outer) <= 3:
                found.add(tuple(node.op for node in nodes))
    return found


def test_windows_are_those_of_a_search_through_all_subsets() -> None:
    model = graph()
    found = [tuple(node.op for node in window.nodes) for window in windows_of(model, 4)]
    assert len(found) == len(set(found))
    assert set(found) == slow_windows(model, 4)


def test_sizes_do_not_tell_windows_apart_and_numbers_do() -> None:
    forms = [form_of(window) for window in windows_of(graph(), 3)]
    other = build_graph(
        "g", {"x": TensorType("float32", (8, 32))},
        {"w": Weight(TensorType("float32", (32, 32)))}, graph().nodes, ["y"], where="g",
    )  # fmt: skip
    assert [form_of(window) for window in windows_of(other, 3)] == forms


def test_a_setting_has_the_operators_and_numbers_of_its_windows() -> None:
    windows = [w for w in windows_of(graph(), 2) if w.numbers]
    setting = setting_of_windows(windows[:1])
    assert setting.numbers == (0.5, 1.0)
    assert {"sub", "relu", "neg", "add"} <= {choice.op for choice in setting.choices}
    assert all(size > 2 for kind in setting.inputs.values() for size in kind.shape)


def test_bounds_that_guard_against_infinities_are_in_no_window() -> None:
    def clipped(low: float) -> Graph:
        nodes = [Node("neg", ("x",), ("a",)), Node("clip", ("a",), ("y",), {"min": low})]
        return build_graph("g", {"x": _KIND}, {}, nodes, ["y"], where="g")

    assert len(list(windows_of(clipped(-30.0), 2))) == 1
    assert not list(windows_of(clipped(-3.4028234663852886e38), 2))
