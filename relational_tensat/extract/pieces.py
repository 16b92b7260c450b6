"""Reduce, take apart, relax, leave out what is hopeless, and again; then solve what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from relational_tensat.extract.bottom_up import DagDeriver
from relational_tensat.extract.covering import covers
from relational_tensat.extract.dropping import drop_underivable
from relational_tensat.extract.loops import two_cycle_rows
from relational_tensat.extract.mip import cut_and_solve, scaled_model
from relational_tensat.extract.neighbourhoods import LEAST_NODES, chosen_by, early
from relational_tensat.extract.pinning import parts, pin_required, with_single_root
from relational_tensat.extract.problem import Ints, dag_cost_us
from relational_tensat.extract.reduced import Mask, Reduced, keep, unreduced
from relational_tensat.extract.reductions import reduce, shrunk
from relational_tensat.extract.relaxation import relax, without
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import Progress, SolverOptions, stack_rows
from relational_tensat.extract.techniques import Techniques

_WORTH_REDUCING = 0.1
"""An e-graph is reduced again when at least this fraction of its e-nodes is hopeless."""

_SHARE_OF_EARLY = 0.3
"""How much of it the search without detours may take, where there are detours."""

_SHARE_OF_CHOSEN = 0.1
"""How much of what is left then each search among what the relaxation has chosen may take."""

_SHARE_OF_RELAXATION = 0.7
"""Of the time for a piece, how much its relaxation may take; branching has the rest."""


def search_pieces(whole: Search, options: SolverOptions) -> None:
    """Improve the choice and the bound of a search; exact if the time suffices.

    Args:
        whole: begins from its best choice, and is told of what is found.
        options: limits, threads, seed.
    """
    sizes = _search_reduced(whole, unreduced(whole.problem), options)
    whole.notes.insert(
        0, f"{whole.problem.n_nodes} e-nodes reduced to {sum(sizes)} in {len(sizes)} pieces"
    )


def prepared(reduced: Reduced, options: SolverOptions) -> Reduced:
    """Reduce and pin as long as it is worthwhile; the root of the result has one e-node."""

    def stop() -> bool:
        return options.exhausted

    techniques = options.techniques
    reduced = with_single_root(reduce(reduced, stop, techniques))
    while techniques.uses("pinning"):
        before = reduced
        reduced = reduce(techniques.apply("pinning", pin_required, reduced), stop, techniques)
        if stop() or not shrunk(before, reduced):
            break
    return reduced


def _search_reduced(whole: Search, reduced: Reduced, options: SolverOptions) -> list[int]:
    """Search a part of an e-graph that has an optimum, or nothing cheaper than the best.

    Returns the numbers of e-nodes of the pieces that it came to.
    """
    reduced = prepared(reduced, options)
    start = _start(whole, reduced)
    whole.offer(reduced.lift(start))
    assembly = _Assembly(whole, reduced, start)
    sizes = [search.problem.n_nodes for search in assembly.searches]
    options.techniques.measure(whole.problem, [search.problem for search in assembly.searches])
    try:
        if options.techniques.uses("covers") and options.techniques.uses("underivable"):
            for search in assembly.searches:
                if options.exhausted:
                    break
                for choice in covers(search.problem, options.seed):
                    search.offer(choice)
                    if options.exhausted:
                        break
        for index, search in enumerate(assembly.searches):
            share = options.seconds_left / (len(sizes) - index)
            _search_piece(search, replace(options, deadline=time.monotonic() + share))
    finally:  # what an interrupted search has proven counts as well
        assembly.sum_up()
    whole.notes.extend(dict.fromkeys(note for part in assembly.searches for note in part.notes))
    return sizes


def _search_piece(search: Search, options: SolverOptions) -> None:
    """Relax a piece; where that leaves little of it, begin again with that, else solve it."""
    if search.closed or options.exhausted:
        return
    improve: Callable[[Mask], None] | None = None
    if options.techniques.uses("neighbourhoods") and search.problem.n_nodes >= LEAST_NODES:
        improve = partial(_search_chosen, search, options)
        if not options.is_local:
            _search_within(search, early(search.problem), options, _SHARE_OF_EARLY)
    model = scaled_model(search.problem, "auto", search.cost_us)
    rows = model.rows
    if options.techniques.uses("two-cycles"):
        rows = stack_rows([rows, two_cycle_rows(search.problem)])
    share = options.seconds_left * _SHARE_OF_RELAXATION
    limits = replace(options, deadline=time.monotonic() + share)
    relaxation = relax(search, model, rows, limits, improve)
    if relaxation is None or search.closed:
        return
    hopeless = relaxation.hopeless(search.cost_us)
    if not options.techniques.uses("reduced-costs"):
        hopeless[:] = False
    if hopeless.mean() >= _WORTH_REDUCING:
        _search_rest(search, ~hopeless, options)
    else:
        columns = without(model.columns, hopeless)
        cut_and_solve(search, model, columns, relaxation.rows, options)


def _search_chosen(search: Search, options: SolverOptions, touched: Mask) -> None:
    """Look for a better choice among what the relaxation has chosen, and the best choice."""
    part = chosen_by(search.problem, touched, search.best)
    _search_within(search, part, options, _SHARE_OF_CHOSEN)


def _search_within(
    search: Search, nodes: Mask | None, options: SolverOptions, share: float
) -> None:
    """Look for a better choice among some e-nodes, for a share of the time that is left."""
    if nodes is None or search.closed or options.exhausted:
        return
    part = drop_underivable(keep(unreduced(search.problem), nodes))
    if not np.any(part.problem.node_class == part.problem.root):
        return
    prefers_best = np.where(part.within(search.best), 0.0, part.problem.cost_us)
    inner = Search(part.problem, DagDeriver(part.problem).derive(prefers_best))
    inner.progress = lambda cost_us, _: _offer_cheaper(search, part, inner, cost_us)
    limits = replace(
        options,
        deadline=time.monotonic() + share * options.seconds_left,
        is_local=True,
        techniques=Techniques(options.techniques.without),  # counts what the whole loses, not this
    )
    _search_reduced(inner, unreduced(part.problem), limits)


def _offer_cheaper(search: Search, part: Reduced, inner: Search, cost_us: float) -> None:
    if cost_us < search.cost_us:
        search.offer(part.lift(inner.best))


def _search_rest(search: Search, nodes: Mask, options: SolverOptions) -> None:
    """Search among some e-nodes, beyond which there is nothing cheaper than the best choice."""
    options.techniques.dropped["reduced-costs"] += int((~nodes).sum())
    reduced = drop_underivable(keep(unreduced(search.problem), nodes))
    if not np.any(reduced.problem.node_class == reduced.problem.root):
        search.raise_bound(search.cost_us)
        return
    _search_reduced(search, reduced, options)


def _start(whole: Search, reduced: Reduced) -> Ints:
    """Return a choice of the reduced e-graph: greedy, or what is left in it of the best one."""
    problem = reduced.problem
    deriver = DagDeriver(problem)
    kept = reduced.within(whole.best)
    choices = [
        deriver.derive(problem.cost_us),
        deriver.derive(np.where(kept, 0.0, problem.cost_us)),
    ]
    return min(choices, key=lambda choice: dag_cost_us(problem, choice))


class _Assembly:
    """The pieces' searches, and the choice of the whole that they make up."""

    def __init__(self, whole: Search, reduced: Reduced, start: Ints) -> None:
        self._whole, self._reduced, self._choice = whole, reduced, start.copy()
        root_node = int(start[reduced.problem.root])
        self._constant_us = float(reduced.problem.cost_us[root_node])
        self._pieces = parts(reduced.problem)
        self.searches = [Search(piece.problem, piece.restrict(start)) for piece in self._pieces]
        self._known_cost_us = [search.cost_us for search in self.searches]
        for index, search in enumerate(self.searches):
            search.progress = self._listener(index)

    def sum_up(self) -> None:
        """Tell the whole of the bounds of its pieces."""
        bounds = [search.bound_us for search in self.searches]
        self._whole.raise_bound(math.fsum([self._constant_us, *bounds]))

    def _listener(self, index: int) -> Progress:
        def listen(cost_us: float, _: float) -> None:
            if cost_us < self._known_cost_us[index]:
                self._known_cost_us[index] = cost_us
                self._pieces[index].write(self.searches[index].best, self._choice)
                self._whole.offer(self._reduced.lift(self._choice))
            self.sum_up()

        return listen
