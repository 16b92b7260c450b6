"""The graph while it is rewritten: nodes that change their form and stay the same value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.terms import Terms


class RewrittenNode:
    """A value of the graph.

    Attributes:
        form: its present form, one of those of its class (see ``Routes``).
        children: its operands in that form.
        names: the value's names in the original graph.
        pins: how many callers need the node to keep its form.
        final: it has got the form that was extracted.
        became: the node that has taken its place, if there is one.
    """

    __slots__ = ("became", "children", "final", "form", "names", "pins")

    def __init__(
        self, form: int, children: Sequence[RewrittenNode], names: Iterable[str] = ()
    ) -> None:
        self.form = form
        self.children = list(children)
        self.names = list(names)
        self.pins = 0
        self.final = False
        self.became: RewrittenNode | None = None

    @property
    def fixed(self) -> bool:
        """Whether the form of the node itself must not change."""
        return self.final or self.pins > 0

    def now(self) -> RewrittenNode:
        """Return the node that stands for this one now."""
        node = self
        while node.became is not None:
            node = node.became
        return node

    def child(self, index: int) -> RewrittenNode:
        """Return an operand."""
        self.children[index] = self.children[index].now()
        return self.children[index]

    def operands(self) -> list[RewrittenNode]:
        """Return all operands."""
        children = self.children
        for index, child in enumerate(children):
            if child.became is not None:
                children[index] = child.now()
        return children

    def become(self, other: RewrittenNode) -> None:
        """Let another node take this one's place."""
        other.names += [name for name in self.names if name not in other.names]
        self.became = other

    def copy(self) -> RewrittenNode:
        """Return another node of the same form, for one user that needs it to change."""
        return RewrittenNode(self.form, self.operands(), self.names)


@contextmanager
def pinned(nodes: Sequence[RewrittenNode]) -> Iterator[None]:
    """Keep the forms of nodes while something else is done."""
    for node in nodes:
        node.pins += 1
    try:
        yield
    finally:
        for node in nodes:
            node.pins -= 1


class State:
    """A graph of nodes.

    Attributes:
        outputs: the terms that the graph returns.
    """

    def __init__(
        self, outputs: Sequence[RewrittenNode], signature_of: Callable[[int], int]
    ) -> None:
        self._outputs = list(outputs)
        self._signature_of = signature_of

    @property
    def outputs(self) -> list[RewrittenNode]:
        """The nodes that the graph returns."""
        self._outputs = [node.now() for node in self._outputs]
        return self._outputs

    def nodes(self, start: Iterable[RewrittenNode] | None = None) -> list[RewrittenNode]:
        """Return the nodes that others depend on (the outputs by default), operands first."""
        return list(self._order(self.outputs if start is None else start, set()))

    def above(self, nodes: Iterable[RewrittenNode]) -> set[RewrittenNode]:
        """Return nodes and all that depend on them."""
        members = set(nodes)
        for node in self.nodes():
            if not members.isdisjoint(node.operands()):
                members.add(node)
        return members

    def terms(self, terms: Terms) -> dict[RewrittenNode, int]:
        """Return the term of each node."""
        term_of: dict[RewrittenNode, int] = {}
        self.add_terms(term_of, terms, self.outputs)
        return term_of

    def add_terms(
        self, term_of: dict[RewrittenNode, int], terms: Terms, start: Iterable[RewrittenNode]
    ) -> None:
        """Add the terms of nodes, and of what they depend on, to those that are known."""
        for node in self._order(start, set(term_of)):
            children = [term_of[child] for child in node.children]  # up to date by now
            term_of[node] = terms.id_of(self._signature_of(node.form), children)

    def merge(self, term_of: Mapping[RewrittenNode, int]) -> None:
        """Make equal nodes one, but for those that are about to change.

        Args:
            term_of: the term of each node.
        """
        node_of: dict[int, RewrittenNode] = {}
        for node, term in term_of.items():
            if node.pins or node.became is not None:
                continue
            representative = node_of.setdefault(term, node)
            if representative is not node:
                representative.final |= node.final
                node.become(representative)

    @staticmethod
    def _order(
        start: Iterable[RewrittenNode], visited: set[RewrittenNode]
    ) -> Iterator[RewrittenNode]:
        """Yield nodes that have not been seen, operands first."""
        begun: set[RewrittenNode] = set()
        for output in start:
            path: list[RewrittenNode] = []
            waiting = [iter((output.now(),))]  # then the operands of each node of the path
            while waiting:
                for child in waiting[-1]:
                    if child not in visited:
                        if child in begun:
                            raise NoSolutionError("no explanation found: a value depends on itself")
                        begun.add(child)
                        path.append(child)
                        waiting.append(iter(child.operands()))
                        break
                else:
                    waiting.pop()
                    if path:
                        node = path.pop()
                        visited.add(node)
                        yield node
