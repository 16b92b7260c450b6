"""How a world is grown otherwise than saturation would grow it, so that it holds other graphs."""

from __future__ import annotations

from relational_tensat.base.records import record


@record
class Variation:
    """What a node limit keeps out of a world, and what it lets in.

    Attributes:
        order: a seed: applications of multi-pattern rules come in a random order; None: of each rule,
            those of the youngest classes first.
        multi_share: of the room that is left in the world, the part that multi-pattern rules may take in
            an iteration; what then becomes of single-pattern rules is not looked at. None: as saturation
            has it (``node_budgets``).
        multi_iterations: iterations in which multi-pattern rules take part, each but the first once
            single-pattern rules have nothing left to add; None: as the options have it.
    """

    order: int | None = None
    multi_share: float | None = None
    multi_iterations: int | None = None


#: As saturation grows it.
PLAIN = Variation()
