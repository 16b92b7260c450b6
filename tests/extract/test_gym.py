"""The known optima of TENSAT's own e-graphs, where extraction-gym's data are given.

``EXTRACTION_GYM=/path/to/extraction-gym python -m pytest tests/extract/test_gym.py``: the folder is a
checkout of https://github.com/egraphs-good/extraction-gym, or any that has ``tensat/*.json`` below.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.extract.check import chosen_cost
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.interchange import read_egraph_json

VARIABLE = "EXTRACTION_GYM"

#: Least costs in ms, proven (TENSAT's costs on its GPU); the first two and the last are cyclic.
OPTIMA_MS = {"vgg": 4.850757, "resnet50": 4.385795, "bert_acyclic": 0.708439, "bert": 0.704720}


def gym_file(name: str) -> Path:
    folder = os.environ.get(VARIABLE)
    if folder is None:
        pytest.skip(f"extraction-gym's data are not given: set {VARIABLE} to its folder")
    paths = sorted(Path(folder).rglob(f"tensat/{name}.json"))
    if not paths:
        pytest.skip(f"{folder} has no tensat/{name}.json")
    return paths[0]


@pytest.mark.parametrize("name", OPTIMA_MS)
def test_the_optimum_is_reproduced(name: str) -> None:
    problem = read_egraph_json(gym_file(name)).problem
    extraction = extract(problem, ExtractionOptions(time_limit_s=300.0))
    assert extraction.cost_us == pytest.approx(OPTIMA_MS[name], abs=1e-6)
    assert extraction.optimal
    assert chosen_cost(problem, extraction.choice) == pytest.approx(extraction.cost_us)
