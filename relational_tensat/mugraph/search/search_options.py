"""What can be chosen for a search of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.option import OptionGroup, option


@dataclass(frozen=True, slots=True)
class SearchOptions(OptionGroup):
    """How far a search goes; the defaults of the paper (section 7.2).

    Attributes:
        max_operators: of a block: what it computes between loads and stores, each once.
        max_kernels: of a μGraph.
        concatenate: without, a loop traverses what is summed; the grid splits the rest.
        raw_exp: else a μGraph whose exponentials cannot be made stable is refused.
        time_limit_s: wall seconds; None for no limit. The best so far is returned then.
    """

    max_operators: int = option(7, "operators in a block at most", metavar="N", minimum=1)
    max_kernels: int = option(2, "kernels at most", metavar="N", minimum=1)
    time_limit_s: float | None = option(None, "seconds of search", metavar="S")
    concatenate: bool = option(
        False, "loops over variables that are not summed, too, whose results are concatenated"
    )
    raw_exp: bool = option(
        False,
        "exponentials as they are, which overflow, where no maximum may be subtracted or even so",
    )
    seed: int = option(0, "of the random tests", metavar="N")
