"""How long and with what the exact extractor may work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from relational_tensat.base.watch import Watch
from relational_tensat.extract.techniques import Techniques

Progress = Callable[[float, float], None]


@dataclass
class Work:
    """What HiGHS has done in all runs that share it: exact counts, equal for equal inputs.

    Attributes:
        simplex_iterations: of all linear programs, those within integer programs included.
        branch_nodes: of all integer programs.
    """

    simplex_iterations: int = 0
    branch_nodes: int = 0


@dataclass(frozen=True)
class SolverOptions:
    """How long and with what HiGHS may work.

    Attributes:
        watch: when it must stop; shares Ctrl-C with the run's.
        threads: worker threads.
        seed: of its randomised heuristics.
        techniques: which reductions and cuts to use.
        work: counts what HiGHS does for all that share these options.
        cycles: how cycles are kept out of the integer programs of components, of ``ordering.WITHIN``.
        is_neighbourhood: whether most of a choice is fixed in what is searched.
    """

    watch: Watch = field(default_factory=Watch)
    threads: int = 1
    seed: int = 0
    techniques: Techniques = field(default_factory=Techniques)
    work: Work = field(default_factory=Work)
    cycles: str = "auto"
    is_neighbourhood: bool = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, not negative."""
        return self.watch.seconds_left

    @property
    def exhausted(self) -> bool:
        """Whether the time is over or a stop was requested."""
        return self.watch.is_over

    def for_share(self, fraction: float) -> SolverOptions:
        """Return the same for a step that may take this fraction of the time that is left."""
        return replace(self, watch=self.watch.share(fraction))

    def check(self) -> None:
        """Go no further if the time is over.

        Raises:
            OutOfTimeError: it is, or someone wants to stop.
        """
        self.watch.check_time()
