"""Reduce, take apart, relax, leave out what is hopeless, and again; then solve what is left."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from relational_tensat.base.deadline import Budget, BudgetSpentError, Check, OutOfTimeError
from relational_tensat.extract.exact.decompose.assembly import Assembly
from relational_tensat.extract.exact.decompose.isomorphic import Group, groups_of_twins
from relational_tensat.extract.exact.decompose.parts import parts
from relational_tensat.extract.exact.neighbourhoods import LEAST_NODES, chosen_by, early
from relational_tensat.extract.exact.reduce.detours import drop_detours
from relational_tensat.extract.exact.reduce.dropping import drop_underivable
from relational_tensat.extract.exact.reduce.pinning import pin_required, with_single_root
from relational_tensat.extract.exact.reduce.reduced import Mask, Reduced, keep, unreduced
from relational_tensat.extract.exact.reduce.reductions import shrunk, steps
from relational_tensat.extract.exact.relax.cycle_cuts import two_cycle_rows
from relational_tensat.extract.exact.relax.relaxation import relax, without
from relational_tensat.extract.exact.solve.mip import cut_and_solve, scaled_model
from relational_tensat.extract.exact.solve.ordering import WITHIN, components_to_order, with_order
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver import SolverOptions, stack_rows
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.covering import covers
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us
from relational_tensat.extract.techniques import Techniques

_WORTH_REDUCING = 0.1
"""An e-graph is reduced again when at least this fraction of its e-nodes is hopeless."""

_SHARE_OF_REDUCTIONS = 0.5
"""How much of the time reductions may take: bounds and solutions must have their turn."""

_SHARE_OF_EARLY = 0.3
"""How much of it the search without detours may take, where there are detours."""

_SHARE_OF_CHOSEN = 0.1
"""How much of what is left then each search among what the relaxation has chosen may take."""

_SHARE_OF_RELAXATION = 0.7
"""Of the time for a piece, how much its relaxation may take; branching has the rest."""


def search_pieces(whole: Search, reduced: Reduced, options: SolverOptions) -> None:
    """Improve the choice and the bound of a search; exact if the time suffices.

    Args:
        whole: begins from its best choice, and is told of what is found.
        reduced: its e-graph, perhaps reduced.
        options: limits, threads, seed.
    """
    came_to = search_reduced(whole, reduced, options)
    whole.notes.insert(0, f"{whole.problem.n_nodes} e-nodes {came_to}")


def prepared(reduced: Reduced, options: SolverOptions) -> Reduced:
    """Reduce and pin as long as it is worthwhile; the root of the result has one e-node.

    Raises:
        OutOfTimeError: the time was over before that.
    """
    budget = Budget(options.check, _SHARE_OF_REDUCTIONS * options.seconds_left)
    with suppress(BudgetSpentError):
        for smaller in _smaller(reduced, options.techniques, budget):
            reduced = smaller
    return with_single_root(reduced)


def _smaller(
    reduced: Reduced, techniques: Techniques, check: Check
) -> Generator[Reduced, None, None]:
    """Yield an e-graph as it becomes smaller."""
    reduced = with_single_root((yield from steps(reduced, check, techniques)))
    while True:
        while techniques.uses("pinning"):
            before = reduced
            reduced = techniques.apply("pinning", partial(pin_required, check=check), reduced)
            reduced = yield from steps(reduced, check, techniques)
            if not shrunk(before, reduced):
                break
        before = reduced
        reduced = techniques.apply("detours", partial(drop_detours, check=check), reduced)
        if reduced is not before:
            reduced = with_single_root((yield from steps(reduced, check, techniques)))
        if not shrunk(before, reduced):
            return


@dataclass(frozen=True, slots=True)
class CameTo:
    """What an e-graph was reduced to.

    Attributes:
        e_nodes: of all pieces together.
        pieces: how many.
        distinct: how many of them are not like others.
    """

    e_nodes: int = 0
    pieces: int = 0
    distinct: int = 0

    def __str__(self) -> str:
        alike = self.pieces - self.distinct
        said = f", {alike} of them like others" * (alike > 0)
        return f"reduced to {self.e_nodes} in {self.pieces} pieces{said}"

    def and_copies(self, other: CameTo, count: int) -> CameTo:
        """Return this together with what several e-graphs came to that are all like one."""
        return CameTo(
            self.e_nodes + count * other.e_nodes,
            self.pieces + count * other.pieces,
            self.distinct + other.distinct,
        )


def search_reduced(whole: Search, reduced: Reduced, options: SolverOptions) -> CameTo:
    """Search a part of an e-graph that has an optimum, or nothing cheaper than the best.

    Raises:
        OutOfTimeError: the time was over before there were pieces.
    """
    reduced = prepared(reduced, options)
    start = _start(whole, reduced, options)
    whole.offer(reduced.lift(start))
    assembly = Assembly(whole, reduced, parts(reduced.problem), start)
    problems = [search.problem for search in assembly.searches]
    options.techniques.measure(whole.problem, problems)
    groups = alike(problems, options)
    try:
        _cover([assembly.searches[group[0][0]] for group in groups], options)
        for index, group in enumerate(groups):
            limits = options.for_share(1 / (len(groups) - index))
            with assembly.first_of(group) as search:
                _search_piece(search, limits)
    finally:  # what an interrupted search has proven counts as well
        assembly.sum_up()
    whole.notes += assembly.notes
    e_nodes = sum(problem.n_nodes for problem in problems)
    return CameTo(e_nodes, len(problems), len(groups))


def alike(problems: list[ExtractionProblem], options: SolverOptions) -> list[Group]:
    """Return which pieces are equal up to names."""
    if not options.techniques.uses("twins"):
        return [[(number, None)] for number in range(len(problems))]
    return groups_of_twins(problems)


def _cover(searches: list[Search], options: SolverOptions) -> None:
    """Offer each piece greedy choices in which several classes pay together."""
    if not (options.techniques.uses("covers") and options.techniques.uses("underivable")):
        return
    with suppress(OutOfTimeError):
        for search in searches:
            for choice in covers(search.problem, options.seed, options.check):
                search.offer(choice)


def _search_piece(search: Search, options: SolverOptions) -> None:
    """Relax a piece; where that leaves little of it, begin again with that, else solve it."""
    if search.closed or options.exhausted:
        return
    with suppress(OutOfTimeError):
        _relax_and_solve(search, options)


def _relax_and_solve(search: Search, options: SolverOptions) -> None:
    improve: Callable[[Mask], None] | None = None
    if options.techniques.uses("neighbourhoods") and search.problem.n_nodes >= LEAST_NODES:
        improve = partial(_search_chosen, search, options)
        if not options.is_local:
            part = early(search.problem, options.check)
            _search_within(search, part, options, _SHARE_OF_EARLY)
    model = scaled_model(search.problem, "auto", search.cost_us)
    rows = model.rows
    if options.techniques.uses("two-cycles"):
        rows = stack_rows([rows, two_cycle_rows(search.problem)])
    limits = options.for_share(_SHARE_OF_RELAXATION)
    relaxation = relax(search, model, rows, limits, improve)
    if relaxation is None or search.closed:
        return
    hopeless = relaxation.hopeless(search.cost_us)
    if not options.techniques.uses("reduced-costs"):
        hopeless[:] = False
    if hopeless.mean() >= _WORTH_REDUCING:
        _search_rest(search, ~hopeless, options)
    else:
        components = components_to_order(search.problem, WITHIN[options.cycles])
        model = with_order(replace(model, rows=relaxation.rows), components)
        cut_and_solve(search, model, without(model.columns, hopeless), model.rows, options)


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
    limits = replace(
        options.for_share(share),
        is_local=True,
        techniques=Techniques(options.techniques.without),  # counts what the whole loses, not this
    )
    with suppress(OutOfTimeError):
        deriver = DagDeriver(part.problem, check=limits.check)
        inner = Search(part.problem, deriver.derive(prefers_best))
        inner.progress = lambda cost_us, _: _offer_cheaper(search, part, inner, cost_us)
        search_reduced(inner, unreduced(part.problem), limits)


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
    search_reduced(search, reduced, options)


def _start(whole: Search, reduced: Reduced, options: SolverOptions) -> Ints:
    """Return a choice of the reduced e-graph: greedy, or what is left in it of the best one."""
    problem = reduced.problem
    deriver = DagDeriver(problem, check=options.check)
    kept = reduced.within(whole.best)
    choices = [
        deriver.derive(problem.cost_us),
        deriver.derive(np.where(kept, 0.0, problem.cost_us)),
    ]
    return min(choices, key=lambda choice: dag_cost_us(problem, choice))
