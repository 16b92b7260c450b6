"""All reductions, one after the other, as long as they are worth their time.

After them, classes that every choice contains are *pinned*: the root needs them, and no other class does.
They are there in any case, so their users need not ask for them, and chains of layers decompose into layers
that share nothing (``exact/decomposition.py``).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import numpy as np

from relational_tensat.base.deadline import Budget, BudgetSpentError, Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS, ReductionStage, in_stage
from relational_tensat.extract.exact.reduce.reductions.needless import drop_self_loops
from relational_tensat.extract.exact.reduce.required_classes import members_of, required_classes
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, keep
from relational_tensat.extract.index import edge_owner, nodes_by_class, strong_components_of_classes
from relational_tensat.extract.problem import UNUSED, ExtractionProblem
from relational_tensat.extract.techniques import Technique, TechniqueGain, Techniques, declare

PINNING = declare(
    Technique(
        "pinning",
        "let the root need what every choice contains, and decompose the rest",
        earns_on=TechniqueGain("bert k=1", "simplex_iterations"),
    )
)


def pin_required(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let the root need every class that it requires, and nobody else.

    The edge to a required class stays only inside a strongly connected component, where it could
    close a cycle. The root of the result is a class of its own with one free e-node; in the
    origins both are ``UNUSED``.
    """
    reduced = drop_self_loops(reduced)  # no e-node may ask for the root, which asks for all
    required = members_of(required_classes(reduced.problem, check)[reduced.problem.root])
    below = reduced.problem.root
    reduced = with_single_root(reduced)
    problem = reduced.problem
    if problem.root == below:
        required = [klass for klass in required if klass != problem.root]
    owner = edge_owner(problem.child_ptr)
    parent = problem.node_class[owner]
    component = np.array(strong_components_of_classes(problem))
    is_required = np.zeros(problem.n_classes, dtype=np.bool_)
    is_required[required] = True
    at_root = parent == problem.root
    stays = ~at_root & ~(
        is_required[problem.child_idx] & (component[parent] != component[problem.child_idx])
    )
    root_node = nodes_by_class(problem)[problem.root][0]
    edges = (
        np.concatenate([owner[stays], np.full(len(required), root_node)]).astype(np.int32),
        np.concatenate([problem.child_idx[stays], required]).astype(np.int32),
    )
    return keep(reduced, np.ones(problem.n_nodes, dtype=np.bool_), edges=edges)


def with_single_root(reduced: Reduced) -> Reduced:
    """Return the e-graph with a root of one e-node that no other e-node needs.

    Where it is not so, one free e-node that needs the root is put above it, in a class of its
    own; in the origins both are ``UNUSED``.
    """
    problem = reduced.problem
    is_needed = bool(np.any(problem.child_idx == problem.root))
    if not is_needed and len(nodes_by_class(problem)[problem.root]) == 1:
        return reduced
    top = problem.n_classes
    return Reduced(
        problem=ExtractionProblem(
            cost_us=np.append(problem.cost_us, 0.0),
            node_class=np.append(problem.node_class, np.int32(top)),
            child_ptr=np.append(problem.child_ptr, np.int32(len(problem.child_idx) + 1)),
            child_idx=np.append(problem.child_idx, np.int32(problem.root)),
            n_classes=top + 1,
            root=top,
            original=np.full(top + 1, UNUSED, dtype=np.int32),
        ),
        source=reduced.source,
        node_origin=np.append(reduced.node_origin, np.int32(UNUSED)),
        class_origin=np.append(reduced.class_origin, np.int32(UNUSED)),
        fixed=reduced.fixed,
        chains=reduced.chains,
    )


WORTHWHILE = 0.02
"""Reductions are repeated as long as they drop at least this fraction of the e-nodes."""

_SHARE_OF_ONE = 0.5
"""How much of the time that is left for reductions one of them may take."""

Steps: TypeAlias = Generator[Reduced, None, Reduced]
"""E-graphs that become smaller; the last is returned, too. Any of them will do where time is over."""


def reduce(
    reduced: Reduced,
    check: Check = unlimited,
    techniques: Techniques | None = None,
) -> Reduced:
    """Return a smaller e-graph with an optimum that lifts to one of this e-graph.

    Args:
        reduced: an e-graph whose root has an acyclic derivation; perhaps reduced before.
        check: asked often.
        techniques: which reductions to use, and where to count what they drop.
    """
    for smaller in steps(reduced, check, techniques or Techniques()):
        reduced = smaller
    return reduced


def reduce_and_pin(reduced: Reduced, check: Check, techniques: Techniques) -> Steps:
    """Yield the same as it becomes smaller, and its root needs what every choice contains."""
    reduced = with_single_root((yield from steps(reduced, check, techniques)))
    while True:
        while techniques.uses(PINNING):
            before = reduced
            reduced = techniques.apply(PINNING, partial(pin_required, check=check), reduced)
            reduced = yield from steps(reduced, check, techniques)
            if not shrunk(before, reduced):
                break
        before = reduced
        for member in in_stage(ReductionStage.PINNED):
            smaller = _apply(member.name, reduced, check, techniques)
            if smaller is not reduced:
                smaller = with_single_root((yield from steps(smaller, check, techniques)))
            reduced = smaller
        if not shrunk(before, reduced):
            return reduced


def steps(reduced: Reduced, check: Check, techniques: Techniques) -> Steps:
    """Yield the same as the linear and the costly reductions make it smaller.

    Where ``check`` is a budget, a reduction that takes more than its share of it is left out.
    """
    while True:
        before = reduced
        reduced = _linear_rounds(reduced, check, techniques)
        yield reduced
        for member in in_stage(ReductionStage.COSTLY):
            check()
            own = check.share(_SHARE_OF_ONE) if isinstance(check, Budget) else check
            with suppress(BudgetSpentError):
                reduced = _apply(member.name, reduced, own, techniques)
            # Classes left over by the costly reductions must be derivable and reachable again.
            reduced = _apply("underivable", reduced, check, techniques)
            yield reduced
        if not shrunk(before, reduced):
            reduced = _linear_rounds(reduced, check, techniques)
            yield reduced
            return reduced


def shrunk(before: Reduced, after: Reduced) -> bool:
    """Return whether enough e-nodes went away to try again."""
    return after.problem.n_nodes < before.problem.n_nodes * (1 - WORTHWHILE)


def linear_round(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    """Carry out every reduction that takes linear time, or nearly, once."""
    for member in in_stage(ReductionStage.LINEAR):
        check()
        reduced = _apply(member.name, reduced, check, techniques)
    return reduced


def _linear_rounds(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    while True:
        before = reduced
        reduced = linear_round(reduced, check, techniques)
        if not shrunk(before, reduced):
            return reduced


def _apply(name: str, reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    """Carry out a reduction by its name, unless it is left out."""
    return techniques.apply(name, lambda before: REDUCTIONS[name].run(before, check), reduced)
