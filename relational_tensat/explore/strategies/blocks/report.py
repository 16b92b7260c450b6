"""What exploring by blocks did, as it is reported."""

from __future__ import annotations

from relational_tensat.base.records import record


@record
class BlocksReport:
    """How a graph was explored by its recurring blocks.

    Attributes:
        blocks, distinct: blocks that recur, and how many of them are different.
        places: windows of two consecutive segments that the graph is covered with.
        explored: windows that are different: those that were explored.
        copied: e-nodes that were copied into the e-graph, equal ones counted once.
        explore_s, copy_s: wall seconds of exploring the different windows, and of copying.
    """

    blocks: int
    distinct: int
    places: int
    explored: int
    copied: int
    explore_s: float
    copy_s: float

    @property
    def text(self) -> str:
        """What is reported of it, in a line."""
        return (
            f"blocks: explored {self.distinct} distinct of {self.blocks}"
            f" ({self.explored} of {self.places} pairs of neighbours), reused: {self.copied} e-nodes copied"
        )
