"""Sessions of PyTorch's tensors: no size and no integer is silently another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from relational_tensat.adapters.torch_session import TorchSession  # noqa: E402
from relational_tensat.base.errors import UsageError  # noqa: E402
from tests.formats.onnx_tools import constant, model, tensor  # noqa: E402

make = onnx.helper.make_node


@pytest.fixture(params=["onnxruntime", "openvino"])
def runtime(request: pytest.FixtureRequest) -> str:
    if request.param == "openvino":
        pytest.importorskip("openvino", reason="needs OpenVINO")
    return str(request.param)


@pytest.mark.parametrize("shape", [[2, 4], [2], [5, 3]])
def test_a_wrong_size_is_one_line_that_names_both(
    runtime: str, shape: list[int], tmp_path: Path
) -> None:
    weight = constant("w", np.ones((3, 4)), np.float32)
    made = model(
        [make("MatMul", ["x", "w"], ["y"])], [tensor("x", [2, 3])], [tensor("y", [2, 4])], [weight]
    )
    onnx.save(made, tmp_path / "m.onnx")
    session = TorchSession(tmp_path / "m.onnx", runtime)
    with pytest.raises(UsageError) as error:
        session([torch.ones(shape)])
    assert str(error.value) == f"input 'x' is {shape}, expected [2, 3]"
    assert session([torch.ones(2, 3)])[0].sum() == 24


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_integers_of_64_bits_are_right_or_refused(
    runtime: str, number: int, tmp_path: Path
) -> None:
    """OpenVINO computes in 32 bits, whatever the file says."""
    integers = [tensor(name, [1], onnx.TensorProto.INT64) for name in "xy"]
    made = model([make("Add", ["x", "x"], ["y"])], integers[:1], integers[1:])
    onnx.save(made, tmp_path / "m.onnx")
    session = TorchSession(tmp_path / "m.onnx", runtime)
    assert session([torch.tensor([-7])])[0].item() == -14
    if runtime == "onnxruntime":
        assert session([torch.tensor([number])])[0].item() == 2 * number
    else:
        with pytest.raises(UsageError, match="input 'x' has integers beyond int32"):
            session([torch.tensor([number])])
