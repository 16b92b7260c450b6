"""A rule in machine arithmetic, element type by element type.

What held over the real numbers, or over a field, is tried again on the configurations at hand, with
each element type in turn for the one that most operands have: see ``machine`` for what has to agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from relational_tensat.rules.soundness import bitvectors
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.rules.soundness.judging import Judge, Outcome
from relational_tensat.rules.soundness.machine import Operands, compared
from relational_tensat.rules.soundness.machine_values import MachineValues
from relational_tensat.rules.soundness.retyping import in_dtype, main_dtype
from relational_tensat.rules.soundness.sides import Sides, has_floats
from relational_tensat.rules.soundness.verdict import TYPE_EVIDENCE
from relational_tensat.tensor.types import DTYPE_BYTES, Array, TensorType

#: Configurations tried per element type, small ones first (2 where none is given: what wraps
#: like another type); and those that mix types, as they are.
_PER_TYPE = {
    "float32": 3,
    "float16": 3,
    "int8": 4,
    "bfloat16": 2,
    "int64": 3,
    "uint8": 3,
    "float64": 1,
}
_MIXED = 40
#: Draws of extreme operands: so many elements, in so many draws at most.
_EXTREME_ELEMENTS = 128
_MOST_EXTREME = 8
#: Configurations that are retyped to a type: where none of them fits, none is expected to.
_ATTEMPTS = 12
#: Each type begins so many configurations after the one before it: what one type does not show, another
#: that wraps or rounds alike may.
_STRIDE = 3
#: Elements of a configuration that is tried in every type, at most.
_FEW_ELEMENTS = 2048


@dataclass(frozen=True, slots=True)
class Failure:
    """Operands, in their own types, for which the two sides differ on a machine; what they are."""

    configuration: Configuration
    sides: Sides
    operands: Sequence[Array]
    what: Operands = Operands.MODERATE


class TypedJudge:
    """Judges one rule in machine arithmetic.

    Attributes:
        evidence: one of ``TYPE_EVIDENCE`` per element type in which the rule was tried.
        failure: the first that was met.
    """

    def __init__(self, judge: Judge, seed: int) -> None:
        self._judge = judge
        self._seed = seed
        self.evidence: dict[str, str] = {}
        self.failure: Failure | None = None

    def run(self, configurations: Sequence[Configuration]) -> None:
        """Try a rule in every type that configurations exist in; stop at the first failure."""
        few = sorted(configurations, key=_size)
        plain = [
            candidate
            for candidate in few
            if _size(candidate) <= _FEW_ELEMENTS and not _mixes(candidate)
        ]
        spread = list(_spread(plain))
        for index, dtype in enumerate(DTYPE_BYTES):
            count = 0
            for configuration in islice(_from(spread, index * _STRIDE), _ATTEMPTS):
                if count == _PER_TYPE.get(dtype, 2):
                    break
                retyped = in_dtype(self._judge.plan.rule, configuration, dtype)
                sides = None if retyped is None else self._judge.sides(retyped)
                if retyped is not None and sides is not None:
                    count += 1
                    self._try(dtype, retyped, sides)
                    if self.failure is not None:
                        return
        for configuration in [candidate for candidate in few if _mixes(candidate)][:_MIXED]:
            sides = self._judge.sides(configuration)
            if sides is not None:
                self._try(main_dtype(configuration) or "", configuration, sides)
                if self.failure is not None:
                    return

    def fails(self, configuration: Configuration) -> bool:
        """Whether the rule fails on a configuration as it is; keeps the operands."""
        sides = self._judge.sides(configuration)
        if sides is None or not sides.agree_in_type():
            return False
        failure = self._failure(configuration, sides)
        if failure is not None:
            self.failure = failure
        return failure is not None

    def _try(self, dtype: str, configuration: Configuration, sides: Sides) -> None:
        if bitvectors.is_elementwise(sides):
            self._try_bits(dtype, configuration, sides)
        if self.failure is None and self.evidence.get(dtype) != "proved":
            self.failure = self._failure(configuration, sides)
            if self.failure is None:
                self._note(dtype, "everywhere" if self._everywhere(sides) else "moderate")

    def _note(self, dtype: str, evidence: str) -> None:
        best = self.evidence.get(dtype, TYPE_EVIDENCE[0])
        if dtype not in self.evidence or TYPE_EVIDENCE.index(evidence) > TYPE_EVIDENCE.index(best):
            self.evidence[dtype] = evidence

    def _failure(self, configuration: Configuration, sides: Sides) -> Failure | None:
        values = self._values(sides)
        samples = list(values.moderate())
        if not _has_floats(sides):  # integers are what they are: their ends are as good as any
            samples += [values.extreme() for _ in range(_count(sides))]
        tries = [(operands, Operands.MODERATE) for operands in samples]
        tries += [(operands, Operands.MASKED) for operands in values.masked()]
        for operands, what in tries:
            outcome, _ = compared(sides, operands, what)
            if outcome is Outcome.FAILS:
                return Failure(configuration, sides, operands, what)
        return None

    def _everywhere(self, sides: Sides) -> bool:
        """Whether the sides agree on extreme operands, too; integers were tried on them already."""
        values = self._values(sides)
        tries = (compared(sides, values.extreme(), Operands.EXTREME) for _ in range(_count(sides)))
        return all(outcome is not Outcome.FAILS for outcome, _ in tries)

    def _values(self, sides: Sides) -> MachineValues:
        return MachineValues(sides.var_types, sides.left, self._seed)

    def _try_bits(self, dtype: str, configuration: Configuration, sides: Sides) -> None:
        """Prove a law on integers, or find where it fails."""
        if dtype in self.evidence:
            return
        flat = bitvectors.every_value(sides.var_types)
        if flat is not None:
            place = bitvectors.first_wrong(sides, flat)
            if place is None:
                self.evidence[dtype] = "proved"
            else:
                operands = [
                    np.broadcast_to(column[place], kind.shape)
                    for column, kind in zip(flat, sides.var_types, strict=True)
                ]
                self.failure = Failure(configuration, sides, operands)
        elif bitvectors.is_proved(sides):
            self.evidence[dtype] = "proved"


def _has_floats(sides: Sides) -> bool:
    kinds = (*sides.var_types, *(node.type for node in (*sides.left.nodes, *sides.right.nodes)))
    return any(map(has_floats, kinds))


def _count(sides: Sides) -> int:
    """How many extreme operands are drawn."""
    size = max(1, sum(kind.size for kind in sides.var_types))
    return min(_MOST_EXTREME, 1 + _EXTREME_ELEMENTS // size)


def _spread(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield configurations in another order: small and larger ones in turn."""
    step = max(1, len(configurations) // max(_PER_TYPE.values()))
    for start in range(step):
        yield from configurations[start::step]


def _from(configurations: Sequence[Configuration], start: int) -> Iterator[Configuration]:
    """Yield all configurations, in a circle that begins at an index."""
    start %= max(1, len(configurations))
    yield from configurations[start:]
    yield from configurations[:start]


def _size(configuration: Configuration) -> int:
    return sum(kind.size for kind in configuration.var_types)


def _mixes(configuration: Configuration) -> bool:
    """Whether element types differ among operands and results, or are named by attributes."""
    kinds = (*configuration.var_types, *configuration.root_types)
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, TensorType)}
    attr_dtypes = {
        str(a["dtype"]) for op, a in configuration.symbols if "dtype" in a and op == "cast"
    }
    return len(dtypes | attr_dtypes) > 1
