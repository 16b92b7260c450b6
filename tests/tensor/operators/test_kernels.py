"""What runs for each operator: nothing, a view, a copy, or a kernel that computes."""

from __future__ import annotations

import pytest

from relational_tensat.cost import load_profile
from relational_tensat.tensor.operators import operators
from relational_tensat.tensor.operators.traits import KERNELS

NOTHING = {"input", "weight", "fill", "noop", "part", "identity", "dropout"}
COPIES = {"transpose", "concat", "split", "slice", "pad", "gather", "enlarge", "expand", "merge"}


def of_kind(kernel: str) -> set[str]:
    return {name for name, operator in operators().items() if operator.kernel == kernel}


def test_every_operator_says_what_runs_for_it() -> None:
    assert of_kind("nothing") == NOTHING
    assert of_kind("view") == {"reshape"}
    assert of_kind("copy") == COPIES
    assert sum(len(of_kind(kernel)) for kernel in KERNELS) == len(operators())


def test_free_is_what_launches_no_kernel() -> None:
    assert {name for name, operator in operators().items() if operator.free} == NOTHING | {
        "reshape"
    }


@pytest.mark.parametrize("name", ["t4", "a100", "h100", "h200", "cpu"])
def test_no_profile_but_the_peers_makes_a_copy_free(name: str) -> None:
    free = load_profile(name).free
    assert free <= NOTHING | {"reshape"}
    assert load_profile("tensat_t4").free & COPIES == {"transpose", "split", "enlarge", "merge"}
