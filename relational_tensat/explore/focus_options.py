"""What can be chosen for a search by focus."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import OptionGroup, option


def _check_part(part: float) -> None:
    if part > 1:
        raise UsageError(f"unexcluded = {part}, expected a part: at most 1")


@dataclass(frozen=True, slots=True)
class FocusOptions(OptionGroup):
    """When a search by focus starts again, and from what.

    Attributes:
        restarts: at each width, the search ends after so many restarts in a row that found nothing
            cheaper; four are one of each kind (the original graph twice, that beside the cheapest, the
            cheapest with more iterations of multi-pattern rules).
        seed_graphs: a world is grown from the graph that was chosen, and from so many in all with the
            cheapest of other costs beside it.
        temperature: restarts that go on from a graph take the last one that a restart ended with, if it
            is cheaper; one dearer by d % with the probability exp(-d / temperature). It falls by a fifth
            with each restart. 0: they go on from the cheapest.
        unexcluded: a world is grown from e-nodes beside the graph, too, which no bound excludes from one
            as cheap: what is nearest to the bound first, up to this part of the room that is left in it.
    """

    restarts: int = option(
        4,
        "a search by focus ends after so many restarts in a row that found nothing cheaper",
        metavar="N",
        minimum=0,
    )
    seed_graphs: int = option(
        1,
        "a search by focus grows worlds from so many of the cheapest graphs",
        metavar="K",
        minimum=1,
    )
    temperature: float = option(
        0.0,
        "a search by focus goes on from graphs dearer by some such %, too, less and less; 0: never",
        metavar="PERCENT",
    )
    unexcluded: float = option(
        0.0,
        "a search by focus grows worlds from what no bound excludes from a graph as cheap, too, up to this "
        "part of their room; 0: never",
        metavar="PART",
        check=_check_part,
    )
