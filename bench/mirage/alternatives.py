"""What a GPU shall choose from: a benchmark's μGraphs that the model likes nearly as well as the best.

The model of a kernel's time knows waves, traffic and the roofline, and neither a compiler's pipelines nor
bank conflicts: of two sizes that it finds about equal, one may run twice as fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from bench.mirage.cases import Case
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash, encoded
from relational_tensat.mugraph.kernel_finder import CheapestSoFar, first_verified
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.cost_model import graph_us
from relational_tensat.mugraph.sizes.splits import Sized
from relational_tensat.mugraph.sizes.waves import Multiprocessors

#: What kernels are sized for, unlike those of the kept benchmarks: those ran on the paper's A100.
PROFILE = "h100"


def tuning_run(case: Case, options: SearchOptions, most: int) -> dict[str, Any] | None:
    """Return a benchmark's candidates as ``bench mirage --gpu`` reads them; None where there are none."""
    device = Multiprocessors(load_profile(PROFILE))
    program = case.build()
    found = nearly_cheapest(program, options, device, most)
    if not found:
        return None
    best, *others = found
    return {
        "search": {"case": case.name, "max_kernels": options.max_kernels},
        "best_us": best.cost_us,
        "library_us": graph_us(program, device),
        "mugraph": encoded(best.graph),
        "others": [{"us": each.cost_us, "mugraph": encoded(each.graph)} for each in others],
    }


#: What is modelled to take longer than the best by this factor is not tried.
_WITHIN = 3.0
#: So many sizes are looked at for each way to end; of the same grids, so many are tried with other loops.
_LOOKED_AT, _OF_SAME_GRIDS = 128, 3


def nearly_cheapest(
    program: MuGraph, options: SearchOptions, device: Multiprocessors, most: int
) -> list[Sized]:
    """Return verified μGraphs of a program, cheapest first by the model: other kernels, other sizes.

    Args:
        program: of operators of libraries only.
        options: how far to go.
        device: what they shall run on.
        most: so many are returned at most.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    so_far = CheapestSoFar(
        program, device, has_libraries=options.libraries,
        bounds="bounds" not in options.disable,
    )  # fmt: skip
    result = search_kernels(program, options, bound=so_far)
    found = so_far.near(result.routes, _WITHIN, _LOOKED_AT)
    passing = _passing(program, found, options, device)
    return sorted(islice(passing, most), key=lambda made: made.cost_us)


def _passing(
    program: MuGraph, found: list[Sized], options: SearchOptions, device: Multiprocessors
) -> Iterator[Sized]:
    """Yield what can be made ready and passes verification, each once, a few of each grids."""
    seen: set[str] = set()
    of_grids: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for candidate in found:
        key = content_hash(candidate.graph)
        grids = tuple(kernel.block.grid for kernel in candidate.graph.kernels)
        if key in seen or of_grids[grids] >= _OF_SAME_GRIDS:
            continue
        seen.add(key)
        made = first_verified(program, [candidate], options, device).best
        if made is not None:
            of_grids[grids] += 1
            yield made
