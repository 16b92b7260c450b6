from __future__ import annotations

from bench.common.plots import label_heights


def test_labels_do_not_cover_one_another() -> None:
    places = [(1.0, 1.0), (1.0, 1.001), (1.01, 1.02), (1.3, 1.0), (1.0, 1.5)]
    heights = label_heights(places, (0.12, 0.022))
    assert heights[0] == 1.0
    assert heights[3:] == [1.0, 1.5]  # far from the others
    assert min(heights[1] - heights[0], heights[2] - heights[1]) >= 0.02
