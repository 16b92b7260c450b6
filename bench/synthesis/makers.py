"""``PYTHON -m bench.synthesis.makers FOLDER``: small networks, unusual activations and masks.

PYTHON is an interpreter that has torch and onnx; nothing here imports the optimizer. Each network is
written as its paper or a common repository writes it, before anybody looked at what rules there are.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as f

_WIDTH, _ROWS, _LENGTH = 192, 64, 48


class Act(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return self.function(x)


def perceptron(function: Callable[[Tensor], Tensor], depth: int = 4) -> nn.Module:
    """Return layers with an activation between."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(_WIDTH, _WIDTH), Act(function)]
    return nn.Sequential(*layers)


def crelu_both(x: Tensor) -> Tensor:
    """Concatenated ReLU (Shang et al. 2016), the halves added back with a weight."""
    return torch.relu(x) - 0.3 * torch.relu(-x)


def hard_swish_by_hand(x: Tensor) -> Tensor:
    """MobileNetV3's h-swish as first published repositories write it."""
    return x * f.relu6(x + 3.0) / 6.0


def hard_shrink(x: Tensor) -> Tensor:
    """Hard shrinkage."""
    return torch.where(x.abs() > 0.5, x, torch.zeros_like(x))


def soft_shrink(x: Tensor) -> Tensor:
    """Soft shrinkage, by two rectifiers (learned thresholding networks)."""
    return torch.relu(x - 0.5) - torch.relu(-x - 0.5)


def leaky_by_where(x: Tensor) -> Tensor:
    """A leaky rectifier, by a comparison."""
    return torch.where(x > 0, x, 0.1 * x)


def leaky_by_max(x: Tensor) -> Tensor:
    """A leaky rectifier, by a maximum."""
    return torch.maximum(x, 0.2 * x)


def celu_by_hand(x: Tensor) -> Tensor:
    """CELU as PyTorch's documentation defines it."""
    return torch.clamp(x, min=0) + torch.clamp(torch.exp(x) - 1, max=0)


def star_relu(x: Tensor) -> Tensor:
    """MetaFormer's StarReLU."""
    return 0.8944 * torch.relu(x) ** 2 - 0.4472


def squareplus(x: Tensor) -> Tensor:
    """Squareplus (Barron 2021)."""
    return 0.5 * (x + torch.sqrt(x * x + 4.0))


def soft_cap(x: Tensor) -> Tensor:
    """Gemma's soft cap."""
    return torch.tanh(x / 30.0) * 30.0


def hard_tanh_by_relu(x: Tensor) -> Tensor:
    """Hard tanh from rectifiers."""
    return torch.relu(x + 1) - torch.relu(x - 1) - 1


def log_sigmoid_gate(x: Tensor) -> Tensor:
    """A gate by a logistic function written out."""
    return x * (1.0 / (1.0 + torch.exp(-x)))


def tanh_by_sigmoid(x: Tensor) -> Tensor:
    """tanh from a sigmoid."""
    return 2.0 * torch.sigmoid(2.0 * x) - 1.0


def bent(x: Tensor) -> Tensor:
    """Bent identity."""
    return (torch.sqrt(x * x + 1.0) - 1.0) / 2.0 + x


def softsign(x: Tensor) -> Tensor:
    """Softsign by hand."""
    return x / (1.0 + torch.abs(x))


def threshold_by_mask(x: Tensor) -> Tensor:
    """A rectifier by a mask of floats."""
    return x * (x > 0).float()


def clipped_residual(x: Tensor) -> Tensor:
    """What a clip takes away, as noise gates have it."""
    return x - torch.clamp(x, -1.0, 1.0)


def parametric(x: Tensor) -> Tensor:
    """A parametric rectifier as the Caffe port writes it."""
    return torch.relu(x) + 0.25 * (x - torch.abs(x)) * 0.5


def complement_gate(x: Tensor) -> Tensor:
    """A highway gate: a value through, the complement around."""
    gate = torch.sigmoid(x)
    return gate * x + (1.0 - gate) * torch.tanh(x)


def relu_by_abs(x: Tensor) -> Tensor:
    """A rectifier of sums and signs, as differentiable programs without maxima have it."""
    return 0.5 * (x + torch.abs(x))


def sigmoid_by_tanh(x: Tensor) -> Tensor:
    """A logistic gate by tanh, as ports of LSTMs and WaveNet have it."""
    return x * (0.5 * torch.tanh(0.5 * x) + 0.5)


def sigmoid_by_exp(x: Tensor) -> Tensor:
    """A logistic gate by one exponential."""
    grown = torch.exp(x)
    return x * (grown / (grown + 1.0))


def tanh_by_exp(x: Tensor) -> Tensor:
    """tanh as its definition."""
    up, down = torch.exp(x), torch.exp(-x)
    return (up - down) / (up + down)


def keras_hard_sigmoid(x: Tensor) -> Tensor:
    """A gate by Keras' hard sigmoid."""
    return x * torch.clamp(0.2 * x + 0.5, 0.0, 1.0)


def excite(x: Tensor) -> Tensor:
    """A gate by MobileNetV3's hard sigmoid."""
    return x * (torch.nn.functional.relu6(x + 3.0) / 6.0)


def row_range(x: Tensor) -> Tensor:
    """Scaling to a row's range, its minimum by a maximum."""
    low, high = -torch.amax(-x, dim=-1, keepdim=True), torch.amax(x, dim=-1, keepdim=True)
    return (x - low) / (high - low)


def relu_by_where(x: Tensor) -> Tensor:
    """A rectifier by a comparison."""
    return torch.where(x > 0, x, torch.zeros_like(x))


def double_hinge(x: Tensor) -> Tensor:
    """Two hinges, as calibration layers have them."""
    return torch.relu(1.0 - x) - torch.relu(-1.0 - x)


class Masked(nn.Module):
    """Attention of one head whose scores are masked in one of many ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.project = nn.Linear(_WIDTH, 3 * _WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend."""
        q, k, v = self.project(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / _WIDTH**0.5
        kept = mask[:, None, :]
        match self.way:
            case "additive":
                scores = scores + (1.0 - kept) * -10000.0
            case "where":
                scores = torch.where(kept == 0, torch.full_like(scores, -1e9), scores)
            case "product":
                scores = scores * kept - 1e9 * (1.0 - kept)
            case "twice":
                valid = (kept > 0) & (kept.transpose(-1, -2) > 0)
                scores = scores.masked_fill(~valid, -1e9)
        weights = torch.softmax(scores, dim=-1)
        if self.way == "after":
            weights = weights * kept
            weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-6)
        return weights @ v


class Normalized(nn.Module):
    """Layers with a norm written by hand."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.layers = nn.ModuleList(nn.Linear(_WIDTH, _WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Apply them."""
        for layer in self.layers:
            x = layer(x)
            match self.way:
                case "unit":
                    x = x / torch.sqrt((x * x).sum(-1, keepdim=True))
                case "clamped":
                    x = x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)
                case "standard":
                    x = (x - x.mean(-1, keepdim=True)) / (
                        x.std(-1, keepdim=True, unbiased=False) + 1e-5
                    )
                case "peak":
                    x = x / (x.abs().amax(-1, keepdim=True) + 1e-6)
                case "softmax":
                    shifted = x - x.amax(-1, keepdim=True)
                    x = shifted.exp() / shifted.exp().sum(-1, keepdim=True)
                case "logsumexp":
                    x = torch.log(torch.softmax(x, -1) + 1e-9)
        return x


ACTIVATIONS = (
    crelu_both, hard_swish_by_hand, hard_shrink, soft_shrink, leaky_by_where, leaky_by_max, celu_by_hand,
    star_relu, squareplus, soft_cap, hard_tanh_by_relu, log_sigmoid_gate, tanh_by_sigmoid, bent, softsign,
    threshold_by_mask, clipped_residual, parametric, complement_gate, relu_by_abs, sigmoid_by_tanh,
    sigmoid_by_exp, tanh_by_exp, keras_hard_sigmoid, excite, row_range, relu_by_where, double_hinge,
)  # fmt: skip
MASKS = ("additive", "where", "product", "twice", "after")
NORMS = ("unit", "clamped", "standard", "peak", "softmax", "logsumexp")


def classifiers() -> dict[str, tuple[nn.Module, int]]:
    """Return networks of timm with the opset that they are written in: the one before HardSwish.

    Two have their gates as Keras' application of MobileNetV3 writes them.
    """
    import timm

    names = ("lcnet_050", "mobilenetv3_small_050", "hardcorenas_a", "mobilenetv3_large_100")
    networks = {f"{name}_13": (timm.create_model(name), 13) for name in names}
    for name in ("mobilenetv3_small_050", "lcnet_050"):
        network = timm.create_model(name)
        for parent in list(network.modules()):
            for key, child in list(parent.named_children()):
                if isinstance(child, nn.Hardswish) or type(child).__name__ == "HardSwish":
                    setattr(parent, key, Act(hard_swish_by_hand))
                elif type(child).__name__ in ("Hardsigmoid", "HardSigmoid"):
                    setattr(parent, key, Act(lambda x: f.relu6(x + 3.0) / 6.0))
        networks[f"{name}_keras"] = network, 17
    return networks


def main(folder: Path) -> None:
    """Write all."""
    torch.manual_seed(0)
    x = torch.randn(_ROWS, _WIDTH)
    models: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
        function.__name__: (perceptron(function), (x,)) for function in ACTIVATIONS
    }
    sequence, mask = torch.randn(2, _LENGTH, _WIDTH), torch.ones(2, _LENGTH)
    mask[:, _LENGTH // 2 :] = 0
    models |= {f"mask_{way}": (Masked(way), (sequence, mask)) for way in MASKS}
    models |= {f"norm_{way}": (Normalized(way), (x,)) for way in NORMS}
    warnings.simplefilter("ignore")
    opsets = dict.fromkeys(models, 17)
    for name, (network, opset) in classifiers().items():
        models[name], opsets[name] = (network, (torch.randn(1, 3, 96, 96),)), opset
    for name, (module, inputs) in models.items():
        path = folder / f"{name}.onnx"
        names = ["x", "mask"][: len(inputs)]
        torch.onnx.export(
            module.eval(), inputs, str(path), input_names=names, output_names=["y"], dynamo=False,
            opset_version=opsets[name],
        )  # fmt: skip
        arrays = {f"0/{key}": value.numpy() for key, value in zip(names, inputs, strict=True)}
        np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
