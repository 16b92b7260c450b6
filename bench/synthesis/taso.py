"""Which of TASO's 139 rules the enumeration has: both sides of every pair as terms of one fingerprint."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from bench.synthesis.enumeration import TermBank
from bench.synthesis.store import SynthesisStore
from bench.synthesis.vocabulary import OperatorChoice, TermSetting
from relational_tensat.rules.functions import Inapplicable
from relational_tensat.rules.instance import compiled_rule, tensor_vars, typed_application
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var, nodes_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, TensorType

_MATRIX = TensorType("float32", (3, 3))
_IMAGE = TensorType("float32", (2, 2, 3, 3))
_POINT = TensorType("float32", (2, 2, 1, 1))
_PAIRS = TensorType("float32", (2, 4, 3, 3))
_GROUPED = TensorType("float32", (4, 2, 3, 3))
_FIVE = "abcde"


@dataclass(frozen=True)
class World:
    """A setting, and how large its terms get."""

    setting: TermSetting
    size: int


def worlds() -> Iterator[World]:
    """Yield the settings: matrices, images, and convolutions of groups."""
    rules = taso_rules()
    matrices = ("matmul", "add", "mul", "concat", "split", "relu")
    images = ("conv", "add", "mul", "concat", "split", "relu", "enlarge")
    four = dict.fromkeys("abcd", _IMAGE)
    yield World(_setting("matrices", dict.fromkeys("abcd", _MATRIX), matrices, rules), 4)
    yield World(_setting("images", {**four, "u": _POINT}, images, rules), 3)
    groups = {"a": _PAIRS, "b": _GROUPED}
    yield World(_setting("groups", groups, ("conv", "merge"), rules), 2)


def _setting(
    name: str, inputs: Mapping[str, TensorType], operators: tuple[str, ...], rules: list[Rule]
) -> TermSetting:
    choices = []
    for op in operators:
        arity = 2 if op == "concat" else get_operator(op).arity[0]
        attrs = None if op in ("split", "concat") else _attributes(op, rules)
        choices.append(OperatorChoice(op, arity, attrs))
    return TermSetting(name, inputs, tuple(choices), (), exact=True)


def _attributes(op: str, rules: list[Rule]) -> tuple[AttrItems, ...]:
    """Return the attributes that TASO's rules give an operator; groups are those of two."""
    found: dict[AttrItems, None] = {}
    for rule in rules:
        for term in (*rule.sources, *rule.targets):
            for node in nodes_of(term):
                if node.op == op:
                    found.setdefault(tuple(
                        (key, value.value if isinstance(value, Literal) else 2) for key, value in node.attrs
                    ))  # fmt: skip
    return tuple(found)


@dataclass(frozen=True)
class Rediscovery:
    """What one world has of TASO's rules.

    Attributes:
        found: those that no world before has.
        enumeration_s, look_up_s: CPU seconds.
    """

    world: str
    found: tuple[str, ...]
    terms: int
    enumeration_s: float
    look_up_s: float
    peak_mib: int


def rediscovered(seed: int = 0) -> Iterator[Rediscovery]:
    """Enumerate world after world, and look TASO's rules up."""
    known: set[str] = set()
    for world in worlds():
        with SynthesisStore(None) as store:
            start_s = time.process_time()
            bank = TermBank(world.setting, 0, store, seed)
            bank.grow(world.size)
            bank.write()
            middle_s = time.process_time()
            names = dict.fromkeys(_found_in(bank, store, world))
            found = tuple(name for name in names if name not in known)
            known.update(found)
            yield Rediscovery(
                world.setting.name, found, bank.terms, middle_s - start_s,
                time.process_time() - middle_s,
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            )  # fmt: skip


def many_terms(seed: int = 0) -> Rediscovery:
    """Enumerate the terms of matrices once more, over five inputs; look nothing up."""
    setting, start_s = next(worlds()).setting, time.process_time()
    five = replace(setting, name="five matrices", inputs=dict.fromkeys(_FIVE, _MATRIX))
    with SynthesisStore(None) as store:
        bank = TermBank(five, 0, store, seed)
        bank.grow(4)
        bank.write()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Rediscovery(five.name, (), bank.terms, time.process_time() - start_s, 0.0, peak_mib)


#: A term's row: symbol and operands; its fingerprint where it is an input.
_Row = tuple[int, int, int]


def _found_in(bank: TermBank, store: SynthesisStore, world: World) -> Iterator[str]:
    pairs_of: dict[tuple[str, int], list[tuple[_Row | None, _Row | None]]] = {}
    for rule in taso_rules():
        for number, classes in enumerate(_assignments(rule, world.setting)):
            sides = [
                (_looked_up(bank, rule, source, classes), _looked_up(bank, rule, target, classes))
                for source, target in zip(rule.sources, rule.targets, strict=True)
            ]
            if all(left and right and left[1] == right[1] for left, right in sides):
                pairs_of[rule.name, number] = [(a[0], b[0]) for a, b in sides if a and b]
    wanted = {
        row for pairs in pairs_of.values() for pair in pairs for row in pair if row is not None
    }
    known = _known(store, wanted)
    for (name, _), pairs in pairs_of.items():
        if all(row is None or row in known for pair in pairs for row in pair):
            yield name


def _assignments(rule: Rule, setting: TermSetting) -> Iterator[dict[str, int]]:
    """Yield inputs for a rule's variables, one choice for each choice of types."""
    names = tensor_vars(rule)
    seen = set()
    kinds = list(setting.inputs.values())
    for order in itertools.permutations(range(len(kinds)), len(names)):
        types = tuple(kinds[i] for i in order)
        if types not in seen:
            seen.add(types)
            yield dict(zip(names, order, strict=True))


def _looked_up(
    bank: TermBank, rule: Rule, term: Term, classes: dict[str, int]
) -> tuple[_Row | None, int] | None:
    """Return a term's row and fingerprint; no row for an input, None where the world has no such term."""
    types = tuple(bank.kind_of(classes[name]) for name in tensor_vars(rule))
    prepared = compiled_rule(rule)

    def look(part_of: Term) -> tuple[_Row | None, int, int | None] | None:
        if isinstance(part_of, Var):
            return None, -1 - classes[part_of.name], classes[part_of.name]
        part = None
        if part_of.op == "part":
            index = dict(part_of.attrs)["index"]
            assert isinstance(index, Literal)
            part, part_of = int(index.value), part_of.children[0]  # type: ignore[arg-type]
            assert isinstance(part_of, Apply)
        below = [look(child) for child in part_of.children]
        children = [found[2] for found in below if found is not None and found[2] is not None]
        if len(children) < len(below):
            return None
        try:
            attrs = {key: prepared.expression(value)(types, []) for key, value in part_of.attrs}
        except Inapplicable:
            return None
        kinds = tuple(bank.kind_of(child) for child in children)
        typed = typed_application(part_of.op, tuple(attrs.items()), kinds)
        computed = None if typed is None else bank.computed(part_of.op, typed[0], children, part)
        if computed is None or typed is None:
            return None
        operands = [*bank.operands_in_order(part_of.op, typed[0], children), -1, -1]
        fingerprint = int(computed.fingerprint[0])
        row = computed.symbol, operands[0], operands[1]
        return row, fingerprint, bank.class_with(fingerprint)

    found = look(term)
    return None if found is None else found[:2]


def _known(store: SynthesisStore, wanted: set[_Row]) -> set[_Row]:
    """Return the rows that there are."""
    rows = sorted(wanted)
    columns = {
        name: np.array([row[i] for row in rows], np.int32) for i, name in enumerate(("s", "a", "b"))
    }
    store.connection.register("wanted", pa.table(columns))
    found = store.connection.execute(
        "-- which terms there are\n"
        "SELECT symbol, c0, c1 FROM term JOIN wanted ON symbol = s AND c0 = a AND c1 = b"
    ).fetchall()
    return set(found)
