"""Of which inputs, numbers and operators terms are built.

A setting is one world of terms: inputs with their types, numbers, operators with the attributes that they
may have. Sizes are small primes, one for each role, so that what is equal is equal for a reason; none is 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from relational_tensat.base.errors import UsageError
from relational_tensat.base.records import record
from relational_tensat.rules.instance import typed_application
from relational_tensat.tensor.operators import Operator, get_operator
from relational_tensat.tensor.operators.attributes import REQUIRED, Attr
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import AttrItems, AttrValue, TensorType

#: Inputs that settings choose from, in the order of preference.
_ROLES: Mapping[str, TensorType] = {
    "x": TensorType("float32", (11, 7)),
    "y": TensorType("float32", (11, 7)),
    "p": TensorType("bool", (11, 7)),
    "q": TensorType("bool", (11, 7)),
    "m": TensorType("float32", (7, 7)),
    "i": TensorType("float32", (2, 3, 5, 7)),
    "w": TensorType("float32", (3, 3, 3, 3)),
    "k": TensorType("int64", (11, 7)),
}
#: Attributes of one kind that are tried, at most, where samples are many.
_MOST_VALUES = 4


@record
class OperatorChoice:
    """An operator, with the attributes that terms may have.

    Attributes:
        attrs: for these operands only; None for what fits any, from the operator's declaration.
    """

    op: str
    arity: int
    attrs: tuple[AttrItems, ...] | None = None

    def applications(self, kinds: tuple[TensorType, ...]) -> Iterator[AttrItems]:
        """Yield attributes, canonical, with which the operator takes these operands."""
        given: Iterable[AttrItems] = self.attrs or ()
        if self.attrs is None:
            declared = get_operator(self.op).attrs
            names = [attr.name for attr in declared]
            values = itertools.product(*(_values(attr, kinds) for attr in declared))
            given = (tuple(zip(names, one, strict=True)) for one in values)
        typed = (typed_application(self.op, items, kinds) for items in given)
        yield from dict.fromkeys(one[0] for one in typed if one is not None)


@record
class TermSetting:
    """A world of terms.

    Attributes:
        inputs: by name, in order.
        numbers: constants that terms may have.
        exact: see ``BatchArithmetic``.
        positive: inputs are above 0, as roots and logarithms need them.
    """

    name: str
    inputs: Mapping[str, TensorType]
    choices: tuple[OperatorChoice, ...]
    numbers: tuple[float, ...] = ()
    exact: bool = False
    positive: bool = False


def settings_of_operators(names: Sequence[str]) -> list[TermSetting]:
    """Return the setting of some operators, each with the first inputs that it takes.

    Where one needs positive numbers, there is another setting of these.

    Raises:
        UsageError: an operator does not exist, or takes no operands of any role.
    """
    used: dict[str, None] = {}
    choices = []
    for name in names:
        operator = get_operator(name)
        least, most = operator.arity
        arities = range(least, min(most if most is not None else max(least, 2), 3) + 1)
        fitting = [(arity, roles) for arity in arities if (roles := _roles(operator, arity))]
        if not fitting and operator.multi_output:  # it takes what others make
            choices.append(OperatorChoice(name, least))
        elif not fitting:
            raise UsageError(
                f"the operator {name!r} takes none of the inputs that rules are sought on"
            )
        choices += [OperatorChoice(name, arity) for arity, _ in fitting]
        used.update(dict.fromkeys(role for _, roles in fitting for role in roles))
    inputs = {role: kind for role, kind in _ROLES.items() if role in used}
    needs_positive = any(Use.POSITIVE in get_operator(name).uses for name in names)
    return [
        TermSetting("operators", inputs, tuple(choices), positive=positive)
        for positive in ((False, True) if needs_positive else (False,))
    ]


def _roles(operator: Operator, arity: int) -> tuple[str, ...]:
    """Return the first different inputs that an operator takes with some attributes."""
    for roles in itertools.permutations(_ROLES, arity):
        kinds = tuple(_ROLES[role] for role in roles)
        if next(OperatorChoice(operator.name, arity).applications(kinds), None) is not None:
            return roles
    return ()


def _values(attr: Attr, kinds: tuple[TensorType, ...]) -> Sequence[AttrValue]:
    """Return values of an attribute that operands of these types suggest."""
    rank = kinds[0].rank if kinds else 0
    default = [] if attr.default is REQUIRED else [attr.default]
    match attr.name, attr.kind:
        case "axis", _:
            return range(rank)
        case "axes", _:
            return [(axis,) for axis in range(rank)]
        case "perm", _:
            straight = tuple(range(rank))
            return [perm for perm in itertools.permutations(straight) if perm != straight][:5]
        case "sizes", _:
            return _pieces(kinds[0])
        case _, "dtype":
            return ["float32"] if kinds[0].dtype == "bool" else ["bool"]
        case _, "bool":
            return [True]
        case _, "padding":
            return ["same"]
    return list(dict.fromkeys([*default, *attr.choices, *attr.samples[:_MOST_VALUES]]))


def _pieces(kind: TensorType) -> list[AttrValue]:
    """Return the ways to cut an axis in two that joining tensors of equal size makes."""
    whole = [
        (n, size) for size in kind.shape for n in (2, 3, 5, 7, 11) if size % n == 0 and size > n
    ]
    return list(dict.fromkeys(
        (n * cut, size - n * cut) for n, size in whole for cut in range(1, size // n)
    ))  # fmt: skip
