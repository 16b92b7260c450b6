"""Modules that are no functions of tensors: refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from relational_tensat import InputError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnxscript", reason="needs onnxscript, with which PyTorch writes ONNX")

from torch import nn  # noqa: E402

from relational_tensat.torch import optimize_module  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch says of itself


class Complex(nn.Module):
    """Returns numbers that ONNX has not."""

    def forward(self, x: Any) -> Any:
        return torch.fft.rfft(x)


class Silent(nn.Module):
    """Returns nothing that is computed."""

    def forward(self, x: Any) -> Any:
        return x.shape[0]


class Counting(nn.Module):
    """Changes itself when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x * self.calls


class Noisy(nn.Module):
    """Draws, also for inference."""

    def forward(self, x: Any) -> Any:
        return nn.functional.dropout(x, 0.5, training=True)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (Counting(), "changes 'calls'"),
        (Noisy(), "draws random numbers"),
        (Complex(), "is complex, expected a type that ONNX has"),
        (Silent(), "Silent: returns no tensor"),
    ],
)
def test_modules_that_are_no_functions_of_tensors_are_refused(
    module: nn.Module, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        optimize_module(module.eval(), (torch.ones(3),))
