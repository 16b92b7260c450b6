"""Which tensors in device memory are worth another kernel: those that the program can be computed of."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.search.block_terms import Operand
from relational_tensat.mugraph.search.kernel_outputs import KernelTensor

#: A kernel loads at most so many of the program's inputs beside what the kernel before it stored.
_MOST_GIVEN = 2


def needed_sets(
    database: Database,
    made: Sequence[tuple[KernelTensor, ...]],
    given: Sequence[Operand],
    roots: Collection[int] | None,
    watch: Watch | None = None,
) -> Iterator[tuple[tuple[KernelTensor, ...], tuple[Operand, ...]]]:
    """Yield sets of tensors of which the program can be computed, and of no part of them.

    Args:
        database: of the abstract e-graph.
        made: what a kernel can store, alone or together.
        given: the program's inputs.
        roots: the classes of the program's outputs; None for all sets that depend on every input.
        watch: ends it: some sets may be missing then.
    """
    inputs = {operand.uses: operand for operand in given}
    every = sum(operand.uses for operand in given)
    choices = [
        frozenset(some)
        for size in range(_MOST_GIVEN + 1)
        for some in itertools.combinations(sorted(inputs), size)
    ]
    reach: set[frozenset[int]] | None = None
    if roots is not None:
        asked = {_classes(own, [inputs[bit] for bit in some]) for own in made for some in choices}
        reach = reaching(database, asked, roots, watch)
    done: set[tuple[frozenset[str], frozenset[int]]] = set()
    for own in sorted(made, key=len):
        for some in choices:
            names = frozenset(tensor.operand.name for tensor in own)
            taken = [inputs[bit] for bit in sorted(some)]
            if _union([*(t.operand.uses for t in own), *some]) != every:
                continue
            if reach is not None and _classes(own, taken) not in reach:
                continue
            is_more = any(less <= names and fewer <= some for less, fewer in done)
            if reach is not None and is_more:
                continue
            done.add((names, some))
            yield own, tuple(taken)


def reaching(
    database: Database,
    sets: Iterable[frozenset[int]],
    roots: Collection[int],
    watch: Watch | None = None,
) -> set[frozenset[int]]:
    """Return those sets of abstract classes from which other classes can be derived.

    Args:
        database: of the abstract e-graph.
        sets: of classes.
        roots: these classes.
        watch: ends it with those that were found so far.
    """
    numbered = sorted(set(sets), key=sorted)
    database.execute("DELETE FROM reached", name="mugraph/reached")
    rows = [(number, klass) for number, classes in enumerate(numbered) for klass in sorted(classes)]
    database.append("reached", rows)
    while database.change("mugraph/reach") and not (watch and watch.is_over):
        pass
    found = database.execute(
        "SELECT tensors FROM reached SEMI JOIN (SELECT unnest($roots) AS class) USING (class)"
        " GROUP BY tensors HAVING count(*) = len($roots)",
        {"roots": sorted(set(roots))},
        "mugraph/reached_roots",
    )
    return {numbered[int(number)] for (number,) in found}


def _classes(own: Sequence[KernelTensor], given: Sequence[Operand]) -> frozenset[int]:
    return frozenset([*(t.abstract_class for t in own), *(o.abstract_class for o in given)])


def _union(masks: Iterable[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result
