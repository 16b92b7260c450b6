"""Outputs of kernels: those that can be stored, and those that are worth another kernel.

Terms of all blocks together, equal ones as one tensor in device memory. Those are worth another kernel that
the program can be computed of.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import Dim
from relational_tensat.mugraph.graph.evaluation import assemble
from relational_tensat.mugraph.graph.mugraph import Saver
from relational_tensat.mugraph.graph.partial_tiles import GRID
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Operand, Output, fingerprint
from relational_tensat.mugraph.search.structure import part_of


@dataclass(frozen=True, slots=True, eq=False)
class KernelTensor:
    """A tensor in device memory.

    Attributes:
        operand: as the next kernel may load it.
        value: its fingerprint.
        terms: the configurations that can make it, each with its term.
    """

    operand: Operand
    value: int
    terms: dict[int, int] = field(default_factory=dict)

    @property
    def abstract_class(self) -> int:
        """The class of its abstract expression."""
        return self.operand.abstract_class


class KernelOutputs:
    """All tensors that the configurations of a search can store.

    Attributes:
        tensors: each value once, in the order in which they were found.
    """

    def __init__(
        self,
        search: BlockSearch,
        level: int,
        own: Collection[int] = (),
        *,
        has_several: bool = False,
    ) -> None:
        """Collect them.

        Args:
            search: the terms.
            level: of the kernels, from 1 on; it becomes a part of the tensors' names.
            own: fingerprints of the program's tensors.
            has_several: whether the program has several outputs, which need not all that is loaded each.
        """
        self._search = search
        self._level = level
        self._own = frozenset(own)
        found: dict[tuple[int, int], KernelTensor] = {}
        for output in search.outputs():
            job, _ = search.configurations[output.config]
            is_all = output.loads == (1 << len(job.operands)) - 1
            if level > 1 and not is_all and not has_several:
                continue  # another job has what it needs, and no more
            value = stored(search, output.term, output.config)
            key = fingerprint(value), output.abstract_class
            if key not in found:
                found[key] = self._tensor(len(found), value, key[0], output)
            found[key].terms.setdefault(output.config, output.term)
        self.tensors = tuple(found.values())
        search.note_tensors([(t.abstract_class, t.terms) for t in self.tensors])

    def with_values(self, values: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Return the configurations that store some values, each with their terms."""
        terms = [
            {
                config: term
                for tensor in self.tensors
                if tensor.value == value
                for config, term in tensor.terms.items()
            }
            for value in values
        ]
        return [
            (config, [of[config] for of in terms])
            for config in sorted(set(terms[0]).intersection(*terms))
        ]

    def pairs(self) -> Iterator[tuple[KernelTensor, KernelTensor]]:
        """Yield pairs of tensors that one kernel can store."""
        for one, other in self._search.tensor_pairs():
            yield self.tensors[one], self.tensors[other]

    def _tensor(self, number: int, value: Labelled, key: int, output: Output) -> KernelTensor:
        dims = tuple(Dim(label, value.size(label)) for label in value.labels)
        name = f"part{number}" if self._level == 1 else f"part{self._level}.{number}"
        is_wide = key not in self._own
        return KernelTensor(
            Operand(name, dims, value, output.abstract_class, output.uses, is_wide), key
        )


def stored(search: BlockSearch, term: int, config: int) -> Labelled:
    """Return the tensor in device memory that a term is when all blocks have stored it."""
    _, configuration = search.configurations[config]
    value = search.value(term)
    labels = [label for label in value.labels if label not in GRID]
    omap = tuple(v.name if v.name in labels else part_of(v.name) for v in configuration.grid)
    dims = tuple(Dim(name, 0) for name in dict.fromkeys([*labels, *omap]))  # needs no sizes
    grid = [variable.factor for variable in configuration.grid]
    return assemble(value, Saver("", "", dims, omap), grid)


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
        made: the tensors that a kernel can store, alone or together.
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
            if reduce(or_, [*(t.operand.uses for t in own), *some], 0) != every:
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
