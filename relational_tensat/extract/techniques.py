"""What the exact extractor does beyond its integer program: by name, each can be switched off.

Without any of them the optimum is the same; what they are worth is how long it takes to prove it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relational_tensat.extract.exact.reduce.reduced import Reduced
    from relational_tensat.extract.problem import ExtractionProblem

REDUCTION_MEANINGS: dict[str, str] = {
    "unreachable": "drop classes that the root does not reach",
    "underivable": "drop e-nodes without an acyclic derivation",
    "self-loops": "drop e-nodes that need their own class, or the root's",
    "free-classes": "settle classes that can be had for nothing",
    "single-free": "replace a class of one free e-node by that e-node's children",
    "dominated": "drop e-nodes beside which another is as cheap and needs no more",
    "single-parents": "merge a class of one e-node into the only e-node that needs it",
    "single-users": "merge a class of several e-nodes into the class of the only one that needs it",
    "dominated-classes": "drop classes in whose place another can always stand",
    "pass-through": "reach past classes that only stand between; drop what is dominated then",
    "dear": "drop e-nodes dearer than a whole derivation of their class",
    "must": "drop e-nodes that need a class which needs theirs; take those that come anyway for free",
    "detours": "drop classes that do again, with more, what is over by then",
    "pinning": "let the root need what every choice contains, and take the rest apart",
    "reduced-costs": "drop e-nodes that the relaxation's duals rule out",
}
OTHER_MEANINGS: dict[str, str] = {
    "two-cycles": "rows against circles of two classes",
    "must-rows": "rows for classes that come with others",
    "landmarks": "rows for e-nodes of which one must be taken",
    "ascent": "landmarks that share no cost: a bound without solver, and rows to begin with",
    "rounding": "derive choices from what the relaxation chooses",
    "neighbourhoods": "search in parts of large e-graphs first: local improvement",
    "twins": "search pieces that are equal up to names once",
    "covers": "greedy choices in which several classes pay together",
}
TECHNIQUES: tuple[str, ...] = (*REDUCTION_MEANINGS, *OTHER_MEANINGS)

#: What may end when its time is spent, before it has found anything.
_MAY_END_EARLY = frozenset({"dominated-classes"})


@dataclass
class Techniques:
    """Which techniques are used, and what the reductions among them took away.

    Attributes:
        without: the names of those left out.
        dropped: e-nodes that each reduction took away, by its name.
        whole, left: numbers of e-nodes, e-classes and edges before any reduction, and in all
            pieces together that the first round of reductions left.
        in_vain: the names of the reductions that have found nothing in an e-graph, as long as it lives.
    """

    without: frozenset[str] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    whole: tuple[int, int, int] = (0, 0, 0)
    left: tuple[int, int, int] = (0, 0, 0)
    in_vain: WeakKeyDictionary[Reduced, set[str]] = field(default_factory=WeakKeyDictionary)

    def uses(self, name: str) -> bool:
        """Whether a technique is used."""
        return name not in self.without

    def apply(
        self, name: str, reduction: Callable[[Reduced], Reduced], reduced: Reduced
    ) -> Reduced:
        """Carry out a reduction unless it is left out, and count what it took away.

        One that has found nothing in an e-graph will find nothing in it again.
        """
        if not self.uses(name) or name in self.in_vain.get(reduced, ()):
            return reduced
        after = reduction(reduced)
        if after is reduced and name not in _MAY_END_EARLY:
            self.in_vain.setdefault(reduced, set()).add(name)
        gone = reduced.problem.n_nodes - after.problem.n_nodes
        if gone > 0:
            self.dropped[name] += gone
        return after

    def measure(self, whole: ExtractionProblem, pieces: Sequence[ExtractionProblem]) -> None:
        """Remember the sizes before and after; only the first call counts."""
        if self.whole == (0, 0, 0):
            self.whole = size_of([whole])
            self.left = size_of(pieces)

    def add_copies(self, other: Techniques, count: int) -> None:
        """Count what was done to one of so many pieces that are alike for each of them."""
        for name, gone in other.dropped.items():
            self.dropped[name] += count * gone
        e_nodes, classes, edges = (
            own + count * each for own, each in zip(self.left, other.left, strict=True)
        )
        self.left = (e_nodes, classes, edges)


def size_of(problems: Sequence[ExtractionProblem]) -> tuple[int, int, int]:
    """Return the numbers of e-nodes, e-classes and edges of e-graphs together."""
    return (
        sum(each.n_nodes for each in problems),
        sum(each.n_classes for each in problems),
        sum(len(each.child_idx) for each in problems),
    )
