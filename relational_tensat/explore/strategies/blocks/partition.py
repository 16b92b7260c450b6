"""Which parts of a graph are explored, and which are the same as others.

The graph is cut into *segments*: each block that recurs, and what lies between runs of them. Two
consecutive segments are a *window*. Windows overlap by a segment, so that what rules do across the
border of two segments is in a window, too. Windows of equal form are explored once.
"""

from __future__ import annotations

from itertools import pairwise

from relational_tensat.base.records import record
from relational_tensat.explore.strategies.blocks.atoms import cut_into_atoms
from relational_tensat.explore.strategies.blocks.forms import Form, Part, part_of
from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph
from relational_tensat.explore.strategies.blocks.periods import find_runs

#: A block has at least so many e-nodes (leaves not counted): of less, rules see the neighbours' neighbours.
LEAST_NODES = 8


@record
class Window:
    """Two consecutive segments.

    Attributes:
        kind: the index of its form, from 0.
        middle: the e-node that the second segment continues from.
    """

    part: Part
    kind: int
    middle: int


@record
class Plan:
    """A graph's windows, in order.

    Attributes:
        kinds: the first window of each form.
        blocks, distinct: blocks that recur, and their forms.
    """

    windows: tuple[Window, ...]
    kinds: tuple[Window, ...]
    blocks: int
    distinct: int

    @property
    def explored_nodes(self) -> int:
        """E-nodes of the original graph in the windows that are explored, as often as they are there."""
        return sum(len(window.part.nodes) for window in self.kinds)

    @property
    def graph_nodes(self) -> int:
        """E-nodes of the original graph in all windows, each once."""
        return len({node for window in self.windows for node in window.part.nodes})


def make_plan(graph: LoadedGraph, least_nodes: int | None = None) -> Plan | None:
    """Return the plan for a graph.

    None where no block recurs, a block uses a tuple of another, or rules may join what no window has.

    Args:
        least_nodes: instead of ``LEAST_NODES``.
    """
    least_nodes = LEAST_NODES if least_nodes is None else least_nodes
    atoms = cut_into_atoms(graph)
    form_ids: dict[Form, int] = {}
    forms = [form_ids.setdefault(part_of(graph, atom).form, len(form_ids)) for atom in atoms]
    runs = find_runs(forms, [len(atom) for atom in atoms], least_nodes)
    if not runs:
        return None
    segments: list[list[list[int]]] = []
    at = 0
    for run in runs:
        if run.start > at:
            segments.append(atoms[at : run.start])
        for index in range(run.count):
            begin = run.start + index * run.length
            segments.append(atoms[begin : begin + run.length])
        at = run.end
    if at < len(atoms):
        segments.append(atoms[at:])
    if _may_join_far(graph, segments):
        return None
    distinct = {tuple(forms[run.start : run.start + run.length]) for run in runs}
    windows = _windows(graph, segments)
    if not all(graph.is_tensor(value) for window in windows for value in window.part.free):
        return None
    kinds: dict[int, Window] = {}
    for window in windows:
        kinds.setdefault(window.kind, window)
    return Plan(
        tuple(windows), tuple(kinds.values()), sum(run.count for run in runs), len(distinct)
    )


def _may_join_far(graph: LoadedGraph, segments: list[list[list[int]]]) -> bool:
    """Whether a rule of two sources may join two segments that are in no window.

    What it joins shares an operand, which for such segments is a leaf. One of the two comes after the
    other, so that joining them closes a cycle; but not so where the graph returns what a segment
    computes beside what the next one continues from.
    """
    returned = {child for node in graph.gathering for child in graph.nodes[node].children}
    if len(returned - graph.gathering) < 2:
        return False
    users: dict[int, set[int]] = {}
    for index, segment in enumerate(segments):
        for atom in segment:
            for node in atom:
                for child in graph.nodes[node].children:
                    if graph.is_leaf(child):
                        users.setdefault(child, set()).add(index)
    return any(max(places) - min(places) > 1 for places in users.values())


def _windows(graph: LoadedGraph, segments: list[list[list[int]]]) -> list[Window]:
    """Return the windows of consecutive segments (lists of atoms)."""
    kinds: dict[Form, int] = {}
    windows = []
    for first, second in pairwise(segments):
        nodes = sorted(node for atom in (*first, *second) for node in atom)
        middle = max(node for node in first[-1] if node in graph.on_inputs)
        part = part_of(graph, nodes, middle)
        windows.append(Window(part, kinds.setdefault(part.form, len(kinds)), middle))
    return windows
