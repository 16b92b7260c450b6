"""E-classes, as a page shows them: classes and e-nodes by their ids in the database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Birth:
    """The application that made an e-node: the class that its rule matched, and its operands."""

    root: int
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ENode:
    """An e-node.

    Attributes:
        children: classes.
        iteration, rule: when it was made and by what; 0 and "" for the original graph.
        filtered: the cycle filter took it out.
        forced_us: what the result would cost with it; None where the result has no use for its class, or
            that would be cyclic, or was not computed.
    """

    id: int
    form: int
    children: tuple[int, ...]
    iteration: int
    rule: str
    filtered: bool
    chosen: bool
    birth: Birth | None
    forced_us: float | None


@dataclass(frozen=True, slots=True)
class Union:
    """A union and its reason: a rule, or congruence. Classes as they were called then."""

    iteration: int
    rule: str
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class EClass:
    """A class of equal values.

    Attributes:
        is_needed: the result computes it.
        unions: the first that made it what it is.
        users: classes that have an e-node which takes it; the first.
    """

    id: int
    type: str
    names: tuple[str, ...]
    is_constant: bool
    is_needed: bool
    enodes: tuple[ENode, ...]
    unions: tuple[Union, ...]
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A class that was found, in a line: which operators it has, and how many e-nodes."""

    id: int
    names: tuple[str, ...]
    type: str
    is_needed: bool
    ops: tuple[str, ...]
    e_nodes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Classes that a page holds; the others are in the database alone."""

    classes: tuple[EClass, ...]
