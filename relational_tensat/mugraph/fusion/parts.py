"""All parts of graphs that kernels may stand for, equal ones once, and in which order they are sought."""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.mugraph.fusion.candidates import (
    Candidate,
    chain_candidates,
    pattern_hash,
    region_candidates,
)
from relational_tensat.mugraph.fusion.planning import Key, Plan
from relational_tensat.mugraph.fusion.versions import Version
from relational_tensat.mugraph.fusion.worth import Worth
from relational_tensat.mugraph.regions.region_row import RegionRow

#: A search takes so many times as long with one more operator.
_GROWTH = 1.25
#: A search for so few operators a value takes half a second: queries, keys and values of one input, say.
_FEW_EACH = 2


class Parts:
    """The parts of graphs that compute the same.

    Attributes:
        plans: of each graph with its parts.
        plan: of all graphs, whose values of one e-class are one.
        left_out: those that are none, and why.

    Args:
        worth: what they cost, and what kernels for them may save.
        most_operators: of a part with products.
    """

    def __init__(self, worth: Worth, most_operators: int) -> None:
        self.plans: list[Plan] = []
        self.plan = Plan(worth.operator_us)
        self.left_out: list[RegionRow] = []
        self._worth = worth
        self._most_operators = most_operators
        self._patterns: set[str] = set()
        self._reasons: set[tuple[object, ...]] = set()

    def of(self, version: Version) -> dict[str, Candidate]:
        """Return the parts of one more graph by pattern, without those of graphs before."""
        source, graph = version.source, version.graph
        found = [*chain_candidates(graph, self._leave, source)]
        if self._worth.profile is not None:
            found += region_candidates(graph, self._most_operators, self._leave, source)
        elif self._worth.is_measured:  # what has products stays with the runtime
            regions = region_candidates(graph, self._most_operators, self._leave, source)
            found += [c for c in regions if c.has_conditions and not c.has_products]
        places = [(pattern_hash(candidate), candidate) for candidate in found]
        self.plans.append(Plan(self._worth.operator_us))
        for plan in (self.plans[-1], self.plan):
            plan.add(version, places)
        new = {pattern: c for pattern, c in places if pattern not in self._patterns}
        self._patterns |= new.keys()
        for candidate in new.values():
            if self.saving_us(candidate) <= 0:
                least = self._worth.least_us(candidate)
                reason = f"a kernel takes {least:.2f} µs at least, modelled"
                self.left_out.append(self.row(candidate, "no gain", reason))
        return {pattern: c for pattern, c in new.items() if self.saving_us(c) > 0}

    def row(self, candidate: Candidate, fate: str, reason: str) -> RegionRow:
        """Return what became of a part."""
        operators = tuple(step.op for step in candidate.program.operators)
        cost_us = self._worth.operators_us(candidate)
        return RegionRow(candidate.source, candidate.outputs, operators, fate, reason, cost_us)

    def saving_us(self, candidate: Candidate) -> float:
        """Return what a kernel might save at best."""
        return self._worth.operators_us(candidate) - self._worth.least_us(candidate)

    def in_order(self, parts: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
        """Return parts as they are sought; of those alike first what may save most for its time."""
        return dict(sorted(sorted(parts.items()), key=lambda part: self._rank(part[1])))

    def _rank(self, candidate: Candidate) -> tuple[int, float]:
        for_its_time = self.saving_us(candidate) / _GROWTH ** len(candidate.program.operators)
        return order(candidate), -for_its_time

    def _leave(self, row: RegionRow) -> None:
        """Note what is left out, unless it is in a graph before for the same reason."""
        content = row.outputs, row.operators, row.fate, row.reason
        if row.source != "other" or content not in self._reasons:
            self._reasons.add(content)
            self.left_out.append(row)


def order(candidate: Candidate) -> int:
    """Return when a kernel for a part is sought: nothing is searched where there are no products; next come
    those with one value, and values alike of few operators each; then those with two, three and more."""
    if not candidate.has_products:
        return 0
    steps, values = candidate.program.operators, candidate.outputs
    last = {step.op for step in steps if step.output in candidate.program.outputs}
    return 1 if len(last) == 1 and len(steps) <= _FEW_EACH * len(values) else len(values)
