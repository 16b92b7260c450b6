"""Terms as rows: an operator over classes of equal value, smallest first.

A class is a fingerprint with the first, smallest term that had it. A term is an operator over classes, as
an e-node is: copies that differ below are never made. Values are kept of classes below the last size only;
of the last, fingerprints are all that is left.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.synthesis.batches import Batch, BatchArithmetic, Types, varies
from bench.synthesis.store import SynthesisStore, attrs_text
from bench.synthesis.vocabulary import OperatorChoice, TermSetting
from relational_tensat.rules.instance import typed_application
from relational_tensat.tensor.types import AttrItems, TensorType, tensors_of

#: So many terms are computed at a time.
_ROWS = 20_000
#: So many are written at a time.
_ROWS_WRITTEN = 200_000
#: Of a window: the number of a term's window where it was enumerated.
ENUMERATED = -1
_NO_CLASS = -1
#: Positive inputs are larger.
_ABOVE = 0.1
_NO_OPERANDS = (_NO_CLASS, _NO_CLASS, _NO_CLASS)
#: Two terms of a pair are tried in one order only where the operator does not tell them apart.
_PROBES = 4


class TermClass(NamedTuple):
    """A distinct value: the number of its type, its row among values of that type, its first term.

    Attributes:
        size: operators of the term, shared ones counted once.
        within: the classes of its operators, itself among them.
    """

    kind: int
    row: int
    size: int
    within: frozenset[int]


class ComputedTerm(NamedTuple):
    """One term: its operator's number, its type's, its value, and its fingerprint, an array of one."""

    symbol: int
    kind: int
    value: Batch
    fingerprint: NDArray[np.uint64]


@dataclass
class TermBank:
    """All terms of a setting up to a size.

    Attributes:
        terms: how many there are by now.
        deadline_s: of process time, after which nothing more is enumerated.
        cut: whether it passed.
    """

    setting: TermSetting
    number: int
    store: SynthesisStore
    seed: int = 0
    deadline_s: float = float("inf")
    terms: int = 0
    cut: bool = False
    classes: list[TermClass] = field(default_factory=list)
    _class_rows: list[tuple[int, ...]] = field(default_factory=list)
    _by_fingerprint: dict[int, int] = field(default_factory=dict)
    _kinds: list[TensorType] = field(default_factory=list)
    _values: list[list[Batch]] = field(default_factory=list)
    _stacked: dict[int, Batch] = field(default_factory=dict)
    _rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _waiting: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    _written: int = 0
    _symbols: dict[tuple[str, AttrItems, int | None], int] = field(default_factory=dict)
    _swaps: dict[tuple[str, AttrItems, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arithmetic = BatchArithmetic(self.setting.exact, self.seed)
        random = np.random.default_rng(self.seed)
        for name, kind in self.setting.inputs.items():
            value = self.arithmetic.draw(kind, random)
            above = self.setting.positive and kind.is_float
            self._leaf(name, (), kind, np.abs(value) + _ABOVE if above else value)
        for number in self.setting.numbers:
            kind = TensorType("float32", ())
            attrs = (("value", number), ("dtype", "float32"), ("shape", ()))
            self._leaf("fill", attrs, kind, self.arithmetic.constant(number))

    def _leaf(self, op: str, attrs: AttrItems, kind: TensorType, value: Batch) -> None:
        number = self._kind(kind)
        fingerprints, _ = self.arithmetic.fingerprints(value, number)
        row = self._symbol(op, attrs, None), *_NO_OPERANDS
        self._new_class(int(fingerprints[0]), number, value[0], 0, row, frozenset())

    # --- growing ---

    def grow(self, size: int) -> None:
        """Make all terms of up to ``size`` operators; ``write`` keeps their classes."""
        for level in range(1, size + 1):
            keeps = level < size
            self._stacked.clear()
            self._rows = np.array([known.row for known in self.classes])
            groups = self._groups()
            known = len(self.classes)
            for choice in self.setting.choices:
                for kinds, ids in self._operands(choice.arity, level, groups):
                    self._apply(choice, kinds, ids, level, keeps)
            for kinds, pairs in self._sharing(level, known):
                for choice in self.setting.choices:
                    if choice.arity == 2:
                        self._apply(choice, kinds, pairs, level, keeps, paired=True)

    def _groups(self) -> dict[tuple[int, int], NDArray[np.int32]]:
        """Return the classes of each size and type."""
        groups: dict[tuple[int, int], list[int]] = {}
        for number, known in enumerate(self.classes):
            groups.setdefault((known.size, known.kind), []).append(number)
        return {key: np.array(ids, np.int32) for key, ids in groups.items()}

    def _operands(
        self, arity: int, level: int, groups: dict[tuple[int, int], NDArray[np.int32]]
    ) -> Iterator[tuple[tuple[int, ...], list[NDArray[np.int32]]]]:
        """Yield types of operands, with the classes for each, whose sizes add up."""
        for keys in itertools.product(groups, repeat=arity):
            if sum(size for size, _ in keys) == level - 1:
                yield tuple(kind for _, kind in keys), [groups[key] for key in keys]

    def _sharing(
        self, level: int, known: int
    ) -> Iterator[tuple[tuple[int, ...], list[NDArray[np.int32]]]]:
        """Yield pairs of classes that have operators in common, which count once."""
        # A class's operators are among another's where it is one of them itself.
        pairs: dict[tuple[int, int], None] = {}
        users: dict[int, list[int]] = {}
        for number in range(known):
            within = self.classes[number].within
            if self.classes[number].size == level - 1:
                for inner in within:
                    pairs |= dict.fromkeys(((number, inner), (inner, number)))
            elif self.classes[number].size < level - 1:
                for inner in within:
                    users.setdefault(inner, []).append(number)
        for a, b in (pair for group in users.values() for pair in itertools.permutations(group, 2)):
            one, other = self.classes[a].within, self.classes[b].within
            if len(one) + len(other) >= level and len(one | other) == level - 1:
                pairs.setdefault((a, b))
        by_kind: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for a, b in pairs:
            by_kind.setdefault((self.classes[a].kind, self.classes[b].kind), []).append((a, b))
        for kinds, found in by_kind.items():
            yield kinds, list(np.array(found, np.int32).T)

    def _apply(
        self,
        choice: OperatorChoice,
        kinds: tuple[int, ...],
        ids: Sequence[NDArray[np.int32]],
        level: int,
        keeps: bool,
        paired: bool = False,
    ) -> None:
        types = tuple(self._kinds[kind] for kind in kinds)
        for attrs in choice.applications(types):
            mesh = ids if paired else np.meshgrid(*ids, indexing="ij")
            grids = [grid.ravel() for grid in mesh]
            alike = len(kinds) == 2 and kinds[0] == kinds[1]
            if alike and self._swapped(choice.op, attrs, kinds[0]):
                ordered = grids[0] <= grids[1]
                grids = [grid[ordered] for grid in grids]
            for start in range(0, len(grids[0]), _ROWS):
                if time.process_time() > self.deadline_s:
                    self.cut = True
                    return
                part = [grid[start : start + _ROWS] for grid in grids]
                self._batch(choice.op, attrs, kinds, part, level, keeps)

    def _swapped(self, op: str, attrs: AttrItems, kind: int) -> bool:
        """Whether an operator gives the same for two operands of a type in either order."""
        key = op, attrs, kind
        if key not in self._swaps:
            random = np.random.default_rng(self.seed + 1)
            of_type = self._kinds[kind]
            a, b = (
                np.concatenate([self.arithmetic.draw(of_type, random) for _ in range(_PROBES)])
                for _ in range(2)
            )
            types = (of_type, of_type)
            (one, _), (other, _) = (
                self.arithmetic.apply(op, attrs, types, pair) for pair in ((a, b), (b, a))
            )
            alike = bool(one) and len(one) == len(other)  # neither, where no row has a value
            self._swaps[key] = alike and all(map(np.array_equal, one, other))
        return self._swaps[key]

    def _batch(
        self,
        op: str,
        attrs: AttrItems,
        kinds: tuple[int, ...],
        ids: Sequence[NDArray[np.int32]],
        level: int,
        keeps: bool,
    ) -> None:
        types: Types = tuple(self._kinds[kind] for kind in kinds)
        typed = typed_application(op, attrs, types)
        assert typed is not None  # what the choice yields fits
        operands = [
            self._stack(kind)[self._rows[grid]] for kind, grid in zip(kinds, ids, strict=True)
        ]
        results, valued = self.arithmetic.apply(op, attrs, types, operands)
        several = isinstance(typed[1], tuple)
        for part, (values, kind) in enumerate(zip(results, tensors_of(typed[1]), strict=False)):
            number = self._kind(kind)
            shaped = np.broadcast_to(values, (len(values), *kind.shape))
            fingerprints, fine = self.arithmetic.fingerprints(shaped, number)
            fine &= valued & varies(shaped)
            symbol = self._symbol(op, attrs, part if several else None)
            kept = [grid[fine] for grid in ids]
            self._add(symbol, number, fingerprints[fine], kept, level)
            for row in np.flatnonzero(fine).tolist() if keeps else ():
                fingerprint = int(fingerprints[row])
                if fingerprint not in self._by_fingerprint:
                    children = [int(grid[row]) for grid in ids]
                    within = {len(self.classes)}.union(*(self.classes[c].within for c in children))
                    term = symbol, *(*children, *_NO_OPERANDS)[:3]
                    value = shaped[row].copy()
                    self._new_class(fingerprint, number, value, level, term, frozenset(within))

    def _add(
        self,
        symbol: int,
        kind: int,
        fingerprints: NDArray[np.uint64],
        ids: Sequence[NDArray[np.int32]],
        level: int,
        window: int = ENUMERATED,
    ) -> None:
        count = len(fingerprints)
        none = np.full(count, _NO_CLASS, np.int32)
        operands = [*ids, none, none, none][:3]

        def of_all(value: int) -> NDArray[np.int32]:
            return np.full(count, value, np.int32)

        columns: tuple[NDArray[Any], ...] = (
            of_all(self.number), np.arange(self.terms, self.terms + count), of_all(symbol), *operands,
            of_all(level), of_all(kind), of_all(window), fingerprints,
        )  # fmt: skip
        self._waiting.append(columns)
        self.terms += count
        if self.terms - self._written >= _ROWS_WRITTEN:
            self._flush()

    def _flush(self) -> None:
        """Write the terms that wait: thousands of short insertions would make every scan slow."""
        if self._waiting:
            self.store.append("term", map(np.concatenate, zip(*self._waiting, strict=True)))
            self._waiting.clear()
        self._written = self.terms

    def _new_class(
        self,
        fingerprint: int,
        kind: int,
        value: Batch,
        size: int,
        row: tuple[int, ...],
        within: frozenset[int],
        of_window: bool = False,
    ) -> int:
        """Add a class; a window's parts stay as they are written, whatever they equal."""
        number = len(self.classes)
        if not of_window:
            self._by_fingerprint[fingerprint] = number
        self.classes.append(TermClass(kind, len(self._values[kind]), size, within))
        self._values[kind].append(value)
        self._class_rows.append((self.number, number, *row, size, of_window, fingerprint))
        return number

    # --- single terms ---

    def computed(
        self, op: str, attrs: AttrItems, children: Sequence[int], part: int | None = None
    ) -> ComputedTerm | None:
        """Return an operator over classes, computed; None where it misfits, or has no finite value."""
        types = tuple(self.kind_of(child) for child in children)
        typed = typed_application(op, attrs, types)
        if typed is None:
            return None
        values = [self.value_of(child)[None] for child in children]
        results, valued = self.arithmetic.apply(op, typed[0], types, values)
        if not valued.all():
            return None
        kind = tensors_of(typed[1])[part or 0]
        number = self._kind(kind)
        value = np.broadcast_to(results[part or 0], (1, *kind.shape))
        fingerprints, fine = self.arithmetic.fingerprints(value, number)
        symbol = self._symbol(op, typed[0], part)
        return ComputedTerm(symbol, number, value[0], fingerprints) if fine.all() else None

    def kind_of(self, number: int) -> TensorType:
        """Return the type of a class."""
        return self._kinds[self.classes[number].kind]

    def value_of(self, number: int) -> Batch:
        """Return the value of a class."""
        known = self.classes[number]
        return self._values[known.kind][known.row]

    def class_with(self, fingerprint: int) -> int | None:
        """Return the class of a fingerprint, if it is below the last size."""
        return self._by_fingerprint.get(fingerprint)

    def operands_in_order(self, op: str, attrs: AttrItems, children: Sequence[int]) -> list[int]:
        """Return operands as rows have them: in the order of classes where an operator does not care."""
        kinds = {self.classes[child].kind for child in children}
        alike = len(children) == 2 and len(kinds) == 1
        return (
            sorted(children) if alike and self._swapped(op, attrs, kinds.pop()) else list(children)
        )

    def add_window(
        self, window: int, applications: Sequence[tuple[str, AttrItems, Sequence[int]]]
    ) -> bool:
        """Add the term of a window: as it is, whatever equals its parts.

        Args:
            applications: operator, attributes and operands of each in order; an operand below 0 is the
                class ``-1 - operand``, another one is the application of that number.

        Returns:
            Whether it has a value: no infinities.
        """
        classes: list[int] = []
        for level, (op, attrs, operands) in enumerate(applications, start=1):
            children = [classes[o] if o >= 0 else -1 - o for o in operands]
            term = self.computed(op, attrs, children)
            if term is None:
                return False
            if level == len(applications):
                grids = [np.array([child], np.int32) for child in children]
                self._add(term.symbol, term.kind, term.fingerprint, grids, level, window)
                return True
            row = term.symbol, *(*children, *_NO_OPERANDS)[:3]
            known = int(term.fingerprint[0]), term.kind, term.value, level, row
            classes.append(self._new_class(*known, frozenset(), of_window=True))
        return False

    # --- what is kept ---

    def write(self) -> None:
        """Write what waits, classes and symbols."""
        self._flush()
        *columns, fingerprints = zip(*self._class_rows, strict=True)
        self.store.append("class", (*columns, np.array(fingerprints, np.uint64)))
        for (op, attrs, part), number in self._symbols.items():
            named = {"setting": self.number, "id": number, "op": op, "part": part}
            self.store.rows("add_symbol", **named, attrs=attrs_text(attrs))

    def _kind(self, kind: TensorType) -> int:
        if kind not in self._kinds:
            self._kinds.append(kind)
            self._values.append([])
        return self._kinds.index(kind)

    def _symbol(self, op: str, attrs: AttrItems, part: int | None) -> int:
        return self._symbols.setdefault((op, attrs, part), len(self._symbols))

    def _stack(self, kind: int) -> Batch:
        if kind not in self._stacked:
            self._stacked[kind] = np.stack(self._values[kind])
        return self._stacked[kind]
