"""What is described of an operator of μGraphs: levels, dims, meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.arithmetic import Arithmetic
from relational_tensat.mugraph.graph.dims import Dims, count, variables
from relational_tensat.mugraph.graph.labelled import Labelled
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
        ShapeError: it is none.
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
