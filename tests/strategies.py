"""The Hypothesis strategies that tests share: types, configurations of rules, attributes.

What is drawn for a rule is drawn by the package itself (``relational_tensat.rules.soundness``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import draws
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.judgement import Judge
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.smallest import DrawnChoices
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import AttrValue, TensorType

plan_of = cache(DrawPlan)


def shapes(max_rank: int = 4, max_size: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of small tensors."""
    return st.lists(st.integers(1, max_size), max_size=max_rank).map(tuple)


def tensor_types(max_rank: int = 4) -> st.SearchStrategy[TensorType]:
    """Types of small tensors."""
    dtypes = st.sampled_from(["float32", "float64", "int64", "bool"])
    return st.builds(TensorType, dtypes, shapes(max_rank))


@st.composite
def configurations(draw: st.DrawFn, rule: Rule) -> RuleConfiguration | None:
    """Configurations for which a rule's sources are valid; None where none was found at once."""
    return draws.draw_configuration(plan_of(rule), DrawnChoices(draw))


#: Attempts of one draw: conditions hold for few operands of some rules.
_ATTEMPTS = 200


@st.composite
def instances(draw: st.DrawFn, judge: Judge) -> tuple[RuleConfiguration, Sides]:
    """Configurations that a rule applies to, with both sides of its law there."""
    choices = DrawnChoices(draw)
    for _ in range(_ATTEMPTS):
        configuration = draws.draw_configuration(judge.plan, choices)
        both = None if configuration is None else judge.sides(configuration)
        if configuration is not None and both is not None:
            return configuration, both
    return reject()


def draw_configuration(rule: Rule, random: Random) -> RuleConfiguration | None:
    """Draw a configuration without Hypothesis, whether or not the rule's conditions hold there.

    None if this attempt failed.
    """
    return draws.draw_configuration(_free_plan(rule), SeededChoices(random.getrandbits(64)))


@cache
def _free_plan(rule: Rule) -> DrawPlan:
    return DrawPlan(replace(rule, conditions=()))


def attribute_values(attr: Attr) -> st.SearchStrategy[AttrValue]:
    """Values of an attribute's kind."""
    if attr.choices:
        return st.sampled_from(attr.choices)
    ints = st.lists(st.integers(-3, 9), max_size=4).map(tuple)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(-3, 9),
        "float": st.floats(allow_nan=False),
        "str": st.text(max_size=4),
        "bool": st.booleans(),
        "ints": ints,
        "floats": st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
        "dtype": st.sampled_from(["float32", "int64"]),
        "padding": st.one_of(st.sampled_from(["same", "valid"]), ints),
    }
    return kinds[attr.kind]
