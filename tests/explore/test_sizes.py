"""E-graph sizes with TASO's rules as they are: those of TENSAT, whose literals are no e-nodes here."""

from __future__ import annotations

import pytest

from bench.models import MODELS
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.rules.library import taso_rules
from tests.egraph.invariants import assert_invariants

#: (model, k_multi): e-nodes and e-classes without those of numbers, names and shapes.
SIZES = {
    ("bert", 1): (1530, 586),
    ("nasrnn", 1): (1901, 1256),
    ("resnet50", 1): (149, 145),
    ("resnet50", 2): (209, 185),
    ("vgg19", 1): (86, 70),
    ("vgg19", 2): (86, 70),
}

MOST_STATEMENTS = 60


def run(model: str, k_multi: int) -> tuple[EGraph, Exploration]:
    egraph = EGraph.create(MODELS[model]())
    limits = ExplorationOptions(15, k_multi, multi_schedule="first")
    return egraph, explore(egraph, taso_rules(), limits)


@pytest.mark.parametrize(("model", "k_multi"), SIZES)
def test_sizes_are_those_of_the_peer(model: str, k_multi: int) -> None:
    egraph, exploration = run(model, k_multi)
    assert egraph.counts() == SIZES[model, k_multi]
    assert exploration.stop_reason == "saturated"
    assert max(entry.statements for entry in exploration.log) <= MOST_STATEMENTS
    if model == "vgg19":
        assert_invariants(egraph)
    egraph.close()
