"""Operators that move nothing: other names of the same elements, or of a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.arithmetic import Arithmetic
from relational_tensat.mugraph.graph.described import MuOperator, names, require
from relational_tensat.mugraph.graph.dims import (
    Dim,
    Dims,
    checked,
    count,
    size_of,
    without,
)
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.labelled import Labelled
from relational_tensat.tensor.types import Attrs


class View(MuOperator):
    """Moves nothing: other names of the same elements."""

    levels: ClassVar[tuple[str, ...]] = ("kernel", "block")

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return none."""
        return 0


class Rename(View):
    """Another name of an index variable."""

    name = "rename"
    attrs = ("variable", "into")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the new name."""
        old, new = str(attrs["variable"]), str(attrs["into"])
        require(self.name, [old], operands[0])
        dims = (Dim(new, d.size) if d.variable == old else d for d in operands[0])
        return checked(tuple(dims), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Rename."""
        return operands[0].renamed(str(attrs["variable"]), str(attrs["into"]))


class Split(View):
    """One index variable as several (names ``into``, of sizes ``sizes``), the slowest first."""

    name = "split"
    attrs = ("variable", "into", "sizes")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the parts in the variable's place."""
        old, parts = str(attrs["variable"]), self._parts(attrs)
        require(self.name, [old], operands[0])
        dims: list[Dim] = []
        for dim in operands[0]:
            dims.extend(parts if dim.variable == old else [dim])
        if count(parts) != size_of(operands[0], old):
            raise ShapeError(
                f"split: {old} has {size_of(operands[0], old)} values, not {count(parts)}"
            )
        return checked(tuple(dims), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Reshape."""
        parts = [(part.variable, part.size) for part in self._parts(attrs)]
        return operands[0].split(str(attrs["variable"]), parts)

    @staticmethod
    def _parts(attrs: Attrs) -> Dims:
        sizes = cast(tuple[int, ...], attrs["sizes"])
        return tuple(map(Dim, names(attrs, "into"), sizes))


class Merge(View):
    """Several index variables as one (``into``), the first the slowest."""

    name = "merge"
    attrs = ("variables", "into")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the whole in the end."""
        merged = names(attrs, "variables")
        require(self.name, merged, operands[0])
        size = count(tuple(dim for dim in operands[0] if dim.variable in merged))
        return checked((*without(operands[0], merged), Dim(str(attrs["into"]), size)), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Reshape."""
        return operands[0].merged(names(attrs, "variables"), str(attrs["into"]))


class Repeat(View):
    """The same elements for each value of a new index variable."""

    name = "repeat"
    attrs = ("variable", "size")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims and the new one."""
        new = Dim(str(attrs["variable"]), cast(int, attrs["size"]))
        return checked((*operands[0], new), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Broadcast."""
        return operands[0].repeated(str(attrs["variable"]), cast(int, attrs["size"]))


class WindowOf(View):
    """A part of a tensor, by other index variables: see ``Window``.

    Of a program's input it is a load's, so nothing is computed of what is left out. Within a block it is of
    a tile; no search proposes that, Mirage's files have it.
    """

    name = "window"
    attrs = ("variables", "into", "sizes", "offset", "step", "first", "last")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with those that are taken."""
        return Window.of(attrs).dims(operands[0])

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Take them."""
        return Window.of(attrs).taken(operands[0])


#: One of each.
VIEWS: tuple[MuOperator, ...] = (Rename(), Split(), Merge(), Repeat(), WindowOf())
