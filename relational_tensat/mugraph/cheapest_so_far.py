"""What a search has found so far, with sizes, and what cannot become cheaper than that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.dims import Dims, with_sizes
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.ready_candidates import ready
from relational_tensat.mugraph.search.block_terms import Operand
from relational_tensat.mugraph.search.bound import Ways
from relational_tensat.mugraph.search.found import Route
from relational_tensat.mugraph.sizing.choosing_sizes import Sized, Sizing
from relational_tensat.mugraph.sizing.least import Traffic, least_kernel_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors

#: Times that differ by less are equal: which of two such graphs is found does not depend on their order.
_RELATIVE = 1e-9
#: Into so few parts at least a variable is split whose partial results are stored.
_FEWEST_PARTS = 2


class CheapestSoFar:
    """The graphs of the ways that a search has found, at their best sizes; the search's ``Bound``.

    What is dearer than the cheapest that could be made ready is left out. (Random tests refuse what a
    search finds only where its own tests were in error, so this one is most likely the result; where it
    is not, what was left out is needed: ``complete_to_us``.)

    Args:
        program: what is searched.
        device: what it shall run on.
        has_libraries: whether operators of libraries may take kernels' places.
        raw_exp: leave exponentials as they are.
        bounds: whether anything is left out.
    """

    def __init__(
        self,
        program: MuGraph,
        device: Multiprocessors,
        *,
        has_libraries: bool = True,
        raw_exp: bool = False,
        bounds: bool = True,
    ) -> None:
        self._device = device
        self._raw_exp = raw_exp
        self._bounds = bounds
        self._sizing = Sizing(program, device, has_libraries=has_libraries)
        self._given = {d.variable: d.size for dims in program.inputs.values() for d in dims}
        self._cheapest_us = math.inf
        self._found: dict[int, tuple[Route, list[Sized]]] = {}

    @property
    def complete_to_us(self) -> float:
        """Up to this time nothing was left out."""
        return self._cheapest_us * (1 + _RELATIVE)

    def graphs(self, routes: Iterable[Route]) -> list[Sized]:
        """Return the graphs of routes that were noted, cheapest first."""
        every = (made for route in routes for made in self._found[id(route)][1])
        return sorted(every, key=lambda made: made.cost_us)

    def near(self, routes: Iterable[Route], within: float, most: int) -> list[Sized]:
        """Return graphs of routes at the sizes that come next, too, cheapest first.

        Args:
            within: how many times as long as the cheapest they take at most.
            most: of each way to end a route, so many.
        """
        below_us = within * self._cheapest_us
        every = (made for route in routes for made in self._sizing.sized(route, below_us, most))
        return sorted(every, key=lambda made: made.cost_us)

    def note(self, route: Route) -> None:
        """Choose the sizes of a route's graphs."""
        made = self._sizing.sized(route, self.complete_to_us)
        self._found[id(route)] = route, made
        for graph in made if self._bounds else ():
            if graph.cost_us >= self._cheapest_us:
                break
            if self._is_ready(graph):
                self._cheapest_us = graph.cost_us

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        """See ``Bound``."""
        traffic = (Traffic(self._least_dims(t.dims), t.is_wide, t.is_condition) for t in tensors)
        return least_kernel_us(traffic, self._device)

    def least_before_us(self, ways: Ways) -> float:
        """See ``Bound``."""
        partials = (partial for way in ways for partial in self._sizing.partials(way)[:1])
        return min((partial.cost_us for partial in partials), default=math.inf)

    def is_over(self, least_us: float) -> bool:
        """See ``Bound``."""
        return self._bounds and least_us > self.complete_to_us

    def _is_ready(self, made: Sized) -> bool:
        try:
            ready(made.graph, self._device, raw_exp=self._raw_exp)
        except VerificationError:
            return False
        return True

    def _least_dims(self, dims: Dims) -> Dims:
        sizes: Mapping[str, int] = {
            dim.variable: self._given.get(dim.variable, _FEWEST_PARTS) for dim in dims
        }
        return with_sizes(dims, sizes)
