"""Masks of -inf are tested: what is wrong only there is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.arithmetic import Elements, Numbers
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.verify import verification
from relational_tensat.mugraph.verify.masks import masked, masks_of, takes_masks
from relational_tensat.mugraph.verify.random_tests import first_difference, relative_error
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.masks import by_bools, chosen_attention, guarded_program, masked_attention
from tests.mugraph.mutants import mutants
from tests.tiers import nightly

SIZES = {"h": 2, "q": 8, "d": 4, "k": 16, "e": 4}
PROGRAM, GRAPH = guarded_program(**SIZES), masked_attention(**SIZES)
CHOSEN, CHOOSING = chosen_attention(**SIZES), by_bools(GRAPH)


@pytest.fixture(autouse=True)
def _few_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_TESTS_WITHOUT_BOUND", 2)


def with_operator(graph: MuGraph, old: str, new: str) -> MuGraph:
    """Return a program, or a μGraph of one kernel, with another operator."""
    if not graph.kernels:
        steps = tuple(replace(s, op=new) if s.op == old else s for s in graph.operators)
        return replace(graph, steps=steps)
    (kernel,) = graph.kernels
    inner = tuple(
        replace(s, op=new) if isinstance(s, Operation) and s.op == old else s
        for s in kernel.block.steps
    )
    return replace(graph, steps=(replace(kernel, block=replace(kernel.block, steps=inner)),))


def test_masks_are_what_exponentials_get_added_and_nothing_else_reads() -> None:
    assert masks_of(PROGRAM) == ("mask",)
    assert masks_of(program("attention", **SIZES)) == ()
    b = ProgramBuilder("twice", x="m=4 n=8", y="m=4 n=8", z="m=4 n=8")
    weights = b.apply("exp", b.apply("sub", b.apply("add", "x", "y"), "z"))
    twice = b.build(b.apply("sum", b.apply("mul", weights, "y"), over=("n",)))
    assert masks_of(twice) == ("x",)  # y is multiplied, too, and z taken away
    values = {name: np.zeros((4, 8)) for name in "xyz"}
    every = list(masked(twice, values, 1))
    left = [np.isfinite(given["x"]).sum(axis=1) for given in every]
    assert len(left) == 3 and np.isfinite([given["y"] for given in every]).all()
    assert all({0, 8} <= set(rows) for rows in left)  # no element of a row, and all


def test_bools_leave_half_of_a_row_any_part_and_nothing() -> None:
    values = {name: np.ones([dim.size for dim in dims]) for name, dims in CHOSEN.inputs.items()}
    every = [given["mask"] for given in masked(CHOSEN, values, 1)]
    assert len(every) == 4 and {*np.unique(every)} == {0.0, 1.0}
    for left in every:
        assert {0, SIZES["k"] // 2, SIZES["k"]} <= {*map(int, left.sum(axis=1))}


@pytest.mark.parametrize(("program", "graph"), [(PROGRAM, GRAPH), (CHOSEN, CHOOSING)])
def test_attention_with_a_guard_passes(program: MuGraph, graph: MuGraph) -> None:
    checked = verify_mugraph(program, graph, 1)
    assert checked.passed and checked.is_stable and checked.takes_masks


def test_what_bools_do_not_leave_is_what_the_program_says() -> None:
    """Another number is refused, and so is what reads numbers where the program has bools."""
    steps = CHOOSING.kernels[0].block.steps
    other = tuple(
        replace(s, attrs={"value": 0.0}) if isinstance(s, Operation) and s.op == "keep" else s
        for s in steps
    )
    (kernel,) = CHOOSING.kernels
    wrong = replace(CHOOSING, steps=(replace(kernel, block=replace(kernel.block, steps=other)),))
    assert first_difference(CHOSEN, wrong, 1) is not None
    assert takes_masks(CHOSEN, wrong, 1) is False
    with pytest.raises(VerificationError, match="other inputs are bools than the program's"):
        verify_mugraph(CHOSEN, GRAPH, 1)


def test_masks_are_tried_in_the_element_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is wrong in float16 only, where little is left, is refused."""

    def of_float16(self: Numbers, condition: Elements, x: Elements, value: float) -> Elements:
        nothing = value if x.dtype == np.float64 else -10.0
        return np.where(condition != 0, x, np.asarray(nothing, x.dtype))

    assert takes_masks(CHOSEN, CHOOSING, 1)
    monkeypatch.setattr(Numbers, "kept", of_float16)
    assert takes_masks(CHOSEN, CHOOSING, 1) is False


@pytest.mark.parametrize(("op", "other"), [("div_or_zero", "div"), ("div", "div_or_zero")])
def test_a_guard_is_no_quotient_and_no_quotient_a_guard(op: str, other: str) -> None:
    """The fields tell them apart, though they have no NaN; so do masks, in float64."""
    original, graph = (with_operator(one, "div_or_zero", op) for one in (PROGRAM, GRAPH))
    mutant = with_operator(graph, op, other)
    assert first_difference(original, graph, 1) is None
    assert first_difference(original, mutant, 1) is not None
    assert takes_masks(original, graph, 1) and takes_masks(original, mutant, 1) is False
    assert relative_error(original, mutant, 1) < 1e-12  # without masks they are equal


def test_an_infinite_maximum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def infinite(self: Numbers, x: Elements, axes: list[int]) -> Elements:
        return np.asarray(np.max(x, axis=tuple(axes)))

    monkeypatch.setattr(Numbers, "largest", infinite)
    checked = verify_mugraph(PROGRAM, GRAPH, 1)
    assert checked.takes_masks is False and not checked.passed
    assert checked.difference is None and checked.float64_error == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("count", [30, nightly(120)])
@pytest.mark.parametrize(("program", "graph"), [(PROGRAM, GRAPH), (CHOSEN, CHOOSING)])
def test_no_mutant_with_another_mask_passes(program: MuGraph, graph: MuGraph, count: int) -> None:
    """Other maps, operands, operators and loops; what passes is right with masks, too."""
    refused = 0
    for mutant in mutants(graph, count, seed=2):
        if verify_mugraph(program, mutant, 3).passed:
            assert relative_error(stabilized(program), mutant, 7) < 1e-9
            assert takes_masks(program, mutant, 8)
        else:
            refused += 1
    assert (
        refused >= count * 5 // 12
    )  # the others load more, or in another order, and compute the same
