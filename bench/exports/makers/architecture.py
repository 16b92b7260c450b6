"""An architecture: a module that takes tensors in order, and how inputs for it are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor, nn

#: Draws inputs by name, in order, at sizes of the dynamic dimensions; none are given for fixed models.
Draw = Callable[[Generator, Mapping[str, int]], dict[str, Tensor]]


@dataclass(frozen=True)
class Architecture:
    """What is exported.

    Attributes:
        module: takes the inputs in order, as ``*tensors``.
        draw: draws them.
        outputs: names of the outputs.
        dims: of an input, names of its dynamic dimensions by axis; and of outputs.
        is_float16: whether weights and inputs of floats are float16.
    """

    module: nn.Module
    draw: Draw
    outputs: Sequence[str] = ("y",)
    dims: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    is_float16: bool = False

    def in_float16(self) -> Architecture:
        """Return it with weights and inputs in float16."""
        return replace(self, module=self.module.half(), is_float16=True)

    def inputs(self, generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        """Return inputs drawn at these sizes of the dynamic dimensions."""
        values = self.draw(generator, dims)
        if not self.is_float16:
            return values
        return {n: v.half() if v.is_floating_point() else v for n, v in values.items()}


class Positional(nn.Module):
    """A module of keywords, called with tensors in order; returns tensors."""

    def __init__(
        self,
        module: nn.Module,
        names: Sequence[str],
        outputs: Callable[[Any], Any],
        **settings: Any,
    ) -> None:
        super().__init__()
        self.module = module
        self.names = tuple(names)
        self.settings = settings
        self.outputs = outputs

    def forward(self, *tensors: Tensor) -> Any:
        """Call the module; return its outputs."""
        values = dict(zip(self.names, tensors, strict=True))
        return self.outputs(self.module(**values, **self.settings))


def images(size: int, channels: int = 3) -> Draw:
    """Return how a batch of images is drawn."""

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        shape = (dims.get("batch", 1), channels, size, size)
        return {"image": torch.randn(shape, generator=generator)}

    return draw


def classifier(module: nn.Module, size: int) -> Architecture:
    """Return a network from images to classes."""
    dims = {"image": {0: "batch"}, "y": {0: "batch"}}
    return Architecture(Positional(module, ["x"], lambda y: y), images(size), dims=dims)


def text(vocabulary: int, *names: str) -> Draw:
    """Return how a batch of sentences is drawn: token ids, and a mask that hides the end of the last."""

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        shape = (dims.get("batch", 1), dims.get("sequence", 32))
        mask = torch.ones(shape, dtype=torch.int64)
        mask[-1, -shape[1] // 4 :] = 0
        values = {
            "input_ids": torch.randint(0, vocabulary, shape, generator=generator),
            "attention_mask": mask,
            "token_type_ids": torch.randint(0, 2, shape, generator=generator),
        }
        return {name: values[name] for name in names}

    return draw
