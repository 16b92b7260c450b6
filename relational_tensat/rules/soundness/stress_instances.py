"""Far configurations: high ranks, long dimensions, many groups, large attributes, thresholds of a rule.

Most laws that fail somewhere fail on small operands. A number that a rule compares with is tried, and so
are its neighbours and numbers beyond. The rest of the room is entered at a few places that are large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from relational_tensat.rules.model import Literal, Rule, nodes_of, parts_of
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.operators.samples import Hints, RandomChoices
from relational_tensat.tensor.types import DTYPE_BYTES, AttrValue

_RANKS = (6, 7, 8, 7, 4, 3, 2, 1)
_LONG = (7, 8, 9, 12, 16, 17, 33, 64, 65, 100, 129, 200, 201, 255, 257, 300)
_LARGE = (3, 4, 5, 4, 7, 9)
#: Numbers that elements are multiplied with, or that are elements: the ends of moderate sizes, and numbers
#: that some type cannot hold.
_NUMBERS = (
    300.0, 2.0**-13, 4000.0, 30.0, -15.0, 2.0**-100, 2.0**100, 1e8, 127.0, 128.0, -128.0, 60.0, 20.0,
)  # fmt: skip


class Landmarks:
    """The numbers that a rule compares with, or computes with.

    Attributes:
        sizes: numbers above 1 in its expressions, the next ones and the double.
        lists: lists of numbers in them.
        dtypes: element types that it names.
        numbers: numbers in it as floats, the next floats, the double and the half.
    """

    def __init__(self, rule: Rule) -> None:
        sizes: dict[int, None] = {}
        dtypes: dict[str, None] = {}
        numbers: dict[float, None] = {}
        for value in _literals(rule):
            if isinstance(value, str) and value in DTYPE_BYTES:
                dtypes[value] = None
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float) and math.isfinite(number):
                    ends = (math.nextafter(number, way) for way in (-math.inf, math.inf))
                    numbers.update(dict.fromkeys((number, *ends, 2 * number, number / 2)))
                if isinstance(number, int) and not isinstance(number, bool) and 1 < number <= 512:
                    sizes.update(dict.fromkeys((number, number + 1, 2 * number)))
        self.sizes = tuple(sizes)
        self.lists = tuple(
            value for value in _literals(rule) if isinstance(value, tuple) and len(value) > 1
        )
        self.dtypes = tuple(dtypes)
        self.numbers = tuple(numbers)


class FarHints(Hints):
    """Choices for one far configuration."""

    def __init__(self, choices: RandomChoices, landmarks: Landmarks) -> None:
        super().__init__(choices)
        sizes = landmarks.sizes
        self.lists = landmarks.lists
        self.numbers = landmarks.numbers
        low_ranks = tuple(size for size in sizes if size <= 9)
        self.large = (*_LARGE, *low_ranks, *low_ranks)
        self.rank = choices.choice((*_RANKS, *low_ranks))
        long = choices.choice((*_LONG, *sizes, *sizes, *sizes))
        few = long if self.rank <= 4 else min(long, 9)
        self.sizes = [few, 1, choices.choice((1, 2, 3))]
        if self.rank > 5:
            self.sizes.append(1)
        if choices.below(2):
            self.kernel = [choices.choice((1, *self.large)) for _ in range(3)]
            self.image = [choices.between(1, 12) for _ in range(3)]

    @property
    def is_changed(self) -> bool:
        """Whether the next attribute is to be a large one."""
        return self.choices.below(2) == 1


def further(attr: Attr, value: AttrValue, hints: FarHints) -> AttrValue:
    """Return a value of an attribute beyond what is drawn commonly, or the one that was drawn."""
    choices = hints.choices
    if attr.name in ("stride", "kernel", "dilation") and hints.is_changed:
        if hints.lists and hints.is_changed:
            return choices.choice(hints.lists)
        count = len(value) if isinstance(value, tuple) and value else hints.spatial
        return (choices.choice(hints.large),) * count
    if attr.name in ("count", "groups") and hints.is_changed:
        return choices.choice((*hints.large, 8, 16))
    alike = [
        found for found in hints.lists if isinstance(value, tuple) and len(found) == len(value)
    ]
    if attr.kind in ("ints", "padding") and alike and hints.is_changed:
        return choices.choice(alike)
    if attr.kind == "float" and hints.numbers and hints.is_changed:
        return choices.choice(hints.numbers)
    if attr.name == "value" and attr.kind == "float" and hints.is_changed:
        return choices.choice(_NUMBERS)
    return value


def _literals(rule: Rule) -> Iterator[AttrValue]:
    nodes = (node for term in (*rule.sources, *rule.targets) for node in nodes_of(term))
    values = (value for node in nodes for _, value in node.attrs)
    for expression in (*rule.conditions, *values):
        yield from (part.value for part in parts_of(expression) if isinstance(part, Literal))
