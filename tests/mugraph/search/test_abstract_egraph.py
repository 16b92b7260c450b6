"""The abstract e-graph: the sizes that Mirage's rules give, and what it is for."""

from __future__ import annotations

import pytest

from relational_tensat.mugraph.fusion.candidates import named_by_order
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.search import abstract_egraph
from relational_tensat.mugraph.search.abstract_egraph import (
    AbstractEGraph,
    abstract_operators,
    axioms,
    chain,
    saturated,
)
from relational_tensat.tensor.operators import operators

#: Of a saturation of the reference's rules by another implementation.
SIZES = {
    "attention": (1_176, 99),
    "rmsnorm_linear": (1_056, 79),
    "gated_mlp": (1_980, 117),
    "lora": (1_932, 127),
    "moe": (836, 78),
    "ntrans": (87, 29),
}


@pytest.mark.parametrize("name", ["attention", "rmsnorm_linear", "ntrans"])
def test_sizes_are_those_of_the_reference(name: str) -> None:
    abstract = saturated(program(name))
    assert (abstract.e_nodes, abstract.e_classes) == SIZES[name]
    assert abstract.is_saturated


def test_numbers_of_any_size_are_functions_names() -> None:
    """A mask times -3.4e38 is no size of a sum."""
    builder = ProgramBuilder("masked", x="m=4 n=4", mask="m=4 n=4")
    far = builder.apply("shift", builder.apply("scale", "mask", value=-3.4e38), value=0.5)
    abstract = saturated(builder.build(builder.apply("sub", "x", far)))
    rows = abstract.database.execute("SELECT op, name, size FROM abstract ORDER BY op")
    expected = [("scale", "scale -3.4e+38", 0), ("shift", "shift 0.5", 0), ("sub", "", 0)]
    assert [tuple(row) for row in rows] == expected


def test_programs_that_differ_by_names_are_saturated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(abstract: AbstractEGraph) -> set[tuple[object, ...]]:
        return set(map(tuple, abstract.database.execute("FROM abstract")))

    monkeypatch.setattr(abstract_egraph, "_kept", {})
    first = saturated(program("mlp"))
    fresh = rows(first)
    first.database.run("mugraph/forget_classes")
    monkeypatch.setattr(abstract_egraph, "explore", None)
    for _ in range(2):
        again = saturated(named_by_order(program("mlp")))
        assert rows(again) == fresh
        assert [*again.classes.values()] == [*first.classes.values()]
        assert (again.outputs, again.e_nodes) == (first.outputs, first.e_nodes)
        again.database.run("mugraph/forget_classes")
    for other in (program("mlp", k=24), program("ntrans")):
        with pytest.raises(TypeError):  # these are saturated themselves
            saturated(other)


def test_axioms_have_names_and_laws_and_are_known_only_while_they_are_used() -> None:
    with abstract_operators():
        rules = axioms([12])
        assert "abstract_sum" in operators()
    assert "abstract_sum" not in operators()
    assert all(rule.law for rule in rules)
    assert len({rule.name for rule in rules}) == len(rules)


def test_a_number_falls_apart_smallest_factor_first() -> None:
    assert chain(12) == [(12, 2, 6), (6, 2, 3)]
    assert chain(7) == chain(1) == []
