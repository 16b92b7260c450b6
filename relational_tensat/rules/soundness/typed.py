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
from relational_tensat.rules.soundness.machine import compared
from relational_tensat.rules.soundness.machine_values import MachineValues
from relational_tensat.rules.soundness.retyping import in_dtype, main_dtype
from relational_tensat.rules.soundness.sides import Sides, has_floats
from relational_tensat.rules.soundness.verdict import TYPE_EVIDENCE
from relational_tensat.tensor.types import DTYPE_BYTES, Array, TensorType

#: Configurations tried per element type, small ones first (1 where it is not said: what wraps or rounds
#: like another type); and those that mix types, as they are.
_PER_TYPE = {"float32": 3, "float16": 3, "int8": 3, "bfloat16": 2, "int64": 2, "uint8": 2}
_MIXED = 40
#: Draws of extreme operands: so many elements, in so many draws at most.
_EXTREME_ELEMENTS = 128
_MOST_EXTREME = 8
#: Configurations that are tried to be had in a type: where none of them fits, none is expected to.
_ATTEMPTS = 12
#: Elements of a configuration that is tried in every type, at most.
_FEW_ELEMENTS = 2048


@dataclass(frozen=True, slots=True)
class Failure:
    """Operands, in their own types, for which the two sides differ on a machine."""

    configuration: Configuration
    sides: Sides
    operands: Sequence[Array]


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
        """Try a rule in every type that configurations can be had in; stop at the first failure."""
        few = sorted(configurations, key=_size)
        plain = [each for each in few if _size(each) <= _FEW_ELEMENTS and not _mixes(each)]
        for dtype in DTYPE_BYTES:
            tried = 0
            for configuration in islice(_spread(plain), _ATTEMPTS):
                if tried == _PER_TYPE.get(dtype, 1):
                    break
                other = in_dtype(self._judge.plan.rule, configuration, dtype)
                both = None if other is None else self._judge.sides(other)
                if other is not None and both is not None:
                    tried += 1
                    self._try(dtype, other, both)
                    if self.failure is not None:
                        return
        for configuration in [each for each in few if _mixes(each)][:_MIXED]:
            both = self._judge.sides(configuration)
            if both is not None:
                self._try(main_dtype(configuration) or "", configuration, both)
                if self.failure is not None:
                    return

    def fails(self, configuration: Configuration) -> bool:
        """Whether the rule fails on a configuration as it is; keeps the operands."""
        both = self._judge.sides(configuration)
        if both is None or not both.agree_in_type():
            return False
        found = self._failure(configuration, both)
        if found is not None:
            self.failure = found
        return found is not None

    def _try(self, dtype: str, configuration: Configuration, both: Sides) -> None:
        if bitvectors.is_elementwise(both):
            self._try_bits(dtype, configuration, both)
        if self.failure is None and self.evidence.get(dtype) != "proved":
            self.failure = self._failure(configuration, both)
            if self.failure is None:
                self._note(dtype, "everywhere" if self._everywhere(both) else "moderate")

    def _note(self, dtype: str, evidence: str) -> None:
        known = self.evidence.get(dtype, TYPE_EVIDENCE[0])
        if dtype not in self.evidence or TYPE_EVIDENCE.index(evidence) > TYPE_EVIDENCE.index(known):
            self.evidence[dtype] = evidence

    def _failure(self, configuration: Configuration, both: Sides) -> Failure | None:
        values = self._values(both)
        drawn = list(values.moderate())
        if not _has_floats(both):  # integers are what they are: their ends are as good as any
            drawn += [values.extreme() for _ in range(_count(both))]
        for operands in drawn:
            outcome, _ = compared(both, operands)
            if outcome is Outcome.FAILS:
                return Failure(configuration, both, operands)
        return None

    def _everywhere(self, both: Sides) -> bool:
        """Whether the sides agree on extreme operands, too; integers were tried on them already."""
        values = self._values(both)
        tries = (compared(both, values.extreme(), everywhere=True) for _ in range(_count(both)))
        return all(outcome is not Outcome.FAILS for outcome, _ in tries)

    def _values(self, both: Sides) -> MachineValues:
        return MachineValues(both.var_types, both.left, self._seed)

    def _try_bits(self, dtype: str, configuration: Configuration, both: Sides) -> None:
        """Prove a law on integers, or find where it fails."""
        if dtype in self.evidence:
            return
        flat = bitvectors.every_value(both.var_types)
        if flat is not None:
            place = bitvectors.first_wrong(both, flat)
            if place is None:
                self.evidence[dtype] = "proved"
            else:
                operands = [
                    np.broadcast_to(column[place], kind.shape)
                    for column, kind in zip(flat, both.var_types, strict=True)
                ]
                self.failure = Failure(configuration, both, operands)
        elif bitvectors.is_proved(both):
            self.evidence[dtype] = "proved"


def _has_floats(both: Sides) -> bool:
    kinds = (*both.var_types, *(node.type for node in (*both.left.nodes, *both.right.nodes)))
    return any(map(has_floats, kinds))


def _count(both: Sides) -> int:
    """How many extreme operands are drawn."""
    size = max(1, sum(kind.size for kind in both.var_types))
    return min(_MOST_EXTREME, 1 + _EXTREME_ELEMENTS // size)


def _spread(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield configurations in another order: small and larger ones in turn."""
    step = max(1, len(configurations) // max(_PER_TYPE.values()))
    for start in range(step):
        yield from configurations[start::step]


def _size(configuration: Configuration) -> int:
    return sum(kind.size for kind in configuration.var_types)


def _mixes(configuration: Configuration) -> bool:
    """Whether element types differ among operands and results, or are named by attributes."""
    kinds = (*configuration.var_types, *configuration.root_types)
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, TensorType)}
    named = {str(a["dtype"]) for op, a in configuration.symbols if "dtype" in a and op == "cast"}
    return len(dtypes | named) > 1
