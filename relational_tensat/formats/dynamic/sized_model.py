"""A model at several sizes of its dynamic dimensions: the same graph, with other numbers in it.

Shapes that are computed are known once sizes are, so they are folded as in any model. What of them is a
tensor that nodes take (positions, masks, a shape for an operator that is not understood) differs from size
to size: such values are further inputs of the graph, whose values are known at each size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from relational_tensat.base.errors import InputError
from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from relational_tensat.formats.dynamic.expressions import Quotient, Sizes
from relational_tensat.formats.onnx_read import read_in_full
from relational_tensat.tensor import Array, Graph, Weight


class SizeError(InputError):
    """A model is another graph at other sizes, or has no dynamic form.

    Attributes:
        base: the model at the sizes to optimize at, where it could be read.
    """

    base: Graph | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SizedGraph:
    """A model at given sizes.

    Attributes:
        graph: values computed from sizes alone are inputs after its own, ``computed`` by name.
        constants: the values that are known before inference, those that no node takes included.
        fitting: values of inputs that the model does not run without at these sizes.
    """

    sizes: Sizes
    graph: Graph
    computed: Mapping[str, Array]
    constants: Mapping[str, Weight]
    fitting: Mapping[str, Array]

    @property
    def known_inputs(self) -> Mapping[str, Array]:
        """What is not drawn."""
        return {**self.computed, **self.fitting}


@dataclass(frozen=True, slots=True, eq=False)
class DynamicModel:
    """A model with dynamic dimensions, read at several sizes.

    Attributes:
        path: its file.
        frame: its ONNX graph, its local functions in place; large initializers have placeholders.
        data: what these stand for, by name.
        base: at the sizes that it is optimized at.
        others: the same graph at other sizes, 1 among them where the model allows it.
        chosen: the symbols whose sizes were given.
        notes: sizes at which it is another graph, or none, and which dimensions are taken to be equal.
        quotients: of sizes, those that occur in shapes of the graph.
        overridable: inputs with a default value that stay inputs.
    """

    path: Path
    frame: onnx.ModelProto
    data: Mapping[str, memoryview]
    dimensions: DynamicDimensions
    base: SizedGraph
    others: tuple[SizedGraph, ...]
    chosen: frozenset[str]
    notes: tuple[str, ...]
    quotients: tuple[Quotient, ...]
    overridable: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[SizedGraph, ...]:
        """The model at the base sizes, then at the others."""
        return (self.base, *self.others)

    def at(self, sizes: Sizes) -> Graph:
        """Return the model at any sizes, as a graph of its own.

        Raises:
            InputError: it is not valid at these.
        """
        copy = onnx.ModelProto()
        copy.CopyFrom(self.frame)
        dims, where = self.dimensions.at(sizes), str(self.path)
        return read_in_full(copy, dims, where, self.data, overridable=self.overridable).graph


def text_of(sizes: Sizes) -> str:
    """Return sizes as they are written after ``--dim``."""
    return ",".join(f"{symbol}={size}" for symbol, size in sizes.items())
