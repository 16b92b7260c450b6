"""Both sides of a rule as a graph: they compute what the rule claims."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import UnsoundRuleError, UsageError
from relational_tensat.explore.derivation.configurations import generic_configurations
from relational_tensat.explore.derivation.derivation import both_sides
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.verify.evaluate import evaluate_graph
from tests.explore.derivation.examples import COMMUTES, rule

TASO = {law.name: law for law in taso_rules()}
#: With two sources, with a split, with parts on the left, with an operand for a target.
SHAPES_OF_RULES = [
    *(law for law in load_rules() if law.name in (
        "part-of-concat-second", "concat-of-both-parts", "merge-products-sharing-left",
        "flatten-concat-of-pairs", "transpose-twice", "drop-transpose", "function-of-part[relu]",
    )),
    TASO["taso-124"], TASO["taso-129"],
]  # fmt: skip


@pytest.mark.parametrize("law", SHAPES_OF_RULES, ids=lambda law: law.name)
def test_both_sides_have_equal_values(law: Rule) -> None:
    law = law.everywhere
    configurations = generic_configurations(law, 3, SeededChoices(law.name))
    sides = both_sides(law, configurations)
    assert len(sides.pairs) == len(configurations)
    generator = np.random.default_rng(0)
    inputs = {
        name: generator.integers(-4, 5, size=kind.shape).astype("float32")
        for name, kind in sides.graph.inputs.items()
    }
    values = evaluate_graph(sides.graph, inputs, {})
    assert set(values) == {name for pairs in sides.pairs for pair in pairs for name in pair}
    for pairs in sides.pairs:
        assert len(pairs) == len(law.sources)
        for left, right in pairs:
            assert left != right
            np.testing.assert_allclose(values[left], values[right], rtol=1e-5)


def test_configurations_share_no_input() -> None:
    configurations = generic_configurations(COMMUTES, 2, SeededChoices(0))
    sides = both_sides(COMMUTES, configurations)
    assert list(sides.graph.inputs) == ["0.x", "0.y", "1.x", "1.y"]
    assert [node.op for node in sides.graph.nodes] == ["add"] * 4


def test_a_rule_that_does_not_apply_is_refused() -> None:
    never = rule("never", "(add ?x ?y)", "(add ?y ?x)", "(< (rank ?x) 0)")
    with pytest.raises(UsageError, match="'never' does not apply"):
        both_sides(never, generic_configurations(COMMUTES, 1, SeededChoices(0)))


def test_a_rule_that_changes_the_type_is_refused() -> None:
    wrong = rule("wrong", "(add ?x ?y)", "(cast ?x :dtype bool)")
    with pytest.raises(UnsoundRuleError, match="wrong"):
        both_sides(wrong, generic_configurations(COMMUTES, 1, SeededChoices(0)))
