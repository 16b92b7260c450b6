"""Inputs whose values have to fit the sizes: found by running, or given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from relational_tensat.base.errors import InputError
from relational_tensat.formats.dynamic.size_reader import read_dynamic
from relational_tensat.formats.dynamic.sized_model import DynamicModel
from relational_tensat.formats.onnx_node import OnesRunner
from relational_tensat.tensor import TensorType
from tests.formats.dynamic.models import saved
from tests.formats.onnx_tools import INT64, model, tensor
from tests.run.test_defects import FILES

GQA = FILES / "gqa_dynamic.onnx"


def test_lengths_of_a_cache_are_found(tmp_path: Path) -> None:
    sized = read_dynamic(GQA, {"b": 1, "s": 4, "p": 4})
    assert isinstance(sized, DynamicModel)
    assert sized.base.fitting["tl"] == 8 and sized.base.fitting["sl"].tolist() == [7]
    assert sum(bool(there.fitting) for there in sized.all) >= 3


def test_given_ones_say_what_they_are_at_other_sizes() -> None:
    given = {"tl": np.array(4, np.int32), "sl": np.array([3], np.int32)}
    sized = read_dynamic(GQA, {"b": 1, "s": 4, "p": 6}, inputs=given)
    assert isinstance(sized, DynamicModel) and sized.base.fitting == given
    known = [there for there in sized.others if there.sizes["p"] >= there.sizes["s"]]
    assert known and all(there.fitting["tl"] == there.sizes["s"] for there in known)


def test_a_message_names_the_input_and_the_flag(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    inputs = [tensor("x", ["n", 6]), tensor("shape", [3], INT64)]
    path = saved(model(nodes, inputs, [tensor("y", [None] * 3)]), tmp_path)
    with pytest.raises(InputError, match=r"--input shape=FILE\.npy"):
        read_dynamic(path, {})
    given = {"shape": np.array([-1, 2, 3], np.int64)}
    sized = read_dynamic(path, {}, inputs=given)
    assert isinstance(sized, DynamicModel)
    assert all(there.fitting["shape"].tolist() == [-1, 2, 3] for there in sized.all)


def test_ones_that_no_memory_holds_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    path = saved(model([node], [tensor("x", ["n"])], [tensor("y", ["n"])]), tmp_path)
    assert "allocate" in OnesRunner(path).refusal({"x": TensorType("float32", (1 << 50,))})
    assert OnesRunner(path).refusal({"x": TensorType("float32", (4,))}) == ""
