"""Comparing what two graphs return, output by output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relational_tensat.tensor import Array, TensorType

#: Outputs whose largest element is smaller than this are compared absolutely, against it.
TINY = 1e-30

#: The kinds of NumPy element types that hold numbers: bool, int, unsigned, float.
_NUMBERS = "biuf"
_WHOLE_NUMBERS = "biu"


@dataclass(frozen=True, slots=True)
class Setting:
    """The compared outputs, and their setting.

    Attributes:
        what: how both graphs are computed, and with which weights.
        rows: the masked elements; "" for none.
        sizes: of dynamic dimensions; "" where there is one setting only.
    """

    what: str
    rows: str = ""
    sizes: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        rows = f", {self.rows} masked" if self.rows else ""
        return f"{self.what}{rows}{f' at {self.sizes}' if self.sizes else ''}"


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison that was made, for reports.

    Attributes:
        inputs: the kind of inputs.
        demand: how close outputs have to be.
        remark: a further remark, or "".
    """

    setting: Setting
    runs: int
    inputs: str
    demand: str
    remark: str = ""

    def __str__(self) -> str:
        """Return it as a sentence."""
        times = "run" if self.runs == 1 else "runs"
        remark = f", {self.remark}" if self.remark else ""
        return f"{self.setting}: {self.runs} {times} on {self.inputs}, {self.demand}{remark}"


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The worst that one comparison found at one output, over all its runs.

    Attributes:
        setting: of the comparison.
        output: the output's name in the original.
        type: its element type and shape.
        max_relative_error: see ``relative_error``.
        tolerance: the largest error that passes.
        proves_something: whether a wrong graph could have been found by this.
        note: why the figure proves little or nothing; empty where there is no remark.
        place: where the error is largest, and both values there; "" where shapes differ, or nothing does.
        is_excused: it passes only as something other than a mistake explains it.
    """

    setting: Setting
    output: str
    type: TensorType
    max_relative_error: float
    tolerance: float
    proves_something: bool = True
    note: str = ""
    place: str = ""
    is_excused: bool = False

    @property
    def ok(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.max_relative_error <= self.tolerance


def relative_error(reference: Array, candidate: Array) -> float:
    """Return ``max |a - b| / max |a|``, both taken over the finite elements of the reference.

    NaN and infinity must be at the same places in both; infinite otherwise, and where the shapes differ.
    Integers and bools have an error above 0 wherever they differ at all; infinities and NaN must be equal.
    Of sequences, optionals and maps it is the largest error of what is in them, integers equal.
    """
    if reference.dtype == object or candidate.dtype == object:
        return _error_of_parts(reference, candidate)
    if reference.shape != candidate.shape:
        return float("inf")
    if reference.dtype.kind not in _NUMBERS or candidate.dtype.kind not in _NUMBERS:
        return 0.0 if np.array_equal(reference, candidate) else float("inf")
    if reference.dtype.kind != "f" and np.array_equal(reference, candidate):
        return 0.0
    a, b = reference.astype(np.float64), candidate.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.all():
        a, b = a[finite], b[finite]
    if a.size == 0:
        return 0.0
    if not np.isfinite(b).all():
        return float("inf")
    error = float(np.abs(a - b).max() / max(float(np.abs(a).max()), TINY))
    return error if reference.dtype.kind == "f" else max(error, TINY)  # int64 that float64 lacks


def _error_of_parts(reference: Array, candidate: Array) -> float:
    if reference.dtype != candidate.dtype or reference.shape != candidate.shape:
        return float("inf")
    pairs = zip(reference.flat, candidate.flat, strict=True)
    return max((_error_of_part(a, b) for a, b in pairs), default=0.0)


def _error_of_part(reference: Any, candidate: Any) -> float:
    if isinstance(reference, dict) and isinstance(candidate, dict):
        if reference.keys() != candidate.keys():
            return float("inf")
        return max((_error_of_part(a, candidate[key]) for key, a in reference.items()), default=0.0)
    if isinstance(reference, str | bytes) or reference is None:
        is_same = type(reference) is type(candidate) and bool(reference == candidate)
        return 0.0 if is_same else float("inf")
    a, b = as_array(reference), as_array(candidate)
    error = relative_error(a, b)
    return float("inf") if error and a.dtype.kind in _WHOLE_NUMBERS else error


def worst_place(reference: Array, candidate: Array) -> str:
    """Return the element at which two arrays of one shape differ most, and what both have there."""
    if reference.shape != candidate.shape or not reference.size:
        return ""
    if reference.dtype == object or candidate.dtype == object:
        errors = [_error_of_part(a, b) for a, b in zip(reference.flat, candidate.flat, strict=True)]
        return f"in item {int(np.argmax(errors))}"
    if reference.dtype.kind not in _NUMBERS or candidate.dtype.kind not in _NUMBERS:
        differs = reference != candidate
    else:
        a, b = reference.astype(np.float64), candidate.astype(np.float64)
        with np.errstate(all="ignore"):
            differs = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        differs = np.nan_to_num(differs, nan=np.inf)
    index = np.unravel_index(int(np.argmax(differs)), reference.shape)
    at = f"at {list(map(int, index))}" if index else "there"
    return f"{at} {_text(candidate[index])} instead of {_text(reference[index])}"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)


class Comparison:
    """Collects the worst error of every output over several runs of two graphs.

    Args:
        setting: the comparison's name in reports.
        names, types: of the original's outputs, in order.
        tolerance: the largest relative error that passes where outputs are floats; others are equal.
        random: positions of outputs that depend on an operator that draws random numbers; these
            are not compared.
        varies: whether the inputs differ from run to run.
    """

    def __init__(
        self,
        setting: Setting,
        names: Sequence[str],
        types: Sequence[TensorType],
        tolerance: float,
        *,
        random: frozenset[int] = frozenset(),
        varies: bool = True,
    ) -> None:
        self.setting = setting
        self.runs = 0
        self._names = names
        self._types = types
        self._tolerance = tolerance
        self._random = random
        self._varies = varies
        self._worst = [0.0] * len(types)
        self._not_finite = [0.0] * len(types)
        self._places = [""] * len(types)
        #: Errors that other comparisons have found, and what they come of.
        self._excused: dict[int, tuple[float, str]] = {}
        self._is_whole = [False] * len(types)
        self._first: list[Array] = []
        self._has_others = [False] * len(types)
        #: By how much the reference moved, at most, from the first inputs to others.
        self._moved = [0.0] * len(types)

    def add(self, reference: Sequence[Array], candidate: Sequence[Array]) -> None:
        """Take in the outputs of one run."""
        for index, (a, b) in enumerate(zip(reference, candidate, strict=True)):
            if index in self._random:
                continue
            error = relative_error(a, b)
            if error > self._worst[index]:
                self._worst[index] = error
                self._places[index] = worst_place(a, b) if error > self._tolerance else ""
            self._not_finite[index] = max(self._not_finite[index], _share_not_finite(a))
            if self.runs == 0:
                self._is_whole[index] = a.dtype.kind in _WHOLE_NUMBERS
                self._has_others[index] = _has_others(a)
            elif self._varies:
                self._moved[index] = max(self._moved[index], relative_error(self._first[index], a))
        if self.runs == 0:
            self._first = list(reference)
        self.runs += 1

    @property
    def ok(self) -> bool:
        """Whether the error of every output is within the tolerance."""
        return all(check.ok for check in self.results())

    def results(self) -> tuple[OutputCheck, ...]:
        """Return the worst of every output."""
        return tuple(
            OutputCheck(
                self.setting,
                name,
                kind,
                self._worst[index],
                self._limit(index),
                *self._verdict(index),
                self._places[index],
                index in self._excused,
            )
            for index, (name, kind) in enumerate(zip(self._names, self._types, strict=True))
        )

    def excuse(self, explained: Sequence[float], cause: str) -> None:
        """Accept errors that something other than a mistake explains, output by output.

        Args:
            explained: a relative error per output that another comparison has found; one that is no larger,
                by more than the tolerance, passes, but proves nothing.
            cause: of these errors, for reports.
        """
        for index, error in enumerate(explained):
            may_round = not self._is_whole[index]
            if may_round and self._limit(index) < self._worst[index] <= error + self._tolerance:
                self._excused[index] = error, cause

    def compared(self, is_random: bool, smaller: str, runs: int, remark: str = "") -> Compared:
        """Return what was compared.

        Args:
            smaller: says how inputs were made smaller.
            runs: of all comparisons in this setting.
        """
        inputs = "random inputs" if is_random else "the given inputs"
        return Compared(self.setting, runs, f"{inputs}{smaller}", self._demand(), remark)

    def _demand(self) -> str:
        """Return how close outputs have to be, in words."""
        tolerance = f"tolerance {self._tolerance:g} of the largest element"
        if not any(self._is_whole):
            return tolerance
        return "integers equal" if all(self._is_whole) else f"{tolerance}, integers equal"

    def _limit(self, index: int) -> float:
        """Return the largest error of an output that passes: none where it has whole numbers."""
        if self._is_whole[index]:
            return 0.0
        return self._tolerance + self._excused.get(index, (0.0, ""))[0]

    def _same(self, index: int) -> str:
        """Return where an output is the same, so that a graph that ignores its inputs would pass; or ""."""
        if self.runs == 1 or not self._varies:
            return "" if self._has_others[index] else "at all elements"
        moved = self._moved[index]
        if moved > (0.0 if self._is_whole[index] else self._tolerance):
            return ""
        return f"{f'within {moved:.1e} ' if moved else ''}for all inputs drawn"

    def _verdict(self, index: int) -> tuple[bool, str]:
        """Return whether an output's figure proves something, and a remark about it."""
        share = self._not_finite[index]
        if index in self._random:
            return False, "depends on an operator that draws random numbers: not compared"
        if share == 1.0:
            return False, "NaN or infinite everywhere in the original already: proves nothing"
        if same := self._same(index):
            return False, f"the same {same}: proves nothing"
        if index in self._excused:
            error, cause = self._excused[index]
            return False, f"moved by {error:.1e} by {cause}: proves nothing"
        if share:
            return True, f"NaN or infinite at {share:.2%} of the original's elements already"
        return True, ""


def as_array(value: Any) -> Array:
    """Return an evaluated value as an array; one that is no tensor as one of objects: its items."""
    if isinstance(value, list | tuple | dict) or value is None:
        items = value if isinstance(value, list | tuple) else [value]
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = item
        return array
    return np.asarray(value)


def _has_others(array: Array) -> bool:
    """Whether not all elements are the same; of what is no tensor, those of its items, too."""
    if array.dtype == object:
        items = [as_array(item) for item in array.flat if not isinstance(item, str | bytes | dict)]
        is_one = all(_error_of_part(array.flat[0], item) == 0 for item in array.flat)
        return not is_one or any(map(_has_others, items))
    if array.size < 2:
        return False
    first = array.flat[0]
    return bool((array != first).any())


def _share_not_finite(array: Array) -> float:
    if array.dtype.kind != "f" or array.size == 0:
        return 0.0
    return 1.0 - float(np.isfinite(array).mean())
