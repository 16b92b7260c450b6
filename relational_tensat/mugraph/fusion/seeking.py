"""The search for kernels with products: once for a program, in a share of the time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relational_tensat.base.errors import RelationalTensatError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.finding import find_kernels
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors

#: No search takes more than this part of the time for all.
_LARGEST_SHARE = 0.25


class UnfitError(VerificationError):
    """A program is one kernel, but of no sizes that fit, so that several may be better."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search for a part of a model goes.

    Attributes:
        kernels: of a μGraph at most.
        more_operators: of a block, beyond the program's: what a loop adds up takes one more for each sum.
            (A sum over several variables is several operators of a block.)
    """

    kernels: int
    more_operators: int


class Seeker:
    """Searches that share their time, and what they have found.

    Args:
        options: of all searches; the time limit is for all of them together.
        watch: ends them.
        cache: of what searches found before; without, none is used.
    """

    def __init__(self, options: SearchOptions, watch: Watch, cache: CandidateCache | None) -> None:
        self._options = options
        self._watch = watch
        self._cache = cache
        self._known: dict[tuple[str, str, Effort], MuGraph | RelationalTensatError] = {}

    def seek(self, program: MuGraph, device: Multiprocessors, effort: Effort) -> MuGraph:
        """Return the cheapest verified μGraph that a search finds.

        Raises:
            UnfitError: all that it finds are too large, or could not be made stable.
            RelationalTensatError: it finds none.
        """
        content = device.dtype, content_hash(program), effort
        if content not in self._known:
            try:
                self._known[content] = self._search(program, device, effort)
            except RelationalTensatError as error:
                self._known[content] = error
        known = self._known[content]
        if isinstance(known, RelationalTensatError):
            raise known
        return known

    def _search(self, program: MuGraph, device: Multiprocessors, effort: Effort) -> MuGraph:
        limit_s = self._options.time_limit_s
        if limit_s is not None:
            limit_s = min(self._watch.seconds_left, _LARGEST_SHARE * limit_s)
        options = replace(
            self._options,
            max_operators=_operators_of_block(program) + effort.more_operators,
            max_kernels=effort.kernels,
            time_limit_s=limit_s,
        )
        finding = find_kernels(program, options, self._watch, device=device, cache=self._cache)
        if finding.best is not None:
            return finding.best.graph
        if finding.result.routes:
            reasons = "; ".join(dict.fromkeys(finding.reasons))
            raise UnfitError(reasons or "no sizes of it fit a block")
        raise VerificationError(
            "none found" if finding.result.is_complete else "none found in the time"
        )


def _operators_of_block(program: MuGraph) -> int:
    """Return how many operators a block has that does what a program does, as it does it."""
    reduced = (
        names(step.attrs, "over") if step.op in ("sum", "matmul") else ()
        for step in program.operators
    )
    return sum(max(len(over), 1) for over in reduced)
