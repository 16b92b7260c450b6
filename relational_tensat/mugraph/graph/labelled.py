"""Arrays whose axes have names: index variables, and within a kernel the grid's axes and the loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Arithmetic, Elements


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An array with a label per axis, after the arithmetic's own axes."""

    labels: tuple[str, ...]
    data: Elements

    @property
    def own_axes(self) -> int:
        """How many axes the arithmetic has for itself."""
        return self.data.ndim - len(self.labels)

    def size(self, label: str) -> int:
        """Return the extent of a label; 1 where it is absent."""
        return self.data.shape[self.axis(label)] if label in self.labels else 1

    def axis(self, label: str) -> int:
        """Return the number of a label's axis."""
        return self.own_axes + self.labels.index(label)

    def axes(self, labels: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of labels' axes."""
        return tuple(self.axis(label) for label in labels)

    def ordered(self, labels: Sequence[str]) -> Labelled:
        """Return the same elements with axes in this order; absent labels get an axis of size 1."""
        labels = tuple(labels)
        if labels == self.labels:
            return self
        shape, own = self.data.shape, self.own_axes
        axis = {label: own + place for place, label in enumerate(self.labels)}
        present = [axis[label] for label in labels if label in axis]
        sizes = [shape[axis[label]] if label in axis else 1 for label in labels]
        data = self.data.transpose((*range(own), *present))
        return Labelled(labels, data.reshape((*shape[:own], *sizes)))

    def split(self, label: str, parts: Sequence[tuple[str, int]]) -> Labelled:
        """Return the same elements with one axis as several, the slowest first."""
        axis = self.axis(label)
        shape = self.data.shape
        place = self.labels.index(label)
        names = tuple(name for name, _ in parts)
        data = self.data.reshape(*shape[:axis], *(size for _, size in parts), *shape[axis + 1 :])
        return Labelled(self.labels[:place] + names + self.labels[place + 1 :], data)

    def merged(self, labels: Sequence[str], into: str) -> Labelled:
        """Return the same elements with several axes as one, which comes last."""
        kept = [label for label in self.labels if label not in labels]
        moved = self.ordered([*kept, *labels])
        size = math.prod(self.size(label) for label in labels)
        shape = moved.data.shape[: len(moved.data.shape) - len(labels)]
        return Labelled((*kept, into), moved.data.reshape(*shape, size))

    def longer(self, label: str, more: int) -> Labelled:
        """Return the elements with the last one along a label so many times more."""
        axis = self.axis(label)
        last = np.take(self.data, [-1], axis=axis)
        return Labelled(
            self.labels, np.concatenate([self.data, np.repeat(last, more, axis=axis)], axis=axis)
        )

    def cut(self, label: str, size: int) -> Labelled:
        """Return the first elements along a label."""
        first = (slice(None),) * self.axis(label)
        return Labelled(self.labels, self.data[(*first, slice(size))])

    def renamed(self, old: str, new: str) -> Labelled:
        """Return the same elements with another name of an axis."""
        return Labelled(tuple(new if label == old else label for label in self.labels), self.data)

    def repeated(self, label: str, size: int) -> Labelled:
        """Return the elements repeated along a new last axis."""
        data = np.broadcast_to(self.data[..., None], (*self.data.shape, size))
        return Labelled((*self.labels, label), data)


def elementwise(
    apply: Callable[[Elements, Elements], Elements], a: Labelled, b: Labelled
) -> Labelled:
    """Return a function of two arrays, each repeated over the labels that it lacks."""
    longer, shorter = (a, b) if len(a.labels) >= len(b.labels) else (b, a)
    labels = longer.labels + tuple(name for name in shorter.labels if name not in longer.labels)
    return Labelled(labels, apply(a.ordered(labels).data, b.ordered(labels).data))


def contract(arithmetic: Arithmetic, a: Labelled, b: Labelled, over: Sequence[str]) -> Labelled:
    """Return the sums over labels of the products of two arrays that both have them, by one matmul."""
    batch = [label for label in a.labels if label in b.labels and label not in over]
    rows = [label for label in a.labels if label not in b.labels]
    columns = [label for label in b.labels if label not in a.labels]
    left, right = a.ordered([*batch, *rows, *over]), b.ordered([*batch, *over, *columns])
    batch_sizes = [a.size(label) for label in batch]
    row_sizes = [a.size(label) for label in rows]
    column_sizes = [b.size(label) for label in columns]
    inner = math.prod(a.size(label) for label in over)
    own_a, own_b = left.data.shape[: a.own_axes], right.data.shape[: b.own_axes]
    product = arithmetic.matmul(
        left.data.reshape(*own_a, *batch_sizes, math.prod(row_sizes), inner),
        right.data.reshape(*own_b, *batch_sizes, inner, math.prod(column_sizes)),
    )
    data = product.reshape((*own_a, *batch_sizes, *row_sizes, *column_sizes))  # of no axes, too
    return Labelled((*batch, *rows, *columns), data)


def summed(arithmetic: Arithmetic, x: Labelled, over: Sequence[str]) -> Labelled:
    """Return the sums over labels."""
    kept = tuple(label for label in x.labels if label not in over)
    return Labelled(kept, arithmetic.sum(x.data, x.axes(over)))
