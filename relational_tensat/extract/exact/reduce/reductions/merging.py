"""Reductions that merge a class into the e-nodes that need it."""

from __future__ import annotations

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import Stage, reduction
from relational_tensat.extract.exact.reduce.draft import Draft
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.techniques import Gain

_MORE_EDGES = 4
"""A class is merged into its user where that makes at most so many more edges."""


@reduction(
    "single-parents",
    "merge a class of one e-node into the only e-node that needs it",
    stage=Stage.LINEAR,
    order=60,
    earns_on=Gain("nasrnn k=1, unfiltered", "simplex_iterations"),
)
def merge_single_parents(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Merge a class with one e-node, needed by one e-node only, into that e-node.

    Whoever takes the one takes the other: what both cost and need is the same in every choice.
    """
    return _merged(reduced, 1, unlimited)


@reduction(
    "single-users",
    "merge a class of several e-nodes into the class of the only one that needs it",
    stage=Stage.COSTLY,
    order=10,
    earns_on=Gain("rings 300", "simplex_iterations"),
)
def merge_single_users(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Merge a class needed by one e-node only into that e-node's class, each way apart.

    If only e-node ``u`` needs class ``d``, then a choice with ``u`` has one e-node ``f`` of ``d``,
    which nobody else needs: instead of ``u`` the class of ``u`` gets one e-node per ``f``, which
    costs and needs what ``u`` and ``f`` do. Where ``f`` needs the class of ``u``, they were in no
    acyclic choice together.
    """
    return _merged(reduced, None, check)


def _merged(reduced: Reduced, most_members: int | None, check: Check) -> Reduced:
    draft = Draft(reduced)
    waiting = [klass for klass, users in enumerate(draft.users) if len(users) == 1]
    has_changed = False
    while waiting:
        check()
        klass = waiting.pop()
        if klass == draft.root or len(draft.users[klass]) != 1:
            continue
        (user,) = draft.users[klass]
        members = list(draft.members[klass])
        if (most_members is not None and len(members) > most_members) or not members:
            continue
        if (len(members) - 1) * (len(draft.children[user]) - 1) > _MORE_EDGES:
            continue
        owner = draft.owner[user]
        if owner == klass or (owner == draft.root and len(members) > 1):  # a root of one stays so
            continue
        has_changed = True
        child_classes = {child for node in members for child in draft.children[node]}
        for node in members:
            if owner not in draft.children[node]:
                draft.merge(user, node)
        draft.drop(user)
        for node in members:
            draft.drop(node)
        waiting.extend(sorted(child for child in child_classes if len(draft.users[child]) == 1))
    return draft.finish() if has_changed else reduced
