"""A rule in machine arithmetic, element type by element type.

A law that held over the real numbers, or over a field, is tried again on the configurations at hand, with
each element type in turn for the one that most operands have: see ``machine`` for what has to agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from relational_tensat.rules.soundness import each_element
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.inputs import Inputs, in_dtype, main_dtype
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.machine import MachineValues, Operands, compared, rounds
from relational_tensat.rules.soundness.sides import Sides, has_floats
from relational_tensat.rules.soundness.verdict import TYPE_EVIDENCE, VALUES
from relational_tensat.tensor.types import DTYPE_BYTES, Array, TensorType, tensors_of

#: Configurations tried per element type, small ones first (2 without an entry: the type wraps like another
#: one); and those that mix types, as they are.
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
#: Each type begins so many configurations after the one before it: a fault that one type does not show,
#: another one that wraps or rounds alike may.
_STRIDE = 3
#: Draws of round and of other numbers where an error of rounding may decide between whole numbers.
_DECIDING_DRAWS = 60
#: Configurations that are tried with this number for all others, too, where rounding may decide.
_ODD, _ODD_NUMBER = 6, 0.7
#: What z3 is asked to prove of one rule: each set of attributes and element types is a law of its own.
_MOST_PROOFS = 24
#: Elements of a configuration that is tried in every type, at most.
_FEW_ELEMENTS = 2048


@dataclass(frozen=True, slots=True)
class Failure:
    """Operands, in their own types, for which the two sides differ on a machine, and the two results."""

    configuration: RuleConfiguration
    sides: Sides
    operands: Sequence[Array]
    what: Operands = Operands.MODERATE


class TypedJudge:
    """Judges one rule in machine arithmetic.

    Attributes:
        evidence: one of ``TYPE_EVIDENCE`` per element type in which the rule was tried.
        failure: the first that was met.
        shown: per element type, which values elements had.
    """

    def __init__(self, judge: Judge, seed: int) -> None:
        self._judge = judge
        self._seed = seed
        self.evidence: dict[str, str] = {}
        self.failure: Failure | None = None
        self.shown: dict[str, str] = {}
        self._proved: dict[object, bool] = {}

    def run(
        self, configurations: Sequence[RuleConfiguration], always: Sequence[RuleConfiguration] = ()
    ) -> None:
        """Try a rule in every type that configurations exist in; stop at the first failure.

        Args:
            always: configurations that are tried as they are, beside all others.
        """
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
        mixed = [candidate for candidate in few if _mixes(candidate)][:_MIXED]
        odd = [other for other in map(self._with_odd_numbers, few[:_ODD]) if other is not None]
        for configuration in (*mixed, *always, *odd):
            sides = self._judge.sides(configuration)
            if sides is not None and (configuration not in odd or _decides_by_rounding(sides)):
                self._try(main_dtype(configuration) or "", configuration, sides)
                if self.failure is not None:
                    return

    def _with_odd_numbers(self, configuration: RuleConfiguration) -> RuleConfiguration | None:
        """Return a configuration whose numbers are no sums of few powers of 2, as those drawn are."""
        plan = self._judge.plan
        inputs = Inputs.of(plan, configuration)
        names = [name for name, number in inputs.numbers(plan) if isinstance(number, float)]
        return inputs.replaced(plan, dict.fromkeys(names, _ODD_NUMBER)).configuration(plan)

    def fails(self, configuration: RuleConfiguration) -> bool:
        """Whether the rule fails on a configuration as it is; keeps the operands."""
        sides = self._judge.sides(configuration)
        if sides is None or not sides.agree_in_type():
            return False
        failure = self._failure(configuration, sides)
        if failure is not None:
            self.failure = failure
        return failure is not None

    def _try(self, dtype: str, configuration: RuleConfiguration, sides: Sides) -> None:
        if not rounds(sides) and not sides.widened and each_element.is_flat(sides):
            if self._is_proved(dtype, configuration, sides) or self.failure is not None:
                return
        else:
            self._show(dtype, VALUES[1] if _all_integers(sides) else VALUES[2])
        self.failure = self._failure(configuration, sides)
        if self.failure is not None:
            return
        extreme = self._extreme_failure(configuration, sides)
        if extreme is not None and not rounds(sides):
            self.failure = extreme
            return
        self._note(dtype, "everywhere" if extreme is None else "moderate")

    def _show(self, dtype: str, values: str) -> None:
        """Note which values elements had, unless more telling ones were noted."""
        known = self.shown.get(dtype, VALUES[-1])
        self.shown[dtype] = min(known, values, key=VALUES.index)

    def _note(self, dtype: str, evidence: str) -> None:
        best = self.evidence.get(dtype, TYPE_EVIDENCE[0])
        if dtype not in self.evidence or TYPE_EVIDENCE.index(evidence) > TYPE_EVIDENCE.index(best):
            self.evidence[dtype] = evidence

    def _failure(self, configuration: RuleConfiguration, sides: Sides) -> Failure | None:
        values = self._values(sides)
        samples = [*values.moderate(), *values.integers()]
        if _decides_by_rounding(sides):
            for scale in ("round", "ordinary"):
                samples += [values.drawn(scale) for _ in range(_DECIDING_DRAWS)]
        if not _has_floats(sides):  # integers are what they are: their ends are as good as any
            samples += [values.extreme() for _ in range(_count(sides))]
        tries = [(operands, Operands.MODERATE) for operands in samples]
        tries += [(operands, Operands.MASKED) for operands in values.masked()]
        for operands, what in tries:
            outcome, _ = compared(sides, operands, what)
            if outcome is LawOutcome.FAILS:
                return Failure(configuration, sides, operands, what)
        return None

    def _extreme_failure(self, configuration: RuleConfiguration, sides: Sides) -> Failure | None:
        """Return extreme operands on which the sides differ; integers were tried on them already."""
        values = self._values(sides)
        for _ in range(_count(sides)):
            operands = values.extreme()
            outcome, _ = compared(sides, operands, Operands.EXTREME)
            if outcome is LawOutcome.FAILS:
                return Failure(configuration, sides, operands, Operands.EXTREME)
        return None

    def _values(self, sides: Sides) -> MachineValues:
        return MachineValues(sides.var_types, sides.left, self._seed)

    def _is_proved(self, dtype: str, configuration: RuleConfiguration, sides: Sides) -> bool:
        """Prove a law of each element, for all shapes; or find where it fails, and keep that.

        A proof for some attributes says nothing of others.
        """
        key = _without_shapes(sides)
        if key not in self._proved:
            flat, is_all = each_element.cases(sides.var_types)
            place = each_element.first_wrong(sides, flat)
            if place is not None:
                operands = [
                    np.broadcast_to(column[place], kind.shape)
                    for column, kind in zip(flat, sides.var_types, strict=True)
                ]
                what = Operands.EXTREME if _has_floats(sides) else Operands.MODERATE
                self.failure = Failure(configuration, sides, operands, what)
                return False
            self._show(dtype, VALUES[0 if is_all else 1])
            asks = each_element.is_elementwise(sides) and len(self._proved) < _MOST_PROOFS
            self._proved[key] = is_all or (asks and each_element.is_proved(sides))
        if self._proved[key]:
            self._note(dtype, "proved")
        return self._proved[key]


def _without_shapes(sides: Sides) -> object:
    """Return the terms that both sides compute at any shapes."""
    nodes = (
        (node.op, node.children, tuple(item for item in node.attrs if item[0] != "shape"))
        for node in (*sides.left.nodes, *sides.right.nodes)
    )
    return tuple(kind.dtype for kind in sides.var_types), tuple(nodes)


def _decides_by_rounding(sides: Sides) -> bool:
    """Whether results are whole numbers that are computed from floats that are rounded."""
    roots = [part for kind in sides.types(sides.left) for part in tensors_of(kind)]
    return rounds(sides) and any(not kind.is_float for kind in roots)


def _all_integers(sides: Sides) -> bool:
    return not any(kind.is_float or kind.dtype == "bool" for kind in sides.var_types)


def _has_floats(sides: Sides) -> bool:
    kinds = (*sides.var_types, *(node.type for node in (*sides.left.nodes, *sides.right.nodes)))
    return any(map(has_floats, kinds))


def _count(sides: Sides) -> int:
    """How many extreme operands are drawn."""
    size = max(1, sum(kind.size for kind in sides.var_types))
    return min(_MOST_EXTREME, 1 + _EXTREME_ELEMENTS // size)


def _spread(configurations: Sequence[RuleConfiguration]) -> Iterator[RuleConfiguration]:
    """Yield configurations in another order: small and larger ones in turn."""
    step = max(1, len(configurations) // max(_PER_TYPE.values()))
    for start in range(step):
        yield from configurations[start::step]


def _from(configurations: Sequence[RuleConfiguration], start: int) -> Iterator[RuleConfiguration]:
    """Yield all configurations, in a circle that begins at an index."""
    start %= max(1, len(configurations))
    yield from configurations[start:]
    yield from configurations[:start]


def _size(configuration: RuleConfiguration) -> int:
    return sum(kind.size for kind in configuration.var_types)


def _mixes(configuration: RuleConfiguration) -> bool:
    """Whether element types differ among operands and results, or are named by attributes."""
    kinds = (*configuration.var_types, *configuration.root_types)
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, TensorType)}
    attr_dtypes = {
        str(a["dtype"]) for op, a in configuration.symbols if "dtype" in a and op == "cast"
    }
    return len(dtypes | attr_dtypes) > 1
