"""Files of the public benchmarks, as they are published: SmoothE's and extraction-gym's.

They are read from ``../shared/data/egraphs`` beside the repository, where there is one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat.extract import dag_cost_us
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from relational_tensat.extract.interchange import read_egraph_json

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "egraphs"

#: E-nodes (that of several roots included), distinct roots, note.
EXPECTED = {
    "esyn_c2670": (13_205, 1, ""),
    "esyn_mul3": (8_544, 1, ""),
    "herbie_2231": (32_750, 1, ""),
    "herbie_356": (35_526, 20, ""),
    "rover_box_box_filter_4iteration_egraph": (12_537, 1, ""),
    "rover_fir_fir_8_tap_5iteration_egraph": (5_289, 1, ""),
    "tensat_bert_acyclic": (20_244, 1, "ignored: 'comment' of the file"),
    "tensat_resnet50_acyclic": (266, 1, "ignored: 'comment' of the file"),
}


def test_they_are_read_as_they_are() -> None:
    files = sorted(FOLDER.glob("*.json.gz"))
    if not files:
        pytest.skip(f"{FOLDER} has no e-graphs")
    for file in files:
        egraph = read_egraph_json(file)
        egraph.check_derivable(str(file))
        found = (egraph.problem.n_nodes, len(egraph.roots), egraph.note)
        assert found == EXPECTED[file.name.removesuffix(".json.gz")], file
        assert dag_cost_us(egraph.problem, tree_greedy(egraph.problem)) > 0
