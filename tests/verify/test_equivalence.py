"""Verification finds wrong graphs, accepts right ones, and says what it did not prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.base.errors import InputError, UsageError, VerificationError
from relational_tensat.formats import save_model
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import Verification, verify, verify_files
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import load_inputs
from relational_tensat.verify.outputs import random_positions
from tests.graphs import f32, shared_matmuls, weight


def merged_matmuls(original: Graph, *, wrong: bool = False) -> Graph:
    """Return the two matmuls as one: right, or with the halves of the split exchanged for one."""
    parts = ("a", "a2") if wrong else ("a", "b")
    return build_graph(
        "merged",
        original.inputs,
        original.weights,
        [
            Node("concat", ("w1", "w2"), ("w",), {"axis": 1}),
            Node("matmul", ("x", "w"), ("ab",)),
            Node("split", ("ab",), ("a", "a2" if wrong else "b"), {"axis": 1, "sizes": (64, 64)}),
            Node("sub" if wrong else "add", parts, ("c",)),
            Node("relu", ("c",), ("y",)),
        ],
        ["y"],
    )


@pytest.mark.parametrize("with_data", [False, True])
def test_a_right_graph_passes(with_data: bool) -> None:
    original = shared_matmuls(with_data=with_data)
    optimized = merged_matmuls(original)
    outcome = verify(original, optimized, folded=fold_weights(optimized))
    assert outcome.ok
    assert outcome.failure() == ""
    assert outcome.runs == (6 if with_data else 2)
    checks = [check.setting.what for check in outcome.outputs]
    assert "float64, random weights" in checks
    assert ("float64, the model's own weights" in checks) == with_data
    assert ("float64, the model's own weights as folded" in checks) == with_data
    exact = [c.max_relative_error for c in outcome.outputs if not c.setting.what.endswith("folded")]
    assert max(exact) < 1e-12
    assert all("tolerance" in one.demand for one in outcome.compared)
    assert any("no data" in warning for warning in outcome.warnings) == (not with_data)


def test_a_wrong_graph_fails() -> None:
    original = shared_matmuls(with_data=True)
    outcome = verify(original, merged_matmuls(original, wrong=True))
    assert not outcome.ok
    assert "output 'y' (float32[64,64]) has a relative error of" in outcome.failure()
    assert "expected at most 1e-06" in outcome.failure()


def uniform(graph: Graph) -> Graph:
    weights = {
        name: Weight(w.type, np.broadcast_to(np.float32(0.02), w.type.shape))
        for name, w in graph.weights.items()
    }
    return replace(graph, weights=weights)


def test_constant_weights_do_not_hide_a_mistake() -> None:
    original = uniform(shared_matmuls())
    swapped = build_graph(
        "swapped",
        original.inputs,
        original.weights,
        [replace(node, inputs=tuple("w1" if n == "w2" else n for n in node.inputs))
         for node in original.nodes],
        original.outputs,
    )  # fmt: skip
    outcome = verify(original, swapped)
    own = [c for c in outcome.outputs if c.setting.what == "float64, the model's own weights"]
    assert all(check.ok for check in own)  # all weights are 0.02: it does not matter which is used
    assert not outcome.ok
    assert "random weights" in outcome.failure()


def small(nodes: Sequence[Node], output: str = "y", kind: TensorType | None = None) -> Graph:
    return build_graph("small", {"x": kind or f32(3, 4)}, {"w": weight(4)}, nodes, [output])


def test_what_proves_nothing_is_reported() -> None:
    graph = small([Node("sub", ("x", "x"), ("z",)), Node("add", ("z", "w"), ("y",))])
    outcome = verify(graph, graph)
    assert outcome.ok
    assert any("the same for all inputs drawn" in warning for warning in outcome.warnings)


def test_nan_of_the_original_is_explained() -> None:
    graph = small(
        [Node("neg", ("x",), ("n",)), Node("mul", ("n", "n"), ("m",)), Node("neg", ("m",), ("k",)),
         Node("sqrt", ("k",), ("y",))]
    )  # fmt: skip
    outcome = verify(graph, graph)
    assert outcome.ok
    assert any("first at 'y', the result of a sqrt" in warning for warning in outcome.warnings)


def test_signatures_are_compared() -> None:
    graph = small([Node("relu", ("x",), ("y",))])
    more = build_graph(
        "more", graph.inputs, graph.weights, [*graph.nodes, Node("neg", ("y",), ("z",))], ["y", "z"]
    )
    other = small([Node("reshape", ("x",), ("y",), {"shape": (4, 3)})])
    with pytest.raises(VerificationError, match="returns 2 tensors, expected 1"):
        verify(graph, more)
    with pytest.raises(VerificationError, match=r"returns float32\[4,3\] as 'y', expected"):
        verify(graph, other)


def test_outputs_of_a_tuple_correspond_by_position() -> None:
    kind = f32(3, 4)
    separate = build_graph(
        "separate",
        {"x": kind},
        {},
        [Node("relu", ("x",), ("a",)), Node("neg", ("x",), ("b",))],
        ["a", "b"],
    )
    together = build_graph(
        "together", {"x": kind}, {}, [*separate.nodes, Node("noop", ("a", "b"), ("ab",))], ["ab"]
    )
    assert verify(separate, together).ok
    assert {check.output for check in verify(together, separate).outputs} == {"ab[0]", "ab[1]"}
    exchanged = replace(separate, outputs=("b", "a"))
    assert not verify(together, exchanged).ok


def test_given_inputs_are_used(tmp_path: Path) -> None:
    graph = small([Node("relu", ("x",), ("y",))])
    np.save(tmp_path / "x.npy", np.zeros((3, 4), np.float32))
    inputs = load_inputs(graph, {"x": tmp_path / "x.npy"})
    outcome = verify(graph, graph, inputs=inputs)
    assert outcome.runs == 2  # one for each set of weights: there is nothing to draw
    assert any("the given inputs" in one.inputs for one in outcome.compared)
    assert any("the same at all elements" in warning for warning in outcome.warnings)


def test_bad_given_inputs(tmp_path: Path) -> None:
    graph = small([Node("relu", ("x",), ("y",))])
    path = tmp_path / "x.npy"
    with pytest.raises(UsageError, match="no input 'X', its inputs are x"):
        load_inputs(graph, {"X": path})
    with pytest.raises(InputError, match="no such file"):
        load_inputs(graph, {"x": path})
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"not a \.npy file"):
        load_inputs(graph, {"x": path})
    path.write_text("not an array")
    with pytest.raises(InputError, match=r"not a \.npy file"):
        load_inputs(graph, {"x": path})
    np.save(path, np.zeros((4, 3), np.float32))
    with pytest.raises(InputError, match=r"holds float32\[4,3\], the input 'x' is float32\[3,4\]"):
        load_inputs(graph, {"x": path})


def files_of(folder: Path, original: Graph, optimized: Graph) -> Verification:
    before, after = folder / "before.onnx", folder / "after.onnx"
    save_model(original, before)
    save_model(optimized, after)
    return verify_files(original, before, after)


def test_onnxruntime_agrees(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    original = shared_matmuls(with_data=True)
    outcome = files_of(tmp_path, original, fold_weights(merged_matmuls(original)))
    assert outcome.ok
    assert outcome.runs == 1
    assert outcome.max_relative_error < 1e-4


def test_onnxruntime_finds_a_wrong_file(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    original = shared_matmuls(with_data=True)
    outcome = files_of(tmp_path, original, merged_matmuls(original, wrong=True))
    assert not outcome.ok
    assert "onnxruntime" in outcome.failure()


def test_weights_without_data_are_fed(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    original = shared_matmuls()
    assert files_of(tmp_path, original, merged_matmuls(original)).ok


def test_an_unreadable_file_is_a_failure(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    original = shared_matmuls(with_data=True)
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    save_model(original, before)
    after.write_bytes(b"nonsense")
    with pytest.raises(VerificationError, match="onnxruntime cannot run the optimized model"):
        verify_files(original, before, after)
    outcome = verify_files(original, after, before)
    assert not outcome.ok  # nothing was compared
    assert outcome.runs == 0
    assert outcome.failure() == ""
    assert "onnxruntime cannot run the original" in outcome.warnings[0]


def test_an_original_that_overflows_is_given_smaller_inputs() -> None:
    # x, x^3, x^9, ...: infinite for a normal x unless it begins near 0
    nodes = [Node("smul", ("x",), ("v0",), {"value": 8.0})]
    for i in range(7):
        nodes += [
            Node("mul", (f"v{i}", f"v{i}"), (f"s{i}",)),
            Node("mul", (f"s{i}", f"v{i}"), (f"c{i}",)),
            Node("add", (f"c{i}", f"v{i}"), (f"v{i + 1}",)),
        ]
    graph = build_graph("cubes", {"x": f32(1)}, {}, nodes, ["v7"])
    wide = build_graph("cubes", {"x": f32(64)}, {}, nodes, ["v7"])
    for variant in (graph, wide):
        assert verify(variant, variant).ok
    wrong = build_graph(
        "wrong", graph.inputs, {}, [*nodes, Node("smul", ("v7",), ("y",), {"value": 1.01})], ["y"]
    )
    outcome = verify(graph, wrong)
    assert outcome.shrink > 0
    assert not outcome.ok
    assert outcome.failure()


def opaque(payload: str, key: str) -> dict[str, AttrValue]:
    return {
        "op_type": "Mystery",
        "domain": "nobody.knows",
        "opset": 1,
        "payload": payload,
        "out_types": (("float32", (3, 4)),),
        "key": key,
    }


def logits(scale: float, *, exchanged: bool = False) -> Graph:
    """Return a softmax over sums of a thousand equal terms, added in one of two orders."""
    w = np.full((1000, 4), np.float32(0.1))
    split: list[Node] = [
        Node("smul", ("x",), ("big",), {"value": scale}),
        Node("split", ("big",), ("p", "q"), {"axis": 1, "sizes": (300, 700)}),
        Node("split", ("w",), ("u", "v"), {"axis": 0, "sizes": (300, 700)}),
        Node("matmul", ("p", "u"), ("pu",)),
        Node("matmul", ("q", "v"), ("qv",)),
        Node("add", ("pu", "qv"), ("sum",)),
    ]
    whole = [split[0], Node("matmul", ("big", "w"), ("sum",))]
    nodes = [*(split if exchanged else whole), Node("add", ("sum", "b"), ("biased",))]
    return build_graph(
        "logits",
        {"x": f32(1, 1000)},
        {"w": Weight(f32(1000, 4), w), "b": Weight(f32(4), np.arange(4, dtype=np.float32))},
        [*nodes, Node("softmax", ("biased",), ("y",), {"axis": 1})],
        ["y"],
    )


def test_rounding_of_the_original_is_not_held_against_the_optimized(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    assert files_of(tmp_path, logits(1.0), logits(1.0, exchanged=True)).ok
    outcome = files_of(tmp_path, logits(1e7), logits(1e7, exchanged=True))
    (check,) = outcome.outputs
    assert check.ok
    assert check.max_relative_error <= 1e-3 or "rounding alone" in check.note


def test_what_cannot_be_computed_is_not_called_verified() -> None:
    text = TensorType("string", (3, 4))
    graph = build_graph(
        "strings", {"x": f32(3, 4), "s": text}, {}, [Node("relu", ("x",), ("y",))], ["y", "s"]
    )
    outcome = verify(graph, graph)
    assert not outcome.ok
    assert outcome.runs == 0
    assert outcome.failure() == ""
    assert any("cannot be computed here" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("key", ["", "random:1"])
def test_what_nobody_can_compute_is_a_random_function_of_its_inputs(key: str) -> None:
    def around(value: float, relus: int) -> Graph:
        nodes = [Node("smul", ("x",), ("r0",), {"value": value})]
        nodes += [Node("relu", (f"r{i}",), (f"r{i + 1}",)) for i in range(relus)]
        nodes.append(Node("opaque", (f"r{relus}",), ("y",), opaque("", key)))
        return build_graph("around", {"x": f32(3, 4)}, {}, nodes, ["y"])

    outcome = verify(around(2.0, 2), around(2.0, 1))
    assert outcome.ok and outcome.runs > 0
    assert outcome.stand_ins == ("nobody.knows.Mystery",)
    assert any("nobody.knows.Mystery" in warning for warning in outcome.warnings)
    assert verify(around(2.0, 2), around(2.1, 1)).failure()
    assert verify(around(2.0, 1), around(2.0, 0)).failure()


def test_outputs_that_depend_on_random_operators_are_found() -> None:
    graph = build_graph(
        "g",
        {"x": f32(3, 4)},
        {},
        [
            Node("opaque", ("x",), ("r",), opaque("", "1")),
            Node("relu", ("x",), ("a",)),
            Node("add", ("a", "r"), ("b",)),
            Node("noop", ("a", "b"), ("both",)),
        ],
        ["a", "b", "both"],
    )
    assert random_positions(graph) == {1, 2, 3}  # a tuple that holds a random value is random


def test_an_output_that_hardly_depends_on_inputs_proves_nothing() -> None:
    """A network that signals vanish in: one that ignores its inputs would pass."""
    small = np.full((1, 4), 1e-8)
    weights = {"w": Weight(f32(1, 4), small), "b": Weight(f32(4), np.arange(1.0, 5.0))}
    nodes = [Node("mul", ("x", "w"), ("s",)), Node("add", ("s", "b"), ("y",))]
    graph = build_graph("m", {"x": f32(2, 4)}, weights, nodes, ["y"])
    outcome = verify(graph, graph)
    own, random = outcome.outputs
    assert "within" in own.note and "for all inputs drawn: proves nothing" in own.note
    assert not own.proves_something and random.proves_something
    assert outcome.ok and not outcome.warnings  # random weights prove it
