"""What can be chosen for an exploration."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import OptionGroup, option
from relational_tensat.explore.schedule.plan_text import parse_schedule


def _check_schedule(text: str) -> None:
    if text:
        parse_schedule(text)


#: E-nodes of the first worlds of a search, as in the TENSAT+MCTS paper (section 5); and of focus's for each
#: e-node of the original graph, where that is more.
_WORLD_NODES, _ROOM = 2_000, 5


@dataclass(frozen=True, slots=True)
class ExplorationOptions(OptionGroup):
    """What ends an exploration, and how it proceeds until then.

    Attributes:
        multi_iterations: TENSAT's k_multi.
        multi_schedule: the ``first`` iterations, as in TENSAT; or (``saturated``) the first and then each
            time that single-pattern rules have nothing left to add, so that more of them only ever add to
            the e-graph of fewer.
        schedule: which rules take part in which iterations, instead of the two above: see
            ``explore.schedule``. Exploration ends with it.
        node_limit: holds at any moment; of a search, in each of its worlds.
        time_limit_s: wall seconds; None for no limit.
        cycle_filter: ``efficient`` (height labels, then a search where they are violated), ``vanilla``
            (TENSAT's first method: all descendants recomputed before each multi-pattern application) or
            ``none``.
        search: what decides what is grown. ``saturation``: one e-graph. ``auto``: the same; where
            ``node_limit`` ends it, or ``iterations`` that are no fewer than by default, ``focus`` goes on
            from there within the time limit (in ``explore``, which has no costs, nothing goes on).
            ``focus``: worlds, parts of one universe, from the original graph and from the cheapest found
            in the world before; it extracts from each, so it needs costs. ``focus-mcts``: the same; once
            the first width's restarts find nothing, a tree search of the same universe follows, within half
            of the time that is left, then focus from the graph that it found. ``mcts``: worlds of a
            tree of rules, by which it decides what to apply next to the real one. It needs costs, too.
        world_nodes: the first worlds of a search have no more e-nodes, later ones of ``focus`` twice as
            many each time, up to ``node_limit``; see ``first_world_nodes`` for where none is given.
        universe_limit: of all worlds of a search together.
        restarts: at each width, a search by focus ends after so many restarts in a row that found nothing
            cheaper; four are one of each kind (the original graph twice, that beside the cheapest, the
            cheapest with more iterations of multi-pattern rules).
    """

    iterations: int = option(15, "at most so many iterations", metavar="N")
    multi_iterations: int = option(
        1, "iterations in which multi-pattern rules take part", metavar="N"
    )
    multi_schedule: str = option("first", "when multi rules match", choices=("saturated", "first"))
    schedule: str = option(
        "",
        "which rules take part in which iterations: saturate(single); repeat 2 (multi; saturate(single))",
        metavar="TEXT",
        default_text="all, by the two above",
        check=_check_schedule,
    )
    node_limit: int = option(50_000, "at most so many e-nodes", metavar="N", minimum=1)
    time_limit_s: float | None = option(
        60.0,
        "seconds of exploration",
        metavar="S",
        default_text="60, or 8 in runs with measured costs",
    )
    cycle_filter: str = option(
        "efficient", "how cycles are kept out", choices=("efficient", "vanilla", "none")
    )
    search: str = option(
        "auto",
        "what decides what is grown; auto: saturation, and focus where --node-limit or 15 iterations "
        "ended it; focus: worlds, each from the cheapest graph of the one before; focus-mcts: the same, "
        "and a tree search where that finds nothing more; mcts: worlds of a tree of rules",
        choices=("saturation", "auto", "focus", "focus-mcts", "mcts"),
    )
    world_nodes: int | None = option(
        None,
        "at most so many e-nodes in the first worlds of a search, then twice as many, up to --node-limit",
        metavar="N",
        minimum=1,
        default_text="2000, and in a search by focus at least 5 for each of the model",
    )
    universe_limit: int = option(
        50_000, "at most so many e-nodes in all worlds of a search together", metavar="N", minimum=1
    )
    restarts: int = option(
        4,
        "a search by focus ends after so many restarts in a row that found nothing cheaper",
        metavar="N",
        minimum=0,
    )

    def __post_init__(self) -> None:
        """Check all values.

        Raises:
            UsageError: a value does not exist or cannot be; names the nearest.
        """
        OptionGroup.__post_init__(self)
        default = {"multi_iterations": 1, "multi_schedule": "first"}
        for name in default if self.schedule else ():
            if getattr(self, name) != default[name]:
                raise UsageError(
                    f"schedule and {name} = {getattr(self, name)}, expected one of the two"
                )
        if self.is_search:
            self._check_search()

    @property
    def is_search(self) -> bool:
        """Whether costs decide what is grown."""
        return self.search not in ("saturation", "auto")

    def first_world_nodes(self, n_original: int = 0) -> int:
        """Return how many e-nodes the first worlds of a search have at most.

        Args:
            n_original: e-nodes of the original graph, where worlds must have room beside these: a decoder
                of 24 layers has 891, and one of 2,000 ends after two iterations.
        """
        width = self.world_nodes or max(_WORLD_NODES, _ROOM * n_original)
        return min(width, self.node_limit)

    def _check_search(self) -> None:
        cannot = {"schedule": bool(self.schedule), "cycle_filter": self.cycle_filter == "vanilla"}
        for name in (name for name, is_given in cannot.items() if is_given):
            raise UsageError(
                f"search = {self.search} and {name} = {getattr(self, name)}, expected one of the two"
            )
