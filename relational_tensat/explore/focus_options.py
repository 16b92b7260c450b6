"""What can be chosen for a search by focus."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.option import OptionGroup, option


@dataclass(frozen=True, slots=True)
class FocusOptions(OptionGroup):
    """When a search by focus starts again, and from what.

    Attributes:
        restarts: at each width, the search ends after so many restarts in a row that found nothing
            cheaper.
    """

    restarts: int = option(
        3,
        "a search by focus ends after so many restarts in a row that found nothing cheaper",
        metavar="N",
        minimum=0,
    )
