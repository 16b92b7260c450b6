"""Rules as typed Python: functions whose parameters are the variables, ``Rule`` values out.

    from relational_tensat.rules.builder import Rewrite, Tensor, fn, ops, rewrite, rule

    @rule(law="x + x = 2·x")
    def sum_of_same_is_double(x: Tensor) -> Rewrite:
        return rewrite(ops.add(x, x)).to(ops.smul(x, value=2)).where(fn.is_float(x))

The rule language reads the same: an expression is a form of it, and the same reader checks it and makes the
rules. ``ops`` has a function for each operator, ``fn`` for each function of conditions.
"""

from relational_tensat.rules.builder import fn, ops
from relational_tensat.rules.builder.definition import (
    Rewrite,
    Variant,
    build_rules,
    rewrite,
    rule,
    variant,
)
from relational_tensat.rules.builder.expressions import Choice, Tensor, Value, optional

__all__ = [
    "Choice",
    "Rewrite",
    "Tensor",
    "Value",
    "Variant",
    "build_rules",
    "fn",
    "ops",
    "optional",
    "rewrite",
    "rule",
    "variant",
]
