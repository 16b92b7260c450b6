"""The smallest configuration where a law fails, found by Hypothesis from one that was met.

Hypothesis shrinks by simpler decisions. ``trimmed`` takes the steps beyond them: dimensions cut down, axes
left out, plain element types. Every neighbour that still fails is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import ExampleDatabase, choices_to_bytes

from relational_tensat.base.folders import temporary_folder
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.inputs import Types, retyped
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.tensor.operators.samples import RandomChoices
from relational_tensat.tensor.types import AttrValue, TensorType

_PLAIN = "float32"

#: Neighbours that are tried at most: with axes of thousands, hundreds of them take a minute.
MOST_TRIED = 300


def trimmed(
    rule: Rule, configuration: RuleConfiguration, fails: Callable[[RuleConfiguration], bool]
) -> RuleConfiguration:
    """Return a configuration that fails and has no smaller neighbour that does.

    After ``MOST_TRIED`` neighbours, the smallest so far.
    """
    tried, smaller = 0, True
    while smaller:
        smaller = False
        for types in _neighbours(configuration.var_types):
            candidate = (
                None if types == configuration.var_types else retyped(rule, configuration, types)
            )
            if candidate is None:
                continue
            tried += 1
            if tried > MOST_TRIED:
                return configuration
            if fails(candidate):
                configuration, smaller = candidate, True
                break
    return configuration


def _neighbours(types: Types) -> Iterator[Types]:
    """Yield smaller operands, the boldest cuts first."""
    if any(kind.dtype != _PLAIN for kind in types):
        yield tuple(TensorType(_PLAIN, kind.shape) for kind in types)
    rank = max((kind.rank for kind in types), default=0)
    sizes = sorted({size for kind in types for size in kind.shape} - {1}, reverse=True)
    for axis in range(1, rank + 1):  # counted from the back, as broadcasting does
        yield tuple(_with_size(kind, axis, lambda _: None) for kind in types)
    for size in sizes:
        for less in _less(size):
            yield tuple(_replaced(kind, size, less) for kind in types)
    for axis in range(1, rank + 1):
        yield tuple(_with_size(kind, axis, lambda _: 1) for kind in types)
    yield from _shorter(types)
    for once in _shorter(types):
        yield from _shorter(once)


def _less(size: int) -> list[int]:
    """Return smaller sizes: all of a small one, some of a large one."""
    cuts = {size // 2, size - size // 4, size - size // 16, size - 1}
    powers = {1 << bits for bits in range(size.bit_length())}
    return sorted(n for n in {*range(1, 9), *powers, *cuts} if 0 < n < size)


def _shorter(types: Types) -> Iterator[Types]:
    """Yield operands of which one is shorter along one axis."""
    for place, kind in enumerate(types):
        for axis in range(1, kind.rank + 1):
            for less in _less(kind.shape[-axis]):
                changed = replace(kind, shape=(*kind.shape[:-axis], less, *_tail(kind, axis)))
                yield (*types[:place], changed, *types[place + 1 :])


def _tail(kind: TensorType, axis: int) -> tuple[int, ...]:
    return kind.shape[len(kind.shape) - axis + 1 :]


def _with_size(kind: TensorType, axis: int, size: Callable[[int], int | None]) -> TensorType:
    """Return a type with another size on an axis counted from the back; None drops the axis."""
    if axis > kind.rank:
        return kind
    new_size = size(kind.shape[-axis])
    middle = () if new_size is None else (new_size,)
    return replace(kind, shape=(*kind.shape[: kind.rank - axis], *middle, *_tail(kind, axis)))


def _replaced(kind: TensorType, size: int, less: int) -> TensorType:
    return replace(kind, shape=tuple(less if length == size else length for length in kind.shape))


#: Configurations that are judged before the smallest one so far will do.
_MOST_JUDGED = 600
#: And more after that, when single dimensions are cut down.
_MOST_TRIMMED = 1200


class DrawnChoices(RandomChoices):
    """Decisions that Hypothesis takes, so that it can shrink what is drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        """Return a number in 0..bound-1."""
        return 0 if bound == 1 else self._draw(st.integers(0, bound - 1))


@st.composite
def drawn_configurations(draw: st.DrawFn, judge: Judge) -> RuleConfiguration | None:
    """Configurations of a rule as Hypothesis draws them; None where the attempt failed."""
    return draw_configuration(judge.plan, DrawnChoices(draw))


def smallest(
    judge: Judge, configuration: RuleConfiguration, choices: Sequence[int]
) -> RuleConfiguration:
    """Return the smallest configuration where the law fails.

    Args:
        configuration: one where it fails.
        choices: the decisions that led to it; Hypothesis starts from them.
    """
    search = _Shrink(judge, configuration)

    @settings(
        database=_Start(choices),
        phases=(Phase.reuse, Phase.shrink),
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @seed(0)  # the same counterexample every time
    @given(drawn_configurations(judge))
    def holds(candidate: RuleConfiguration | None) -> None:
        if search.fails(candidate):
            raise _FoundError

    with _own_folder(), suppress(_FoundError):
        holds()
    search.allowed = _MOST_TRIMMED
    return trimmed(judge.plan.rule, search.best, search.fails)


@contextmanager
def _own_folder() -> Iterator[None]:
    """Keep what Hypothesis writes (the constants of the code it runs) out of the user's folder."""
    with temporary_folder() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


class _FoundError(Exception):
    """Tells Hypothesis that the law fails."""


class _Start(ExampleDatabase):
    """Remembers nothing but the decisions that Hypothesis starts from.

    One decision too many: Hypothesis does not shrink again what it replays to the end.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self._saved = choices_to_bytes([*choices, 0])

    def fetch(self, key: bytes) -> Iterator[bytes]:
        """Yield the decisions, under any name of the test."""
        yield self._saved

    def save(self, key: bytes, value: bytes) -> None:
        """Forget it."""

    def delete(self, key: bytes, value: bytes) -> None:
        """Keep them: they are the only ones."""


class _Shrink:
    """Judges what Hypothesis draws, and keeps the smallest failure.

    Attributes:
        best: the smallest failure so far.
        allowed: how many different configurations may be judged.
    """

    def __init__(self, judge: Judge, configuration: RuleConfiguration) -> None:
        self._judge = replace(judge)
        self._known: dict[object, bool] = {}
        self.best = configuration
        self.allowed = _MOST_JUDGED

    def fails(self, configuration: RuleConfiguration | None) -> bool:
        """Whether the law fails on a configuration; no for new ones beyond those allowed."""
        if configuration is None:
            return False
        key = configuration.key
        if key not in self._known:
            if len(self._known) >= self.allowed:
                return False
            self._known[key] = self._judged(configuration)
            if self._known[key] and _size(configuration) < _size(self.best):
                self.best = configuration
        return self._known[key]

    def _judged(self, configuration: RuleConfiguration) -> bool:
        sides = self._judge.sides(configuration)
        if sides is None:
            return False
        return self._judge.holds(configuration, sides) is LawOutcome.FAILS


def _size(configuration: RuleConfiguration) -> tuple[int, int, float]:
    """Return elements, ranks and the size of parameters, to compare configurations by."""
    kinds = configuration.var_types
    parameters = sum(_extent(v) for _, attrs in configuration.symbols for v in attrs.values())
    plain = sum(kind.dtype != "float32" for kind in kinds)
    return (
        sum(kind.size for kind in kinds),
        sum(kind.rank for kind in kinds),
        parameters + plain,
    )


def _extent(value: AttrValue) -> float:
    if isinstance(value, tuple):
        return sum(map(_extent, value))
    return abs(value) if isinstance(value, int | float) else len(value)
