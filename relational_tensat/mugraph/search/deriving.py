"""The cheapest derivation of terms: extraction, as of any e-graph, from a configuration's e-classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, topological_order
from relational_tensat.mugraph.graph.found_row import FoundRow
from relational_tensat.mugraph.graph.mugraph import BlockStep
from relational_tensat.mugraph.graph.partial_tiles import LOOP
from relational_tensat.mugraph.graph.well_formed import Stage
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Derivation, step_of
from relational_tensat.mugraph.search.found import FoundKernel
from relational_tensat.mugraph.search.structure import Configuration

#: A choice among few e-nodes, made hundreds of times: a proof that it is best takes eight times as long.
_OPTIONS = ExtractionOptions(extractor="greedy-dag", time_limit_s=5.0)

#: By their numbers in the table of terms.
_STAGES = (Stage.LOOP.value, Stage.AFTER.value, Stage.INVARIANT.value)

#: Operations of an element. What is concatenated lies in shared memory whole, and seldom fits: it is for
#: what cannot be computed iteration by iteration.
_FACTORS = {"matmul": 2.0, "accumulate concat": 1000.0}


def cheapest_kernel(
    search: BlockSearch,
    config: int,
    terms: Sequence[int],
    outputs: Sequence[str],
    sizes: Mapping[str, int],
    level: int = 1,
) -> FoundKernel:
    """Return the kernel that computes terms of a configuration in the fewest operations.

    Args:
        search: the terms.
        config: the number of the configuration.
        terms: what it stores.
        outputs: the names of the results.
        sizes: real sizes of the index variables; the count of operations is for these.
        level: of the kernel, for its rows.
    """
    _, configuration = search.configurations[config]
    derivations = search.derivations(config)
    steps, chosen = _choose(search, derivations, terms, _Costs(search, configuration, sizes))
    names: dict[int, str] = {}
    loads: list[tuple[str, str]] = []
    for term in steps:
        operand = search.loaded(term)
        names[term] = f"{operand.name}_" if operand else f"t{len(names) + 1 - len(loads)}"
        if operand:
            loads.append((operand.name, names[term]))
    made: list[BlockStep] = [
        step_of(chosen[term], names, names[term]) for term in steps if term in chosen
    ]
    loop = configuration.loop.name if configuration.loop else ""
    grid = tuple(variable.name for variable in configuration.grid)
    stores = tuple((names[term], output) for term, output in zip(terms, outputs, strict=True))
    rows = tuple(
        _row(
            search,
            term,
            names[term],
            chosen.get(term),
            (level, config, len(derivations.get(term, ()))),
        )
        for term in steps
    )
    return FoundKernel(tuple(sorted(loads)), grid, loop, tuple(made), stores, rows=rows)


def _row(
    search: BlockSearch,
    term: int,
    tensor: str,
    chosen: Derivation | None,
    where: tuple[int, int, int],
) -> FoundRow:
    """Return the row of a term; of where it is: level, configuration, number of derivations."""
    (level, config, count), (operators, stage, klass, value) = where, search.term_row(term)
    made = chosen or Derivation("load", "", "", 0, 0)
    return FoundRow(
        "", tensor, level, config, term, operators, _STAGES[stage], made.op, made.name,
        made.variable, made.a, made.b, klass, value, count,
    )  # fmt: skip


class _Costs:
    """Operations of derivations, per block and in all iterations."""

    def __init__(
        self, search: BlockSearch, configuration: Configuration, sizes: Mapping[str, int]
    ) -> None:
        self._search = search
        self._configuration = configuration
        splits = {v.name: v.factor for v in (*configuration.grid,)}
        loop = configuration.loop
        self._tiles = {name: size / splits.get(name, 1) for name, size in sizes.items()}
        if loop:
            self._tiles[loop.name] /= loop.factor

    def of(self, term: int, derivation: Derivation) -> float:
        """Return the operations of a derivation of a term."""
        labels = {*self._search.value(derivation.a).labels}
        if derivation.b:
            labels |= {*self._search.value(derivation.b).labels}
        iterations = self._configuration.iterations if LOOP in labels else 1
        elements = math.prod(self._tiles.get(label, 1.0) for label in labels)
        return elements * iterations * _FACTORS.get(derivation.op, 1.0)


def _choose(
    search: BlockSearch,
    derivations: Mapping[int, list[Derivation]],
    terms: Sequence[int],
    costs: _Costs,
) -> tuple[list[int], dict[int, Derivation]]:
    """Return the terms that are needed, operands first, and how each is derived."""
    needed = _needed(derivations, terms)
    number = {term: place for place, term in enumerate(needed)}
    nodes: list[tuple[int, float, list[int], Derivation | None]] = []
    for term in needed:
        if search.loaded(term) is not None:  # nothing is computed that is loaded
            nodes.append((number[term], 0.0, [], None))
            continue
        for derivation in derivations[term]:
            children = {number[child] for child in (derivation.a, derivation.b) if child}
            nodes.append((number[term], costs.of(term, derivation), sorted(children), derivation))
    root = len(needed)
    nodes.append((root, 0.0, sorted({number[term] for term in terms}), None))
    problem = ExtractionProblem(
        cost_us=np.array([cost for _, cost, _, _ in nodes]),
        node_class=np.array([klass for klass, _, _, _ in nodes], np.int32),
        child_ptr=np.cumsum([0, *(len(children) for _, _, children, _ in nodes)]).astype(np.int32),
        child_idx=np.array([c for _, _, children, _ in nodes for c in children], np.int32),
        n_classes=root + 1,
        root=root,
        original=np.full(root + 1, UNUSED, np.int32),
    )
    choice = extract(problem, _OPTIONS).choice
    order = [klass for klass in topological_order(problem, choice) if klass != root]
    chosen = {needed[klass]: nodes[int(choice[klass])][3] for klass in order}
    return [needed[klass] for klass in order], {t: d for t, d in chosen.items() if d is not None}


def _needed(derivations: Mapping[int, list[Derivation]], terms: Sequence[int]) -> list[int]:
    """Return all terms that some derivation of these needs."""
    found = dict.fromkeys(terms)
    waiting = list(terms)
    while waiting:
        for derivation in derivations.get(waiting.pop(), ()):
            for child in (derivation.a, derivation.b):
                if child and child not in found:
                    found[child] = None
                    waiting.append(child)
    return list(found)
