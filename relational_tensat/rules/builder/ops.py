"""A function for each operator that rules may use, made when it is first used.

Their arguments are in ``ops.pyi``, which ``builder.stubs`` writes from the operators' descriptions.
"""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.base.errors import nearest
from relational_tensat.rules.builder.expressions import Tensor, apply
from relational_tensat.tensor.operators import operators


def __getattr__(name: str) -> Callable[..., Tensor]:
    names = _known()
    if name not in names:
        raise AttributeError(f"unknown operator {name!r}{nearest(name, names)}")

    def operator(*operands: Tensor, **attributes: object) -> Tensor:
        return apply(name, operands, attributes)

    operator.__name__ = operator.__qualname__ = name
    return operator


def __dir__() -> list[str]:
    return _known()


def _known() -> list[str]:
    """Return the names of the operators that rules may use, sorted."""
    return [name for name, operator in operators().items() if operator.in_rules]
