"""Where a rule is to be derived: a few sets of operands on which it applies, generic ones first.

Sizes of operands are spread: made different, wherever the rule does not need them equal. On operands that
are equal by accident a law can hold for other reasons than its own. A product of square matrices takes its
factors in any order, and a tensor of one element is its own sum. So what is proven of a rule should be
proven where nothing is equal but what its sources and conditions ask for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.samples import RandomChoices
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

#: A dimension: the index of a variable, and an axis.
Place: TypeAlias = tuple[int, int]

_MOST_GROUPS = 300


def spread(rule: Rule, configuration: RuleConfiguration) -> RuleConfiguration:
    """Return a configuration of the same ranks, in which sizes are equal only where they must be.

    Each size in turn becomes a prime of its own, together with as few of the sizes equal to it as the
    sources' shape rules and the rule's conditions allow. Sizes that are bound to others by more than
    equality (the channels of a grouped convolution) stay as they are.

    Raises:
        UnsoundRuleError: on the way the rule changed the type of a result.
    """
    sizes = [size for kind in configuration.var_types for size in kind.shape]
    fresh = _primes(above=max(sizes, default=1))
    waiting = [
        (variable, axis)
        for variable, kind in enumerate(configuration.var_types)
        for axis in range(kind.rank)
    ]
    while waiting:
        place = waiting.pop(0)
        size = configuration.var_types[place[0]].shape[place[1]]
        equal = [p for p in waiting if configuration.var_types[p[0]].shape[p[1]] == size]
        prime = next(fresh)
        moved = _least_moved(rule, configuration, place, equal, prime)
        if moved is not None:
            configuration, places = moved
            waiting = [other for other in waiting if other not in places]
    return configuration


def _least_moved(
    rule: Rule, configuration: RuleConfiguration, place: Place, equal: Sequence[Place], size: int
) -> tuple[RuleConfiguration, set[Place]] | None:
    """Give ``place`` a new size, and as few of ``equal`` with it as possible; None if it cannot be.

    Sizes that must be equal to each other are mostly a handful; if many more happen to be, the search ends
    at some point, and they all move or none.
    """
    groups = (
        {place, *combination}
        for count in range(len(equal))
        for combination in itertools.combinations(equal, count)
    )
    for places in itertools.chain(itertools.islice(groups, _MOST_GROUPS), [{place, *equal}]):
        candidate = _resized(rule, configuration, places, size)
        if candidate is not None:
            return candidate, places
    return None


def _resized(
    rule: Rule, configuration: RuleConfiguration, places: set[Place], size: int
) -> RuleConfiguration | None:
    """Return the configuration with other sizes at some places; None where the rule does not apply."""
    types = tuple(
        kind.with_shape(
            tuple(size if (v, axis) in places else old for axis, old in enumerate(kind.shape))
        )
        for v, kind in enumerate(configuration.var_types)
    )
    candidate = retyped(rule, configuration.symbols, types)
    return None if candidate is None or candidate.instantiate(rule) is None else candidate


def retyped(
    rule: Rule, symbols: Sequence[tuple[str, Attrs]], var_types: tuple[TensorType, ...]
) -> RuleConfiguration | None:
    """Return the configuration of the same operators on operands of other types; None if they misfit."""
    types = dict(zip(tensor_vars(rule), var_types, strict=True))
    remainder = iter(symbols)
    placed: dict[int, tuple[str, Attrs]] = {}

    def visit(term: Term) -> ValueType:
        if isinstance(term, Var):
            return types[term.name]
        index = len(placed)
        placed[index] = next(remainder)
        operands = tuple(visit(child) for child in term.children)
        operator = get_operator(term.op)
        attrs = operator.canonical(operands, placed[index][1])
        placed[index] = (term.op, attrs)
        return operator.infer(operands, attrs)

    try:
        roots = tuple(visit(source) for source in rule.sources)
    except ShapeError:
        return None
    return RuleConfiguration(tuple(placed.values()), var_types, roots)


def _primes(above: int) -> Iterator[int]:
    primes: list[int] = []
    candidate = 2
    while True:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
            if candidate > above:
                yield candidate
        candidate += 1


#: Per operand, per dimension: 1, or an id that equal sizes share.
Pattern: TypeAlias = tuple[tuple[int, ...], ...]

#: So many different patterns of equal sizes are drawn, of which a few are chosen; fewer if so many operands
#: in a row bring up no new one.
_PATTERNS = 16
_PATIENCE = 150
_ATTEMPTS = 4_000


def generic_configurations(
    rule: Rule, count: int, choices: RandomChoices
) -> list[RuleConfiguration]:
    """Return up to ``count`` configurations on which a rule applies, no two of one pattern.

    The first is the most generic that was drawn: the fewest sizes of 1, then the most different ones.
    The others are taken evenly from there to the most special, so that operands that broadcast and
    convolutions of several groups have their turn.

    Raises:
        UnsoundRuleError: on operands that were drawn the rule changes the type of a result.
    """
    different: dict[Pattern, RuleConfiguration] = {}
    for configuration in _drawn(rule, choices):
        wider = spread(rule, configuration)
        different.setdefault(pattern(wider), wider)
    ranked = [different[key] for key in sorted(different, key=_specialness)]
    if len(ranked) <= count:
        return ranked
    return [ranked[i * (len(ranked) - 1) // max(count - 1, 1)] for i in range(count)]


def _drawn(rule: Rule, choices: RandomChoices) -> list[RuleConfiguration]:
    """Return configurations on which the rule applies, one for each pattern that comes up."""
    drawn: dict[Pattern, RuleConfiguration] = {}
    since_new, plan = 0, DrawPlan(rule)
    for _ in range(_ATTEMPTS):
        configuration = draw_configuration(plan, choices)
        if configuration is None or configuration.instantiate(rule) is None:
            continue
        count = len(drawn)
        drawn.setdefault(pattern(configuration), configuration)
        since_new = since_new + 1 if len(drawn) == count else 0
        if len(drawn) == _PATTERNS or since_new == _PATIENCE:
            break
    return list(drawn.values())


def pattern(configuration: RuleConfiguration) -> Pattern:
    """Return which sizes of the operands are equal to each other, and which are 1."""
    names: dict[int, int] = {1: 1}
    return tuple(
        tuple(names.setdefault(size, len(names) + 1) for size in kind.shape)
        for kind in configuration.var_types
    )


def _specialness(key: Pattern) -> tuple[int, int, Pattern]:
    sizes = [size for shape in key for size in shape]
    return sizes.count(1), -len(set(sizes)), key
