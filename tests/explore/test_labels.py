"""The height labels of new classes are the same, however those of the old ones are looked up."""

from __future__ import annotations

import pytest

from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.apply import application, direct
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums


def classes_of(threads: int) -> list[tuple[object, ...]]:
    egraph = EGraph.create(separate_sums(6), process=ProcessOptions(threads=threads))
    explore(egraph, example_rules("join-sums", "swap"), ExplorationOptions(4))
    rows = egraph.connection.execute("FROM eclass ORDER BY id").fetchall()
    egraph.close()
    return rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("is_direct", [True, False])
def test_labels_from_a_list_are_those_from_joins(
    threads: int, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_direct:
        monkeypatch.setattr(application, "build_direct", lambda *_, **__: None)
    listed = classes_of(1)
    assert len({height for _, _, _, height, _ in listed}) > 2
    monkeypatch.setattr(application, "MANY_LABELS", 0)
    monkeypatch.setattr(direct, "MANY_LABELS", 0)
    assert classes_of(threads) == listed
