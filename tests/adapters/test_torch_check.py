"""Exports that compute something else than their module: refused."""

from __future__ import annotations

from typing import Any

import pytest

from relational_tensat import InputError, Options

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnxscript", reason="needs onnxscript, with which PyTorch writes ONNX")

from torch import nn  # noqa: E402

from relational_tensat.torch import optimize_module  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch says of itself


class Truncated(nn.Module):
    """Divides integers in a way that PyTorch's exporter makes one of floats."""

    def forward(self, x: Any) -> Any:
        return torch.div(x, 3, rounding_mode="trunc")


class Masked(nn.Module):
    """Masks all: PyTorch's result is zero, that of ONNX is none."""

    def forward(self, x: Any) -> Any:
        mask = torch.zeros(3, 3, dtype=torch.bool)
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Mean(nn.Module):
    """Of nothing, it is NaN in PyTorch, and zero in onnxruntime."""

    def forward(self, x: Any) -> Any:
        return x.mean(0)


@pytest.mark.parametrize(
    ("module", "x", "reason"),
    [
        (
            Mean(),
            torch.empty(0, 4),
            "output 0 has 4 elements of 4 that are finite on one side only",
        ),
        (Truncated(), torch.arange(2**30, 2**30 + 64), r"output 0 has \d\d wrong of 64"),
        (Masked(), torch.randn(1, 1, 3, 8), "output 0 is off by .*, its largest element is 0"),
    ],
)
def test_an_export_that_is_another_function_is_refused(
    module: nn.Module, x: Any, reason: str
) -> None:
    with pytest.raises(InputError, match=f"computes something else: for the example, {reason}"):
        optimize_module(module.eval(), (x,), options=Options.of(effort="low"))
