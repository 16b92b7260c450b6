"""What a GPU shall choose from: a benchmark's μGraphs that the model likes nearly as well as the best."""

from __future__ import annotations

from typing import Any

from bench.mirage.cases import Case
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.mugraph.graph.mugraph_json import encoded
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizing.libraries import library_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.tuning import nearly_cheapest

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
        "library_us": library_us(program, device),
        "mugraph": encoded(best.graph),
        "others": [{"us": each.cost_us, "mugraph": encoded(each.graph)} for each in others],
    }
