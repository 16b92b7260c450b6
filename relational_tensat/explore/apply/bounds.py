"""What applying is given: the applications that a search found, and what bounds the building of targets."""

from __future__ import annotations

from relational_tensat.base.records import record
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS


@record
class Bounds:
    """What bounds the building of targets.

    Attributes:
        node_limit: the most e-nodes that the world may have.
        total_nodes: the e-nodes of all targets, if nothing is shared.
        steps: the most nodes that a target has.
        sources: the most that the rules have.
        roots: how many columns of roots applications have: of those of one source, one is used.
        bound: how many bindings an application has before its target is built.
        operands: the most that an e-node of a target has.
        rules: what the first comments of statements report of the rules.
        is_whole: the caller undoes all where the limit leaves something out: so it ends there.
    """

    node_limit: int
    total_nodes: int
    steps: int
    sources: int
    bound: int
    operands: int = CHILD_COLUMNS
    roots: int = 2
    is_whole: bool = False
    rules: str = ""


@record
class Candidates:
    """Applications that a search found: the rows of the table ``application``, as it is now.

    Attributes:
        applications: the highest id among them.
        has_rest: whether others of the same search may follow.
    """

    applications: int
    bounds: Bounds
    has_rest: bool = False
