"""Reading an e-graph file of the egraph-serialize format into an extraction problem.

``{"nodes": {ID: {"op", "children": [ID…], "eclass", "cost", "subsumed"}}, "root_eclasses": […],
"class_data": {…}}``. A child is an e-node that stands for its e-class, or a whole number, the e-class
itself, as SmoothE's files of multipliers have it. A cost that is not given
is 1, and may be negative: the cost of a graph is the sum over the e-nodes that its roots reach, each
counted once. So a gain counts where a chosen e-node needs it. A subsumed e-node is not extracted. Fields
that the format does not have, as benchmarks add them, are ignored and noted. Files may be compressed by
gzip. Of several roots, those that no e-node is in are ignored and noted, too: their classes were merged
with others after the roots were written down, as in extraction-gym's lean-egg files.

Files of a million e-nodes are read column by column: one question says whether a column is right, and only
if it is not, the place is searched for.

The parser is quick, needs little memory, and sees each key that is given twice.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from relational_tensat.base.errors import InputError, NoSolutionError, nearest
from relational_tensat.base.files import whole_content
from relational_tensat.base.process import no_garbage_collection
from relational_tensat.extract.index import derivations
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints

NODE_FIELDS = ("op", "children", "eclass", "cost", "subsumed")
"""The fields of an e-node, in the order of its tuple."""


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """Stands in parsed JSON for an object in which a key is given twice."""

    key: str


def parse_json(path: Path) -> Any:
    """Return the content of an e-graph file, compressed by gzip or not; no value in it is checked.

    Objects are dictionaries, but for two. ``RepeatedKeys`` is one that contradicts itself. A tuple of the
    values of ``NODE_FIELDS`` is one that has all of these, or all but ``subsumed``, in this order, as
    e-nodes usually do (JSON has no tuples of its own).

    Raises:
        InputError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(whole_content(path), object_pairs_hook=_object)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> Any:
    # Unpacked by hand: it is called a million times, and is a fifth of the time of parsing so.
    if len(pairs) == 4:
        (first, op), (second, children), (third, eclass), (fourth, cost) = pairs
        if (first, second, third, fourth) == _USUAL:
            return op, children, eclass, cost, False
    fields = dict(pairs)
    if len(fields) < len(pairs):
        return RepeatedKeys(_first_repeated(pairs))
    return tuple(fields.values()) if tuple(fields) == NODE_FIELDS else fields


_USUAL = NODE_FIELDS[:-1]


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    """Return the first key that was there before; a million keys are no trouble."""
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            break
        keys.add(key)
    return key


_TOP_FIELDS = ("nodes", "root_eclasses", "class_data")
_DEFAULTS: dict[str, Any] = {
    "op": None, "children": [], "eclass": None, "cost": 1.0, "subsumed": False,
}  # fmt: skip
_OP, _ECLASS, _SUBSUMED = (NODE_FIELDS.index(field) for field in ("op", "eclass", "subsumed"))

Nodes = dict[str, tuple[Any, ...]]
"""By name, the values of ``NODE_FIELDS``."""


@dataclass(frozen=True, eq=False)
class SerializedEGraph:
    """An e-graph of a file, by index and by the names that it has there.

    Attributes:
        problem: the problem to extract from; its unit of cost is the file's. Of several roots, the root is
            one free e-node above them, the last e-node and class.
        nodes: names of the e-nodes, without that of the root; subsumed ones are left out.
        classes: names of the e-classes, without that of the root.
        ops: per e-node, its operator.
        roots: the classes to extract.
        note: one line for the report, the ignored part of the file, or "".
    """

    problem: ExtractionProblem
    nodes: list[str]
    classes: list[str]
    ops: list[str]
    roots: list[int]
    note: str = ""

    def check_derivable(self, file: str) -> None:
        """Refuse an e-graph of which no graph can be extracted.

        Raises:
            NoSolutionError: a root has no acyclic derivation.
        """
        derivable = derivations(self.problem)
        for root in self.roots:
            if root not in derivable:
                raise NoSolutionError(
                    f"{file}: the root e-class {self.classes[root]!r} has no acyclic derivation"
                )

    def named(self, choice: Ints) -> dict[str, str]:
        """Return a choice by names: per e-class that is needed, the e-node."""
        classes = np.flatnonzero(choice[: len(self.classes)] != UNUSED).tolist()
        return {self.classes[klass]: self.nodes[int(choice[klass])] for klass in classes}


def read_egraph_json(path: Path) -> SerializedEGraph:
    """Return the e-graph of a file.

    Raises:
        InputError: the file cannot be read, is not of the format, or describes no e-graph; names
            the place in it and what was expected.
    """
    with no_garbage_collection():
        return _EGraphReader(str(path)).read(parse_json(path))


class _EGraphReader:
    """Turns the content of one file into arrays; every error names the place."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._ignored = Counter[tuple[str, str]]()
        self._stale_roots: list[str] = []

    def read(self, content: Any) -> SerializedEGraph:
        nodes = self._nodes(content)
        classes = list(dict.fromkeys(node[_ECLASS] for node in nodes.values()))
        index_of = {name: index for index, name in enumerate(classes)}
        class_of = {name: index_of[node[_ECLASS]] for name, node in nodes.items()}
        roots = self._roots(content, index_of)
        self._check_class_data(content, index_of)
        extracted = self._without_subsumed(nodes)
        names = list(extracted)
        node_class = np.array([class_of[name] for name in names], dtype=np.int32)
        self._check_inhabited(classes, node_class)
        ops, children, _, costs, _ = map(list, zip(*extracted.values(), strict=True))
        cost = self._costs(names, costs)
        owner, child = self._edges(names, children, class_of, index_of)
        root, n_classes = roots[0], len(classes)
        if len(roots) > 1:
            root, n_classes = n_classes, n_classes + 1
            owner = np.concatenate([owner, np.full(len(roots), len(names), dtype=np.int32)])
            child = np.concatenate([child, np.array(roots, dtype=np.int32)])
            node_class = np.append(node_class, np.int32(root))
            cost = np.append(cost, 0.0)
        pointer, child_idx = _distinct_children(owner, child, len(cost), n_classes)
        problem = ExtractionProblem(
            cost_us=cost,
            node_class=node_class,
            child_ptr=pointer,
            child_idx=child_idx,
            n_classes=n_classes,
            root=root,
            original=np.full(n_classes, UNUSED, dtype=np.int32),
        )
        return SerializedEGraph(problem, names, classes, ops, roots, self._note())

    def _nodes(self, content: Any) -> Nodes:
        if isinstance(content, RepeatedKeys):
            self._twice("", "field", content)
        if not isinstance(content, dict):
            self._fail("", f"expected an object with {', '.join(_TOP_FIELDS)}")
        self._ignore_others("the file", content, _TOP_FIELDS)
        nodes = content.get("nodes")
        if isinstance(nodes, RepeatedKeys):
            self._twice("nodes", "e-node", nodes)
        if not isinstance(nodes, dict) or not nodes:
            self._fail("nodes", "expected an object of e-nodes, at least one")
        if not _all_of(nodes.values(), tuple):
            nodes = {
                name: node if isinstance(node, tuple) else self._node(name, node)
                for name, node in nodes.items()
            }
        if not _all_of((node[_ECLASS] for node in nodes.values()), str):
            nodes = {
                name: (*node[:_ECLASS], _class_name(node[_ECLASS]), *node[_ECLASS + 1 :])
                for name, node in nodes.items()
            }
        for index, field in ((_OP, "op"), (_ECLASS, "eclass")):
            if not _all_of((node[index] for node in nodes.values()), str):
                name = next(n for n, node in nodes.items() if not isinstance(node[index], str))
                self._fail(f"nodes[{name!r}]", f"expected a text {field!r}")
        return nodes

    def _node(self, name: str, node: Any) -> tuple[Any, ...]:
        """Return an e-node that has its fields in some other order, or not all of them."""
        place = f"nodes[{name!r}]"
        if isinstance(node, RepeatedKeys):
            self._twice(place, "field", node)
        if not isinstance(node, dict):
            self._fail(place, "expected an object")
        self._ignore_others("e-nodes", node, NODE_FIELDS)
        return tuple(node.get(field, default) for field, default in _DEFAULTS.items())

    def _roots(self, content: Mapping[str, Any], index_of: Mapping[str, int]) -> list[int]:
        roots = content.get("root_eclasses")
        if not isinstance(roots, list) or not roots:
            self._fail("root_eclasses", "expected a list of e-classes, at least one")
        roots = list(map(_class_name, roots))
        there = [name for name in roots if isinstance(name, str) and name in index_of]
        for index, name in enumerate(roots):
            if not there or not isinstance(name, str):
                self._fail(f"root_eclasses[{index}]", f"no e-node is in the e-class {_short(name)}")
        self._stale_roots = [name for name in roots if name not in index_of]
        return list(dict.fromkeys(index_of[name] for name in there))

    def _check_class_data(self, content: Mapping[str, Any], index_of: Mapping[str, int]) -> None:
        data = content.get("class_data", {})
        if isinstance(data, RepeatedKeys):
            self._twice("class_data", "e-class", data)
        if not isinstance(data, dict):
            self._fail("class_data", "expected an object by e-class")
        self._ignore_others("class_data", data, index_of)

    def _without_subsumed(self, nodes: Nodes) -> Nodes:
        marked = {
            name: node[_SUBSUMED] for name, node in nodes.items() if node[_SUBSUMED] is not False
        }
        for name, subsumed in marked.items():
            if subsumed is not True:
                place = f"nodes[{name!r}].subsumed"
                self._fail(place, f"{_short(subsumed)}, expected true or false")
        if not marked:
            return nodes
        return {name: node for name, node in nodes.items() if name not in marked}

    def _check_inhabited(self, classes: list[str], node_class: Ints) -> None:
        inhabited = np.zeros(len(classes), dtype=np.bool_)
        inhabited[node_class] = True
        for index in np.flatnonzero(~inhabited).tolist():
            self._fail(f"the e-class {classes[index]!r}", "all of its e-nodes are subsumed")

    def _costs(self, names: list[str], costs: list[Any]) -> Floats:
        if set(map(type, costs)) <= {int, float}:
            try:
                values = np.array(costs, dtype=np.float64)
            except OverflowError:  # a whole number beyond the range of floats
                values = np.array([math.inf])
            if bool(np.all(np.isfinite(values))):
                return values
        bad = next(index for index, cost in enumerate(costs) if not _is_cost(cost))
        place = f"nodes[{names[bad]!r}].cost"
        raise self._refusal(place, f"{_short(costs[bad])}, expected a finite number")

    def _edges(
        self,
        names: list[str],
        children: list[Any],
        class_of: Mapping[str, int],
        index_of: Mapping[str, int],
    ) -> tuple[Ints, Ints]:
        """Return (e-node, child class) pairs as two arrays; pairs may be there twice."""
        if not _all_of(children, list):
            bad = next(index for index, part in enumerate(children) if not isinstance(part, list))
            self._fail(f"nodes[{names[bad]!r}].children", "expected a list of e-nodes")
        try:
            child = [class_of[name] for name in chain.from_iterable(children)]
        except (KeyError, TypeError):  # a class by its number, or nothing that the file has
            child = self._classes_of(names, children, class_of, index_of)
        owner = np.repeat(np.arange(len(names), dtype=np.int32), list(map(len, children)))
        return owner, np.array(child, dtype=np.int32)

    def _classes_of(
        self,
        names: list[str],
        children: list[Any],
        class_of: Mapping[str, int],
        index_of: Mapping[str, int],
    ) -> list[int]:
        """Return the classes of children, by e-nodes and by numbers; refuse the first that is not there."""
        numbered = {int(n): c for n, c in index_of.items() if n.isdecimal() and str(int(n)) == n}
        by_kind: dict[type, Mapping[Any, int]] = {str: class_of, int: numbered}
        found = []
        for name, part in zip(names, children, strict=True):
            for index, child in enumerate(part):
                kind = type(child)
                klass = by_kind[kind].get(child) if kind in by_kind else None
                if klass is None:
                    missing = (
                        f"there is no {'e-class' if kind is int else 'e-node'} {_short(child)}"
                    )
                    self._fail(f"nodes[{name!r}].children[{index}]", missing)
                found.append(klass)
        return found

    def _ignore_others(self, place: str, content: Mapping[str, Any], known: Container[str]) -> None:
        """Count the fields of an object that mean nothing here."""
        for field in content:
            if field not in known:
                self._ignored[place, field] += 1

    def _note(self) -> str:
        """Return what was ignored, in the order of the file."""
        names = ", ".join(map(_short, self._stale_roots[:_MOST_NOTED]))
        stale = [f"roots that no e-node is in ({names})"] if names else []
        parts = stale + [
            f"{_short(field)} of {place}{f' ({count:,} times)' if count > 1 else ''}"
            f"{nearest(field, _TOP_FIELDS if place == 'the file' else NODE_FIELDS)}"
            for (place, field), count in self._ignored.items()
        ]
        more = f" and {len(parts) - _MOST_NOTED:,} more" if len(parts) > _MOST_NOTED else ""
        return f"ignored: {', '.join(parts[:_MOST_NOTED])}{more}" if parts else ""

    def _twice(self, place: str, kind: str, repeated: RepeatedKeys) -> NoReturn:
        self._fail(place, f"the {kind} {repeated.key!r} is given twice")

    def _fail(self, place: str, reason: str) -> NoReturn:
        raise self._refusal(place, reason)

    def _refusal(self, place: str, reason: str) -> InputError:
        return InputError(f"{self._file}: {place}{': ' if place else ''}{reason}")


def _all_of(values: Iterable[Any], kind: type) -> bool:
    return set(map(type, values)) == {kind}


def _is_cost(cost: Any) -> bool:
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return False
    try:
        return math.isfinite(cost)
    except OverflowError:
        return False


def _short(value: Any) -> str:
    """Return a value of the file for one line of text."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


_LONGEST_VALUE = 60

_MOST_NOTED = 5
"""Fields that the note names."""


def _class_name(value: Any) -> Any:
    """Return a class's name: some files have whole numbers in the place of texts."""
    return str(value) if type(value) is int else value


def _distinct_children(owner: Ints, child: Ints, n_nodes: int, n_classes: int) -> tuple[Ints, Ints]:
    """Return pointers and child classes per e-node, sorted, each class once."""
    edges = np.sort(owner.astype(np.int64) * n_classes + child)
    new = np.ones(len(edges), dtype=np.bool_)
    new[1:] = edges[1:] != edges[:-1]
    node, klass = np.divmod(edges[new], n_classes)
    counts = np.bincount(node, minlength=n_nodes)
    pointer = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pointer, klass.astype(np.int32)
