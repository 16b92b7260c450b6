"""Techniques of the exact extractor beside its integer program: by name, each can be switched off.

Without any of them the optimum is the same; each is worth the time that it saves in the proof. Each is
declared beside the code that carries it out, with an instance on which it earns its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relational_tensat.extract.exact.reduce.smaller_problem import Reduced
    from relational_tensat.extract.problem import ExtractionProblem


@dataclass(frozen=True, slots=True)
class TechniqueGain:
    """Where a technique earns its place: there, a count is lower with it than without.

    Attributes:
        instance: name of one of ``bench.extract.kept``.
        count: ``simplex_iterations`` or ``branch_nodes`` (of HiGHS, until the proof), or
            ``e_nodes`` (left by the reductions).
    """

    instance: str
    count: str


@dataclass(frozen=True, slots=True)
class Technique:
    """Something that the exact extractor can do without.

    Attributes:
        name: the word that users type.
        effect: its effect, for people.
        earns_on: where it earns its place; None only while it is tried out.
    """

    name: str
    effect: str
    earns_on: TechniqueGain | None = None


class _Declared(Mapping[str, Technique]):
    """All declared techniques by name.

    Their first reader imports the modules that declare them; a function that only passes them on imports
    none.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Technique] = {}

    def add(self, technique: Technique) -> None:
        if technique.name in self._by_name:
            raise ValueError(f"a technique {technique.name!r} is declared already")
        self._by_name[technique.name] = technique

    def __getitem__(self, name: str) -> Technique:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return True

    def _all(self) -> dict[str, Technique]:
        import_module("relational_tensat.extract.exact.ilp")
        return self._by_name


_declared = _Declared()

TECHNIQUES: Mapping[str, Technique] = _declared
"""All techniques by name, in the order of their declaration."""


def declare(technique: Technique) -> str:
    """Add a technique to ``TECHNIQUES``; return its name.

    Raises:
        ValueError: the name is taken.
    """
    _declared.add(technique)
    return technique.name


@dataclass
class Techniques:
    """The techniques in use, and the counts that the reductions among them dropped.

    Attributes:
        disabled: the names of those left out.
        dropped: e-nodes that each reduction dropped, by its name.
        size_before, size_after: counts of e-nodes, e-classes and edges before any reduction, and in all
            components together that the first rounds of reductions left.
        components, distinct: how many these components are, and how many are not isomorphic to others.
        ineffective: the names of the reductions that dropped nothing of an e-graph, as long as it lives.
    """

    disabled: frozenset[str] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    size_before: tuple[int, int, int] = (0, 0, 0)
    size_after: tuple[int, int, int] = (0, 0, 0)
    components: int = 0
    distinct: int = 0
    ineffective: WeakKeyDictionary[Reduced, set[str]] = field(default_factory=WeakKeyDictionary)

    def uses(self, name: str) -> bool:
        """Whether a technique is used."""
        return name not in self.disabled

    def apply(
        self, name: str, reduction: Callable[[Reduced], Reduced], reduced: Reduced
    ) -> Reduced:
        """Run a reduction unless it is left out, and count what it dropped.

        One that has dropped nothing of an e-graph will drop nothing of it again.
        """
        if not self.uses(name) or name in self.ineffective.get(reduced, ()):
            return reduced
        after = reduction(reduced)
        if after is reduced:
            self.ineffective.setdefault(reduced, set()).add(name)
        dropped_count = reduced.problem.n_nodes - after.problem.n_nodes
        if dropped_count > 0:
            self.dropped[name] += dropped_count
        return after

    def measure(
        self, whole: ExtractionProblem, components: Sequence[ExtractionProblem], distinct: int
    ) -> None:
        """Record sizes before and after, and which components are distinct; only the first call counts."""
        if self.size_before == (0, 0, 0):
            self.size_before = size_of([whole])
            self.size_after = size_of(components)
            self.components, self.distinct = len(components), distinct

    def add_copies(self, other: Techniques, count: int) -> None:
        """Count what was done to one of so many isomorphic components for each of them."""
        for name, dropped_count in other.dropped.items():
            self.dropped[name] += count * dropped_count
        e_nodes, classes, edges = (
            own + count * size for own, size in zip(self.size_after, other.size_after, strict=True)
        )
        self.size_after = (e_nodes, classes, edges)
        self.components += count * other.components
        self.distinct += other.distinct


def size_of(problems: Sequence[ExtractionProblem]) -> tuple[int, int, int]:
    """Return the counts of e-nodes, e-classes and edges of e-graphs together."""
    return (
        sum(problem.n_nodes for problem in problems),
        sum(problem.n_classes for problem in problems),
        sum(len(problem.child_idx) for problem in problems),
    )
