"""Who follows an exploration, and may end it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from relational_tensat.base.records import record
from relational_tensat.base.watch import Watch
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.outcome import IterationReport


@record
class Observer:
    """What is called between iterations, and the watch that may end them.

    Attributes:
        progress: called after every iteration.
        until: asked after every iteration whether the e-graph has what is looked for (the stop reason
            ``goal``).
        after: called with its index after every iteration that another one follows; what it returns
            is a reason to stop there. Its time counts as exploration's.
        watch: the run's. Ctrl-C ends the exploration, and nothing else of the run.
    """

    progress: Callable[[IterationReport], None] | None = None
    until: Callable[[EGraph], bool] | None = None
    after: Callable[[int], str | None] | None = None
    watch: Watch = field(default_factory=Watch)
