"""The description of a μGraph's operator (levels, dims, meaning), and operators that move nothing.

These give other names to the same elements, or to a part of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.arithmetic import Arithmetic, Labelled
from relational_tensat.mugraph.graph.dims import (
    Dim,
    Dims,
    Window,
    checked,
    count,
    size_of,
    variables,
    without,
)
from relational_tensat.mugraph.graph.mugraph import Operation
from relational_tensat.tensor.types import Attrs

#: The levels: a whole device, a thread block, a thread.
LEVELS = ("kernel", "block", "thread")


class MuOperator(ABC):
    """A pre-defined operator at some levels. Stateless: one instance serves all."""

    name: str
    arity: ClassVar[int] = 1
    levels: ClassVar[tuple[str, ...]] = LEVELS
    #: The names of its attributes, each of which must be given.
    attrs: ClassVar[tuple[str, ...]] = ()
    #: Those of others that may be given.
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims of the result.

        Raises:
            ShapeError: the operands do not fit.
        """

    @abstractmethod
    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Return the result; operands may have further labels (blocks, iterations), which are kept."""

    def parts(self, step: Operation) -> Sequence[Operation]:
        """Return operations that compute the same, the last one its result; none where searches know it.

        Other results have names that begin with that of its result and a space. So an operator of
        somebody's own is searched, and made code of.
        """
        return ()

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return the number of arithmetic operations; one per element of the largest tensor."""
        return max(count(dims) for dims in (*operands, result))


def names(attrs: Attrs, attr: str) -> tuple[str, ...]:
    """Return an attribute that is a list of index variables.

    Raises:
        ShapeError: it is not one.
    """
    value = attrs[attr]
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise ShapeError(f"{attr}: expected a list of index variables, not {value!r}")
    return cast(tuple[str, ...], value)


def require(name: str, needed: Sequence[str], dims: Dims) -> None:
    """Check that dims carry some variables.

    Raises:
        ShapeError: one is missing.
    """
    for variable in needed:
        if variable not in variables(dims):
            raise ShapeError(
                f"{name}: no dim carries {variable!r}, but {', '.join(variables(dims))}"
            )


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
        return operands[0].renamed(str(attrs["variable"]), str(attrs["into"]))


class MuSplit(View):
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
        parts = [(part.variable, part.size) for part in self._parts(attrs)]
        return operands[0].split(str(attrs["variable"]), parts)

    @staticmethod
    def _parts(attrs: Attrs) -> Dims:
        sizes = cast(tuple[int, ...], attrs["sizes"])
        return tuple(map(Dim, names(attrs, "into"), sizes))


class MuMerge(View):
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
        return operands[0].merged(names(attrs, "variables"), str(attrs["into"]))


class MuRepeat(View):
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
        return operands[0].repeated(str(attrs["variable"]), cast(int, attrs["size"]))


class WindowOf(View):
    """A part of a tensor, by other index variables: see ``Window``.

    Of a program's input it is a load's, so nothing is computed of what is left out. Within a block it is of
    a tile; no search proposes that, Mirage's files have it.
    """

    name = "window"
    attrs = ("variables", "into", "sizes", "offset", "step", "first", "last")
    optional = ("strides",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with those that are taken."""
        return Window.of(attrs).dims(operands[0])

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        return Window.of(attrs).taken(operands[0])


#: One of each.
VIEWS: tuple[MuOperator, ...] = (Rename(), MuSplit(), MuMerge(), MuRepeat(), WindowOf())
