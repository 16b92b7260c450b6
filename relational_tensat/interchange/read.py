"""Reading an e-graph file of the egraph-serialize format into an extraction problem.

``{"nodes": {ID: {"op", "children": [ID…], "eclass", "cost", "subsumed"}}, "root_eclasses": […],
"class_data": {…}}``. A child is an e-node that stands for its e-class. A cost that is not given
is 1; a subsumed e-node is not extracted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from relational_tensat.errors import InputError, NoSolutionError, nearest
from relational_tensat.extract.dropping import derivable_classes
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints

_TOP_FIELDS = ("nodes", "root_eclasses", "class_data")
_NODE_FIELDS = ("op", "children", "eclass", "cost", "subsumed")
_DEFAULT_COST = 1.0


@dataclass(frozen=True, eq=False)
class SerializedEGraph:
    """An e-graph of a file, by numbers and by the names that it has there.

    Attributes:
        problem: what to extract; its unit of cost is the file's. Of several roots, the root is one
            free e-node above them, the last e-node and class.
        nodes: names of the e-nodes, without that of the root; subsumed ones are left out.
        classes: names of the e-classes, without that of the root.
        ops: per e-node, its operator.
        roots: the classes to extract.
    """

    problem: ExtractionProblem
    nodes: list[str]
    classes: list[str]
    ops: list[str]
    roots: list[int]

    def check_derivable(self, file: str) -> None:
        """Refuse an e-graph of which no graph can be extracted.

        Raises:
            NoSolutionError: a root has no acyclic derivation.
        """
        derivable = derivable_classes(self.problem)
        for root in self.roots:
            if not derivable[root]:
                raise NoSolutionError(
                    f"{file}: the root e-class {self.classes[root]!r} has no acyclic derivation"
                )

    def named(self, choice: Ints) -> dict[str, str]:
        """Return a choice by names: per e-class that is needed, the e-node."""
        used = np.flatnonzero(choice[: len(self.classes)] != UNUSED).tolist()
        return {self.classes[each]: self.nodes[int(choice[each])] for each in used}


def read_egraph_json(path: Path) -> SerializedEGraph:
    """Return the e-graph of a file.

    Raises:
        InputError: the file cannot be read, is not of the format, or describes no e-graph; names
            the place in it and what was expected.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    return _Reader(str(path)).read(content)


class _Reader:
    """Turns the content of one file into numbers; every complaint names the place."""

    def __init__(self, file: str) -> None:
        self._file = file

    def read(self, content: Any) -> SerializedEGraph:
        nodes = self._top(content)
        names = [name for name, node in nodes.items() if not self._is_subsumed(name, node)]
        class_of, classes = self._classes(nodes)
        number = {name: index for index, name in enumerate(classes)}
        roots = self._roots(content, number)
        self._check_class_data(content, number)
        node_class = [class_of[name] for name in names]
        self._check_inhabited(classes, node_class)
        costs = [self._cost(name, nodes[name]) for name in names]
        children = [self._children(name, nodes[name], class_of) for name in names]
        root = roots[0]
        n_classes = len(classes)
        if len(roots) > 1:
            root, n_classes = n_classes, n_classes + 1
            node_class.append(root)
            costs.append(0.0)
            children.append(sorted(set(roots)))
        pointers = np.zeros(len(children) + 1, dtype=np.int32)
        np.cumsum([len(each) for each in children], out=pointers[1:])
        problem = ExtractionProblem(
            cost_us=np.array(costs, dtype=np.float64),
            node_class=np.array(node_class, dtype=np.int32),
            child_ptr=pointers,
            child_idx=np.array([c for each in children for c in each], dtype=np.int32),
            n_classes=n_classes,
            root=root,
            original=np.full(n_classes, UNUSED, dtype=np.int32),
        )
        return SerializedEGraph(
            problem, names, classes, [str(nodes[name]["op"]) for name in names], roots
        )

    def _top(self, content: Any) -> dict[str, Any]:
        if not isinstance(content, dict):
            self._fail("", f"expected an object with {', '.join(_TOP_FIELDS)}")
        self._known_fields("", content, _TOP_FIELDS)
        nodes = content.get("nodes")
        if not isinstance(nodes, dict) or not nodes:
            self._fail("nodes", "expected an object of e-nodes, at least one")
        for name, node in nodes.items():
            place = f"nodes[{name!r}]"
            if not isinstance(node, dict):
                self._fail(place, "expected an object")
            self._known_fields(place, node, _NODE_FIELDS)
            for field in ("op", "eclass"):
                if not isinstance(node.get(field), str):
                    self._fail(place, f"expected a text {field!r}")
        return nodes

    def _classes(self, nodes: Mapping[str, Any]) -> tuple[dict[str, int], list[str]]:
        """Return the class of each e-node by name, and the names of the classes."""
        number: dict[str, int] = {}
        of_node = {
            name: number.setdefault(node["eclass"], len(number)) for name, node in nodes.items()
        }
        return of_node, list(number)

    def _roots(self, content: Mapping[str, Any], number: Mapping[str, int]) -> list[int]:
        roots = content.get("root_eclasses")
        if not isinstance(roots, list) or not roots:
            self._fail("root_eclasses", "expected a list of e-classes, at least one")
        for index, name in enumerate(roots):
            if not isinstance(name, str) or name not in number:
                self._fail(f"root_eclasses[{index}]", f"no e-node is in the e-class {name!r}")
        return list(dict.fromkeys(number[name] for name in roots))

    def _check_class_data(self, content: Mapping[str, Any], number: Mapping[str, int]) -> None:
        data = content.get("class_data", {})
        if not isinstance(data, dict):
            self._fail("class_data", "expected an object by e-class")
        for name in data:
            if name not in number:
                self._fail(f"class_data[{name!r}]", "no e-node is in this e-class")

    def _check_inhabited(self, classes: list[str], node_class: list[int]) -> None:
        inhabited = np.zeros(len(classes), dtype=np.bool_)
        inhabited[node_class] = True
        for index in np.flatnonzero(~inhabited).tolist():
            self._fail(f"the e-class {classes[index]!r}", "all of its e-nodes are subsumed")

    def _is_subsumed(self, name: str, node: Mapping[str, Any]) -> bool:
        subsumed = node.get("subsumed", False)
        if not isinstance(subsumed, bool):
            self._fail(f"nodes[{name!r}].subsumed", f"{subsumed!r}, expected true or false")
        return subsumed

    def _cost(self, name: str, node: Mapping[str, Any]) -> float:
        cost = node.get("cost", _DEFAULT_COST)
        is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
        if not is_number or not math.isfinite(cost) or cost < 0:
            self._fail(f"nodes[{name!r}].cost", f"{cost!r}, expected a finite number, 0 or more")
        return float(cost)

    def _children(
        self, name: str, node: Mapping[str, Any], class_of: Mapping[str, int]
    ) -> list[int]:
        children = node.get("children", [])
        if not isinstance(children, list):
            self._fail(f"nodes[{name!r}].children", "expected a list of e-nodes")
        try:
            return sorted({class_of[child] for child in children})
        except (KeyError, TypeError):
            for index, child in enumerate(children):
                if not isinstance(child, str) or child not in class_of:
                    place = f"nodes[{name!r}].children[{index}]"
                    self._fail(place, f"there is no e-node {child!r}")
            raise

    def _known_fields(self, place: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for field in found:
            if field not in known:
                self._fail(place, f"unknown field {field!r}{nearest(field, known)}")

    def _fail(self, place: str, reason: str) -> NoReturn:
        raise InputError(f"{self._file}: {place}{': ' if place else ''}{reason}")
