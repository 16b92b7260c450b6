"""Interned symbols, types and signatures: the e-graph compares integers, people read text.

A signature is a symbol applied to operands of given types. Its result type is inferred once, by the
operator's shape rule, however many e-nodes have it: that keeps the shape analysis a join. The texts in the
tables are read back to symbols and types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from relational_tensat.base.errors import InputError
from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.formats.json_values import JsonPlace, decode_attr, encode_attr
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, Attrs, TensorType, ValueType


@record
class Symbol:
    """An operator with normalized attributes and a count of children."""

    op: str
    attrs: AttrItems
    arity: int


@record
class Signature:
    """A symbol on operand types, and the type of its result; all by interned id."""

    symbol: int
    operands: tuple[int, ...]
    type: int


class HeadOf(Protocol):
    """Maps a symbol to the integer that patterns compare (see explore.compile): its head."""

    @property
    def texts(self) -> Sequence[str]:
        """The text of each head, by head - 1."""

    def __call__(self, symbol: Symbol) -> int:
        """Return the head of a symbol, from 1 on; 0 where no pattern looks at its operator."""


class NoHeads:
    """Gives every symbol the head 0, for the time before rules are known."""

    texts: Sequence[str] = ()

    def __call__(self, symbol: Symbol) -> int:
        """Return 0."""
        return 0


@record
class TableCounts:
    """How many of each are in the tables; their ids are 1, 2, …"""

    symbols: int = 0
    types: int = 0
    signatures: int = 0
    heads: int = 0


class Catalogue:
    """Interns symbols, types and signatures; ``flush`` writes the new ones to the tables.

    Attributes:
        written: the numbers of texts that ``flush`` has written; set back if the transaction is undone.
    """

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self.types: list[ValueType] = []
        self.signatures: list[Signature] = []
        self.heads: list[int] = []  # by signature
        self.head_of: HeadOf = NoHeads()
        self._symbol_ids: dict[Symbol, int] = {}
        self._type_ids: dict[ValueType, int] = {}
        self._signature_ids: dict[tuple[int, tuple[int, ...]], int] = {}
        self.written = TableCounts()

    def restore(
        self,
        symbols: list[Symbol],
        types: list[ValueType],
        signatures: list[Signature],
        heads: int,
    ) -> None:
        """Take over all that is in the tables, in the order of its ids.

        Args:
            heads: how many there are; signatures have none until ``rehead``.
        """
        self.symbols, self.types, self.signatures = symbols, types, signatures
        self.heads = [0] * len(signatures)
        self._symbol_ids = {symbol: index for index, symbol in enumerate(symbols, start=1)}
        self._type_ids = {kind: index for index, kind in enumerate(types, start=1)}
        self._signature_ids = {
            (signature.symbol, signature.operands): index
            for index, signature in enumerate(signatures, start=1)
        }
        self.written = TableCounts(len(symbols), len(types), len(signatures), heads)

    def symbol_of(self, signature: int) -> Symbol:
        """Return the symbol of a signature id."""
        return self.symbols[self.signatures[signature - 1].symbol - 1]

    def type_of(self, signature: int) -> ValueType:
        """Return the result type of a signature id."""
        return self.types[self.signatures[signature - 1].type - 1]

    def operand_types(self, signature: int) -> tuple[ValueType, ...]:
        """Return the operand types of a signature id."""
        return tuple(self.types[i - 1] for i in self.signatures[signature - 1].operands)

    def by_signature(self, holds: Callable[[Symbol], bool]) -> list[bool]:
        """Return of each signature, written or not, whether something holds of its symbol."""
        flags = list(map(holds, self.symbols))
        return [flags[signature.symbol - 1] for signature in self.signatures]

    def intern(self, op: str, attrs: Attrs, operands: tuple[ValueType, ...]) -> int:
        """Return the signature id of an operator applied to operands; infers its type if new.

        Raises:
            ShapeError: the operands do not fit.
        """
        operator = get_operator(op)
        items = tuple(operator.normalize(attrs).items())
        return self.intern_checked(op, items, operands, None)

    def intern_checked(
        self, op: str, items: AttrItems, operands: tuple[ValueType, ...], result: ValueType | None
    ) -> int:
        """Return the signature id for normalized attributes; ``result`` is the type if known."""
        symbol = self._symbol(Symbol(op, items, len(operands)))
        key = (symbol, tuple(self._type(kind) for kind in operands))
        signature_id = self._signature_ids.get(key)
        if signature_id is not None:
            return signature_id
        if result is None:
            result = get_operator(op).check(operands, dict(items))
        self.signatures.append(Signature(symbol, key[1], self._type(result)))
        self.heads.append(self.head_of(self.symbols[symbol - 1]))
        new_id = len(self.signatures)
        self._signature_ids[key] = new_id
        return new_id

    def flush(self, database: Database) -> None:
        """Write what was interned since the last flush."""
        written = self.written
        texts = self.head_of.texts
        self.written = TableCounts(
            len(self.symbols), len(self.types), len(self.signatures), max(written.heads, len(texts))
        )
        symbols, types = self.symbols[written.symbols :], self.types[written.types :]
        signatures = self.signatures[written.signatures :]
        database.insert(
            "symbol",
            {
                "id": _new_ids(written.symbols, self.symbols),
                "op": [s.op for s in symbols],
                "attrs": [attrs_text(s.attrs) for s in symbols],
                "arity": [s.arity for s in symbols],
                "foldable": [is_foldable(s) for s in symbols],
                "unpacks": [get_operator(s.op).unpacks(dict(s.attrs)) for s in symbols],
            },
        )
        database.insert(
            "value_type",
            {
                "id": _new_ids(written.types, self.types),
                "type": [type_text(kind) for kind in types],
            },
        )
        database.insert(
            "head", {"id": _new_ids(written.heads, texts), "text": texts[written.heads :]}
        )
        database.insert(
            "signature",
            {
                "id": _new_ids(written.signatures, self.signatures),
                "symbol": [s.symbol for s in signatures],
                "operands": [list(s.operands) for s in signatures],
                "type": [s.type for s in signatures],
                "prepared": [
                    self._prepared(signature)
                    for signature in range(written.signatures + 1, len(self.signatures) + 1)
                ],
                "head": self.heads[written.signatures :],
            },
        )

    def rehead(self, head_of: HeadOf) -> list[int]:
        """Recompute all heads for a new set of rules; return them, by symbol."""
        self.head_of = head_of
        heads = [head_of(symbol) for symbol in self.symbols]
        self.heads = [heads[s.symbol - 1] for s in self.signatures]
        return heads

    def _prepared(self, signature: int) -> int:
        """Return the operands that kernels arrange before inference, a bit for each."""
        operator = get_operator(self.symbol_of(signature).op)
        return sum(1 << n for n in operator.prepared_operands(self.operand_types(signature)))

    def _symbol(self, symbol: Symbol) -> int:
        symbol_id = self._symbol_ids.get(symbol)
        if symbol_id is None:
            self.symbols.append(symbol)
            symbol_id = self._symbol_ids[symbol] = len(self.symbols)
        return symbol_id

    def _type(self, kind: ValueType) -> int:
        type_id = self._type_ids.get(kind)
        if type_id is None:
            self.types.append(kind)
            type_id = self._type_ids[kind] = len(self.types)
        return type_id


def _new_ids(written: int, interned: Sequence[object]) -> list[int]:
    return list(range(written + 1, len(interned) + 1))


def is_foldable(symbol: Symbol) -> bool:
    """Whether the result is known before inference once the operands are."""
    return symbol.op != "input" and get_operator(symbol.op).is_foldable(dict(symbol.attrs))


def attrs_text(items: AttrItems) -> str:
    """Return attributes as JSON, e.g. ``{"act": "relu", "stride": [1, 1]}``."""
    return json.dumps({name: encode_attr(value) for name, value in items})


def type_text(kind: ValueType) -> str:
    """Return a type as text, e.g. ``float32[1,64]``; a tuple in parentheses."""
    return f"({', '.join(map(str, kind))})" if isinstance(kind, tuple) else str(kind)


_TENSOR = re.compile(r"([^\s\[\],()]+)\[([\d,]*)\]")


def parse_type(text: str) -> ValueType:
    """Return the type that ``catalogue.type_text`` wrote.

    Raises:
        InputError: it is no such text.
    """
    parts = tuple(
        TensorType(dtype, tuple(int(size) for size in shape.split(",") if size))
        for dtype, shape in _TENSOR.findall(text)
    )
    if text.startswith("("):
        return parts
    if len(parts) != 1:
        raise InputError(f"the type {text!r} in the database, expected one like float32[2,3]")
    return parts[0]


def parse_symbol(op: str, attrs: str, arity: int) -> Symbol:
    """Return the symbol of an operator and the attributes that ``catalogue.attrs_text`` wrote."""
    kinds = {attr.name: attr.kind for attr in get_operator(op).attrs}
    values = json.loads(attrs)
    items = tuple(
        (name, decode_attr(JsonPlace(value, op, name), kinds[name]))
        for name, value in values.items()
    )
    return Symbol(op, items, arity)
