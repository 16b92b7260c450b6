"""Weights that prove something: what a library leaves constant is drawn, by a seed.

A norm's scale that stays 1, a bias or a running mean that stays 0, would make many a wrong rewrite come
out right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

#: Of weights, of what quantization is calibrated on, and of what results are compared on.
WEIGHT_SEED, CALIBRATION_SEED, INPUT_SEED = 20261122, 1000, 2000

_LOW, _HIGH = 0.5, 1.5
_BIAS = 0.1


def seed_weights(module: nn.Module) -> None:
    """Draw each parameter and running statistic of one value again: scales, biases, means, variances.

    Others keep what the library drew, which it has chosen for the depth of its networks.
    """
    generator = torch.Generator().manual_seed(WEIGHT_SEED)
    with torch.no_grad():
        for tensor in _learned(module):
            if (
                tensor.is_floating_point()
                and tensor.numel() > 1
                and bool((tensor == tensor.flatten()[0]).all())
            ):
                tensor.copy_(_drawn_like(tensor, generator))


def settle_norms(module: nn.Module, example: Sequence[Tensor]) -> None:
    """Set running means and variances to those of an example's values, as training leaves them.

    With drawn ones, signals vanish in deep networks: outputs then hardly depend on inputs, and a result
    that ignores these would pass. The example needs more than one image.
    """
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches: of this one
        norm.train()
    with torch.no_grad():
        module(*example)
    for norm in norms:
        norm.eval()


def _learned(module: nn.Module) -> Iterator[Tensor]:
    yield from module.parameters()
    for name, buffer in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            yield buffer


def _drawn_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Return values around 0 for zeros, else between 0.5 and 1.5.

    Layer scales begin at 1e-6: kept so small, nothing of their branch would be seen in an output.
    """
    if bool((tensor == 0).all()):
        return _BIAS * torch.randn(tensor.shape, generator=generator)
    return _LOW + (_HIGH - _LOW) * torch.rand(tensor.shape, generator=generator)
