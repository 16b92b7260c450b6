"""Equal parts of a graph with their kernel, and what both take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.fusion.kernel_builder import kernel_rule
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.rules.model import Apply, Literal
from relational_tensat.tensor import Graph, Node

#: A time that is not less than a session's own is at least this: a call.
_NOTHING_US = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class TimedPart:
    """Equal parts of a graph, and their kernel.

    Attributes:
        places: where in the graph.
        nodes: the node of the kernel in each.
        kernel: the kernel that computes them.
        kernel_us, plain_us: the time of one with the kernel, and without; a session's own time is in both.
        session_us: that time.
        plain: one of them, without its kernel.
    """

    places: tuple[KernelCandidate, ...]
    nodes: tuple[Node, ...]
    kernel: OwnKernel
    kernel_us: float
    plain_us: float
    session_us: float
    plain: Graph

    @property
    def share(self) -> float:
        """The kernel's time as a part of that of the replaced nodes."""
        without_us = max(self.plain_us - self.session_us, _NOTHING_US)
        return max(self.kernel_us - self.session_us, _NOTHING_US) / without_us


def node_of(place: KernelCandidate, key: str) -> Node:
    """Return a kernel's node in the place of a part."""
    target = cast(Apply, cast(Apply, kernel_rule(place, key, "part").targets[0]).children[0])
    attrs = {name: cast(Literal, value).value for name, value in target.attrs}
    return Node("fused", place.inputs, place.outputs, attrs)
