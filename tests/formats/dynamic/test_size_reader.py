"""A model read at several sizes: one graph with other numbers in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.option import SizeRange
from relational_tensat.formats.dynamic import sized_model
from relational_tensat.formats.dynamic.size_reader import read_dynamic
from relational_tensat.formats.dynamic.sized_model import DynamicModel, SizeError
from relational_tensat.formats.dynamic.writer import write_dynamic
from relational_tensat.tensor import Graph, build_graph
from tests.formats.dynamic.models import attention, mlp, saved
from tests.formats.onnx_tools import constant, model, tensor

node = helper.make_node


def read(path: Path, **dims: int) -> DynamicModel:
    result = read_dynamic(path, dims)
    assert isinstance(result, DynamicModel)
    return result


def test_it_has_the_same_nodes_at_all_sizes(tmp_path: Path) -> None:
    sized = read(saved(attention(), tmp_path), batch=2)
    assert sized.base.sizes == {"batch": 2, "seq": 61} and sized.chosen == {"batch"}
    assert {1} == set(sized.others[-1].sizes.values()) and not sized.notes
    forms = [
        [(item.op, item.inputs, item.outputs) for item in there.graph.nodes] for there in sized.all
    ]
    assert all(form == forms[0] for form in forms)
    for there in sized.all:
        assert there.graph.inputs["ids"].shape == tuple(there.sizes.values())
        np.testing.assert_array_equal(there.computed["positions"], np.arange(there.sizes["seq"]))
        assert there.graph.inputs["positions"].shape == (there.sizes["seq"],)
        assert there.graph.weights.keys() == sized.base.graph.weights.keys()
        graph = there.graph
        checked = build_graph(graph.name, graph.inputs, graph.weights, graph.nodes, graph.outputs)
        assert (list(graph.types.items()), graph.nodes) == (
            list(checked.types.items()),
            checked.nodes,
        )


def test_much_work_is_compared_at_small_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(attention(), tmp_path)
    assert read(file).others[0].sizes != {"batch": 3, "seq": 5}
    monkeypatch.setattr(sized_model, "_FEW_FLOPS", 0)
    assert read(file).others[0].sizes == {"batch": 3, "seq": 5}


def test_fixed_models_are_graphs(tmp_path: Path) -> None:
    file = model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])])
    assert isinstance(read_dynamic(saved(file, tmp_path), {}), Graph)


def test_a_dimension_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no dynamic dimension 'bach'; did you mean 'batch'"):
        read_dynamic(saved(mlp(), tmp_path), {"bach": 1})


def test_large_weights_are_mapped_once(tmp_path: Path) -> None:
    large = constant("w", np.ones((16, 20_000)) * np.arange(20_000), np.float32)
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    file = model(nodes, [tensor("x", ["n", 16])], [tensor("y", ["n", 20_000])], [large])
    sized = read(saved(file, tmp_path))
    assert list(sized.data) == ["w"]
    data = [there.graph.weights["w"].data for there in sized.all]
    assert data[0] is not None and all(array is data[0] for array in data)


def test_what_is_folded_at_one_size_only_stays_computed(tmp_path: Path) -> None:
    """A mask of seq · seq numbers is small enough to be folded up to seq = 32."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Concat", ["sizes", "sizes"], ["square"], axis=0),
        node("ConstantOfShape", ["square"], ["zeros"]),
        node("Cos", ["zeros"], ["ones"]),
        node("MatMul", ["ones", "x"], ["y"]),
    ]
    file = model(nodes, [tensor("x", ["seq"])], [tensor("y", ["seq"])])
    sized = read(saved(file, tmp_path), seq=64)
    assert list(sized.base.computed) == ["zeros"]
    for there in sized.all:  # those of at most 1,024 numbers could be folded
        assert there.graph.nodes[0].outputs == ("ones",)


def test_another_graph_at_other_sizes_is_refused(tmp_path: Path) -> None:
    """At batch = 1 Squeeze takes another axis away."""
    nodes = [node("Squeeze", ["x"], ["s"]), node("Relu", ["s"], ["y"])]
    file = model(nodes, [tensor("x", ["batch", 4])], [tensor("y", ["n", 4])])
    sized = read(saved(file, tmp_path))
    assert len(sized.notes) == 1 and "batch=1" in sized.notes[0]
    with pytest.raises(SizeError) as caught:
        read_dynamic(tmp_path / "m.onnx", {"batch": 1})
    assert caught.value.base is not None


def test_any_sizes(tmp_path: Path) -> None:
    sized = read(saved(attention(), tmp_path))
    assert sized.at({"batch": 2, "seq": 9}).output_types()[0].shape == (2, 9, 8)


def test_dimensions_that_must_be_equal_are_one(tmp_path: Path) -> None:
    """Exporters call the batches of two inputs differently."""
    nodes = [node("Add", ["x", "z"], ["y"])]
    inputs = [tensor("x", ["s0", 4]), tensor("z", ["s1", 4])]
    path = saved(model(nodes, inputs, [tensor("y", ["s0", 4])]), tmp_path)
    sized = read(path)
    assert sized.base.sizes == {"s0": 3}
    assert sized.notes == ("s1 is taken to be s0: operands of Add fit then only",)
    assert read(path, s1=9).base.sizes == {"s1": 9}
    with pytest.raises(InputError):
        read_dynamic(path, {"s0": 3, "s1": 5})


def test_dimensions_that_may_differ_are_two(tmp_path: Path) -> None:
    nodes = [node("Concat", ["x", "z"], ["y"], axis=0)]
    inputs = [tensor("x", ["s0", 4]), tensor("z", ["s1", 4])]
    sized = read(saved(model(nodes, inputs, [tensor("y", ["n", 4])]), tmp_path))
    assert list(sized.base.sizes) == ["s0", "s1"] and not sized.notes


def test_sizes_at_which_it_does_not_run_are_left_out(tmp_path: Path) -> None:
    """ONNX infers types for windows that are larger than what they slide over."""
    weights = [
        constant(name, np.ones((2, 2, size)), np.float32) for name, size in (("v", 3), ("w", 6))
    ]
    nodes = [
        node("Conv", ["x", "v"], ["a"], strides=[2]),
        node("Conv", ["a", "w"], ["y"], strides=[6]),
    ]
    inputs, outputs = [tensor("x", ["n", 2, "time"])], [tensor("y", ["n", 2, "t"])]
    path = saved(model(nodes, inputs, outputs, weights), tmp_path)
    sized = read(path)
    assert all(there.sizes["time"] >= 13 for there in sized.all)
    assert any(there.sizes["n"] == 1 for there in sized.all)


def test_defaults_grow_until_the_model_is_valid(tmp_path: Path) -> None:
    weight = constant("w", np.ones((2, 1, 200)), np.float32)
    nodes = [node("Conv", ["x", "w"], ["y"])]
    file = model(nodes, [tensor("x", ["n", 1, "time"])], [tensor("y", ["n", 2, "t"])], [weight])
    assert read(saved(file, tmp_path)).base.sizes["time"] >= 200


def test_defaults_shrink_until_a_model_is_little_work(tmp_path: Path) -> None:
    """Each pixel meets each other one: at 224 by 192 the scores are 20 GiB."""
    nodes = [
        node("Reshape", ["x", "shape"], ["flat"]),
        node("Transpose", ["flat"], ["pixels"], perm=[0, 2, 1]),
        node("MatMul", ["pixels", "flat"], ["y"]),
    ]
    inputs, outputs = [tensor("x", ["n", 4, "h", "w"])], [tensor("y", ["n", "p", "p"])]
    file = saved(model(nodes, inputs, outputs, [constant("shape", [0, 4, -1], np.int64)]), tmp_path)
    assert read(file).base.sizes == {"n": 5, "h": 56, "w": 48}
    assert read(file, h=256).base.sizes == {"n": 5, "h": 256, "w": 28}  # what is given stays


def test_two_sequences_stay_apart_where_positions_are_few(tmp_path: Path) -> None:
    """Defaults are 61 and 67, a table of positions has 64 rows: smaller sizes tell that both are free."""
    weights = [
        constant("table", np.ones((64, 4)), np.float32),
        constant("zero", 0),
        constant("one", 1),
    ]
    nodes, inputs, outputs = [], [], []
    for name in ("source", "target"):
        nodes += [
            node("Shape", [name], [f"{name}_shape"], start=1, end=2),
            node("Squeeze", [f"{name}_shape"], [f"{name}_size"]),
            node("Range", ["zero", f"{name}_size", "one"], [f"{name}_places"]),
            node("Gather", ["table", f"{name}_places"], [f"{name}_rows"]),
            node("Add", [name, f"{name}_rows"], [f"{name}_y"]),
        ]
        inputs.append(tensor(name, ["batch", f"of_{name}", 4]))
        outputs.append(tensor(f"{name}_y", ["batch", f"of_{name}", 4]))
    sized = read(saved(model(nodes, inputs, outputs, weights), tmp_path))
    assert sized.dimensions.symbols == ("batch", "of_source", "of_target")
    assert not sized.dimensions.derived and not sized.notes
    assert any(there.sizes["of_source"] != there.sizes["of_target"] for there in sized.all)


def test_a_promise_is_kept_at_both_ends(tmp_path: Path) -> None:
    """Positions are a table of 256 rows."""
    path = saved(attention(), tmp_path)
    sized = read_dynamic(path, {"seq": SizeRange.of(2, 200)})
    assert isinstance(sized, DynamicModel)
    looked_at = {there.sizes["seq"] for there in sized.all}
    assert {2, 20, 200} <= looked_at and max(looked_at) == 200 and min(looked_at) == 2
    with pytest.raises(InputError, match=r"does not run at batch=3,seq=300"):
        read_dynamic(path, {"seq": SizeRange.of(2, 300)})


def test_a_size_that_is_no_expression_stays_computed(tmp_path: Path) -> None:
    """How many columns are taken is a square root: Slice stays, and the rest is known."""
    nodes = [
        node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Cast", ["shape"], ["float"], to=1),
        node("Sqrt", ["float"], ["root"]),
        node("Cast", ["root"], ["k"], to=7),
        node("Slice", ["x", "zero", "k", "one"], ["part"]),
        node("Relu", ["part"], ["y"]),
        node("Relu", ["x"], ["z"]),
    ]
    constants = [constant("zero", [0], np.int64), constant("one", [1], np.int64)]
    outputs = [tensor("y", ["b", "m"]), tensor("z", ["b", "n"])]
    file = model(nodes, [tensor("x", ["b", "n"])], outputs, constants)
    sized = read(saved(file, tmp_path))
    operators = {item.outputs[0]: item.op for item in sized.base.graph.nodes}
    assert operators["part"] == "opaque" and "k" in operators and operators["z"] == "relu"
    model_file, _ = write_dynamic(sized, [there.graph for there in sized.all], None)
    assert [item.op_type for item in model_file.graph.node][-2:] == ["Relu", "Relu"]
