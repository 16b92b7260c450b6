"""Labels are lifted as far as needed and no further: against plain recursion, on random graphs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from relational_tensat.egraph.database import Interrupted
from relational_tensat.egraph.lifting import Lifting


def never() -> None:
    """Let the lifting continue."""


def columns(edges: list[tuple[int, int]], height: dict[int, int]) -> dict[str, np.ndarray]:
    rows = [(number, a, b, height[a], height[b]) for number, (a, b) in enumerate(edges, start=1)]
    array = np.array(rows, dtype=np.int32).reshape(-1, 5)
    names = ("enode", "class", "child", "height", "child_height")
    return {name: array[:, place] for place, name in enumerate(names)}


def lowest_labels(edges: list[tuple[int, int]], height: dict[int, int]) -> dict[int, int]:
    """Return, per class, the lowest label that is not below its own and above all its children's."""

    def label(class_id: int) -> int:
        return max([height[class_id], *(label(b) + 1 for a, b in edges if a == class_id)])

    return {class_id: label(class_id) for class_id in height}


def lifted(edges: list[tuple[int, int]], height: dict[int, int]) -> dict[int, int]:
    lifting = Lifting(columns(edges, height))
    assert lifting.converges(never)
    classes, labels = lifting.moved()
    return dict(zip(classes.tolist(), labels.tolist(), strict=True))


def test_labels_are_the_lowest_that_fit_and_only_what_moved_is_reported() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        order = draw.sample(range(1, 31), 12)  # ids say nothing about what is above what
        edges = [
            (order[place], order[draw.randrange(place)])
            for place in draw.choices(range(1, 12), k=draw.randint(0, 25))
        ]
        height = {class_id: draw.randint(1, 15) for class_id in order}
        expected = lowest_labels(edges, height)
        assert lifted(edges, height) == {c: h for c, h in expected.items() if h > height[c]}, seed


def test_a_long_chain_is_lifted_to_its_end() -> None:
    size = 3_000
    edges = [(class_id + 1, class_id) for class_id in range(1, size)]
    labels = lifted(edges, dict.fromkeys(range(1, size + 1), 7))
    assert labels == {class_id: 6 + class_id for class_id in range(2, size + 1)}


def test_labels_beyond_the_tables_integers_are_reported_exactly() -> None:
    """The table refuses them, instead of labels that have come round to negative ones."""
    assert lifted([(2, 1)], {1: 2**31 - 1, 2: 5}) == {2: 2**31}


def test_lifting_can_be_ended() -> None:
    def stop() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        Lifting(columns([(2, 1)], {1: 1, 2: 1})).converges(stop)


def test_on_a_cycle_labels_do_not_come_to_rest_soon() -> None:
    cycle = columns([(1, 2), (2, 3), (3, 1)], {1: 3, 2: 2, 3: 1})
    assert not Lifting(cycle).converges(never, soon=True)


def test_a_few_rounds_are_tried_if_it_is_to_be_soon() -> None:
    def chain(size: int) -> Lifting:
        edges = [(class_id + 1, class_id) for class_id in range(1, size)]
        return Lifting(columns(edges, dict.fromkeys(range(1, size + 1), 7)))

    assert chain(30).converges(never, soon=True)
    assert not chain(40).converges(never, soon=True)  # there is no cycle, but that is not seen
