"""The options of a search of kernels; the command line reads it without NumPy."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.option import OptionGroup, option

#: Limits that keep a search small.
MEANS = ("pruning", "canonical", "merging", "variables", "reachability", "bounds")


@dataclass(frozen=True, slots=True)
class SearchOptions(OptionGroup):
    """How far a search goes; the defaults of the paper (section 7.2).

    Attributes:
        max_operators: of a block: its steps between loads and stores, each once.
        max_kernels: of a μGraph.
        on: a runner; it finds the same, and small searches stay in this process.
        libraries: operators of libraries count as kernels, and take their places where they are faster.
        disable: ``pruning`` by abstract expressions; ``canonical`` form of commutative operators;
            ``merging`` of equal terms; ``variables``, which forbid sums that the program has nothing of;
            ``reachability`` of the program from the tensors that a kernel stores; ``bounds``, which leave
            out graphs that cost more than the cheapest so far.
        time_limit_s: wall seconds; None for no limit. The best so far is returned then.
    """

    max_operators: int = option(7, "the most operators in a block", metavar="N", minimum=1)
    max_kernels: int = option(
        5, "the most kernels, with operators of libraries", metavar="N", minimum=1
    )
    time_limit_s: float | None = option(None, "seconds of search", metavar="S")
    on: str = option(
        "here", "where terms grow: here, processes:N, ray, ray:ADDRESS or slurm:N", metavar="RUNNER"
    )
    libraries: bool = option(True, "find kernels only, without operators of libraries beside them")
    disable: tuple[str, ...] = option(
        (), "leave out one of the means that keep the search small, for comparison",
        noun="means", choices=MEANS, metavar="MEANS",
    )  # fmt: skip
    seed: int = option(0, "seed of the random tests", metavar="N")
