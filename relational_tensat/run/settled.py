"""What a run has chosen that another one repeats."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.explore.members import Seed


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """The choice of a run before, in the e-graph of this one.

    Attributes:
        digest: hash of its graph.
        without, is_by_profile: as of the candidate that it was.
        is_dearer: it cost more than the original by the sums.
    """

    digest: str
    seed: Seed
    without: tuple[str, ...]
    is_by_profile: bool
    is_dearer: bool
