"""Forms: e-nodes as they were when they came up, on the operands of then; and when two became one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from relational_tensat.explain.unions import Congruence

_NEVER = float("inf")


class Forms:
    """A congruence closure that records when two forms became one.

    The union-find has no path compression, so that the latest time on the way between two forms is the
    time since which they are one (Nieuwenhuis and Oliveras, "Fast congruence closure and extensions",
    Information and Computation 2007).

    Args:
        connect: is called with each congruence that is found.

    Attributes:
        signatures: of each form, its operator's.
        operands: of each form, the forms that it is computed from.
        time: how many unions there were so far, requested or by congruence. Each has a time of its own:
            a congruence may make two operands one that were one before, and comes after what it needs.
    """

    def __init__(self, connect: Callable[[Congruence], None]) -> None:
        self._connect = connect
        self.signatures: list[int] = []
        self.operands: list[tuple[int, ...]] = []
        self.time = 0
        self._form_of: dict[tuple[int, tuple[int, ...]], int] = {}
        #: A form of each signature on classes as they are now, by these classes' roots.
        self._congruent: dict[tuple[int, tuple[int, ...]], int] = {}
        #: The forms that are computed from a class, by its root.
        self._users: dict[int, list[int]] = defaultdict(list)
        self._parent: list[int] = []
        self._size: list[int] = []
        #: When a form got another one as its parent.
        self._joined: list[float] = []

    def form(self, signature: int, operands: tuple[int, ...]) -> int:
        """Return the form of a signature on forms; a new one is made one with what it is congruent to."""
        form = self._form_of.setdefault((signature, operands), len(self.operands))
        if form == len(self.operands):
            self.signatures.append(signature)
            self.operands.append(operands)
            self._parent.append(form)
            self._size.append(1)
            self._joined.append(_NEVER)
            for operand in set(map(self._root, operands)):
                self._users[operand].append(form)
            self._unite_congruent(self._congruences([form]))
        return form

    def unite(self, a: int, b: int) -> None:
        """Make two forms one, and then all that is congruent."""
        self._unite_congruent(self._unite(a, b))

    def one_since(self, a: int, b: int) -> float:
        """Return the time of the last union that two forms need to be one; infinity where they are not."""
        time = 0.0
        while a != b:
            if self._joined[a] > self._joined[b]:
                a, b = b, a
            if self._joined[a] == _NEVER:
                return _NEVER
            time = max(time, self._joined[a])
            a = self._parent[a]
        return time

    def _unite_congruent(self, pairs: list[tuple[int, int]]) -> None:
        while pairs:
            pair = pairs.pop()
            self._connect(Congruence(*pair, self.time + 1))
            pairs += self._unite(*pair)

    def _unite(self, a: int, b: int) -> list[tuple[int, int]]:
        """Make two forms one; return what is congruent by that."""
        self.time += 1
        small, large = sorted(map(self._root, (a, b)), key=self._size.__getitem__)
        if small == large:
            return []
        self._parent[small], self._joined[small] = large, self.time
        self._size[large] += self._size[small]
        users = self._users.pop(small, [])
        self._users[large] += users
        return self._congruences(users)

    def _congruences(self, forms: list[int]) -> list[tuple[int, int]]:
        """Return what forms are congruent to, after one of their operands has got another class."""
        found = []
        for form in forms:
            key = self.signatures[form], tuple(map(self._root, self.operands[form]))
            other = self._congruent.setdefault(key, form)
            if other != form:
                found.append((other, form))
        return found

    def _root(self, form: int) -> int:
        while self._parent[form] != form:
            form = self._parent[form]
        return form
