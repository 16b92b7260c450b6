"""Runs on inputs of which those that are masks have rows that are masked, wholly and in part."""

from __future__ import annotations

from collections.abc import Container, Mapping

from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.mask_inputs import MaskInput, find_masks


class Masking:
    """What masks of a graph have in runs of their own.

    Args:
        given: names of inputs that stay as they are.

    Attributes:
        label: what is masked in these runs, for reports.
    """

    def __init__(self, graph: Graph, given: Container[str]) -> None:
        masks = find_masks(graph)
        self._masks: dict[str, MaskInput] = {
            name: mask for name, mask in masks.items() if name not in given
        }
        names = ", ".join(map(repr, self._masks)).replace(":", "/")  # one ends what is compared
        self.label = f"rows of {names}"

    def runs(self, inputs: Mapping[str, Array]) -> list[dict[str, Array]]:
        """Return inputs with rows masked, until each mask had rows of all sorts; none without masks.

        Args:
            inputs: what all other inputs have, and kept elements of masks that are added.
        """
        draws = {
            name: list(mask.draws(inputs[name], first=number))
            for number, (name, mask) in enumerate(self._masks.items())
        }
        return [
            {**inputs, **{name: few[run % len(few)] for name, few in draws.items()}}
            for run in range(max(map(len, draws.values()), default=0))
        ]
