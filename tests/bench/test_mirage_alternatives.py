"""What a device chooses from: verified, different, and led by what the model likes best."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.mirage.alternatives import nearly_cheapest
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.cost_model import graph_us
from relational_tensat.mugraph.sizes.waves import Multiprocessors
from relational_tensat.mugraph.verify.verification import verify_mugraph

_MOST = 8


@pytest.mark.nightly
def test_other_sizes_are_verified_and_led_by_the_best() -> None:
    device = Multiprocessors(load_profile("h100"))
    lora, options = program("lora"), SearchOptions(max_kernels=1)
    found = nearly_cheapest(lora, options, device, _MOST)
    best = find_kernels(lora, options, device=device).best
    assert best is not None
    assert found[0].cost_us == pytest.approx(best.cost_us)
    assert len(found) == len({content_hash(each.graph) for each in found}) == _MOST
    costs_us = [each.cost_us for each in found]
    assert costs_us == sorted(costs_us) and costs_us[-1] <= 3 * costs_us[0]
    assert costs_us == pytest.approx([graph_us(each.graph, device) for each in found])
    grids = Counter(tuple(k.block.grid for k in each.graph.kernels) for each in found)
    assert max(grids.values()) <= 3 and len(grids) > 2
    assert all(verify_mugraph(lora, each.graph, seed=7).passed for each in found)
