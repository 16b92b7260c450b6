"""The interface that every source of costs has, analytic or measured."""

from __future__ import annotations

from typing import Protocol

from relational_tensat.tensor import Attrs, ValueType


class CostModel(Protocol):
    """Says how long one application of an operator takes.

    A model knows nothing of graphs: that values which depend on weights only cost nothing is the
    graph's business (see ``graph_cost_us``).
    """

    @property
    def name(self) -> str:
        """How reports call this source of costs."""

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        """Return the microseconds of one kernel: finite, not negative, 0 where none is launched.

        Args:
            op: the operator's name.
            inputs: the types of its operands.
            output: the type of its result; a tuple for an operator of several outputs.
            attrs: its attributes; those left out have their defaults.

        Raises:
            UsageError: there is no such operator.
        """
