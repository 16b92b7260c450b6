"""Growing the terms of a level."""

from __future__ import annotations

from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.abstract_egraph import saturated
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import structure_of
from relational_tensat.mugraph.search.term_growth import TermGrowth, grown_terms


def test_after_the_time_nothing_is_begun() -> None:
    structure = structure_of(program("mlp"))
    over = Watch(should_stop=lambda: True)
    database = saturated(structure.program).database
    search, is_complete = grown_terms(database, structure, SearchOptions(), over, [], _unwanted)
    assert not is_complete and not search.configurations


def _unwanted(growth: TermGrowth) -> None:
    raise AssertionError("nothing grows")
