"""Building applications: what worlds ask for first goes into the universe, by the statements of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.explore.apply.applying import apply_all
from relational_tensat.explore.apply.bounds import Candidates
from relational_tensat.explore.match.found import Found
from relational_tensat.explore.world import World
from relational_tensat.explore.worlds.applications import Applications
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays
from relational_tensat.explore.worlds.templates import Templates

#: So many applications are built by one statement at the most; see ``applying``.
MOST_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What building did.

    Attributes:
        unions: unions that applications asked for, congruence included.
        complete: whether the universe's limit left nothing out.
    """

    unions: int
    complete: bool


def build(
    world: World,
    applications: Applications,
    places: Ints,
    arrays: NodeArrays,
    iteration: int,
    universe_limit: int,
) -> BuildReport:
    """Build some applications of rules of equally many sources, as far as the universe's limit allows.

    Args:
        places: of the applications; their bindings must be canonical.
    """
    rules = applications.rules[places]
    n_sources = len(world.rules.rule(int(rules[0])).patterns)
    bound = n_sources * world.rules.leaf_columns
    roots = root_classes(world, applications, places, arrays)
    found = Found(
        np.arange(1, len(places) + 1, dtype=np.int32),
        rules,
        applications.instances[places],
        (roots[:, 0].copy(), roots[:, 1].copy()),
        list(np.ascontiguousarray(applications.bindings[places][:, :bound].T)),
    )
    bounds = world.matcher.instances.bounds(found.matches(), universe_limit)
    found.write(world.egraph.database)
    report = apply_all(world, [Candidates(len(places), bounds)], iteration)
    return BuildReport(report.unions, report.complete)


def root_classes(
    world: World, applications: Applications, places: Ints, arrays: NodeArrays
) -> Ints:
    """Return the classes of the roots of sources, two columns; 0 for no second one."""
    roots = np.zeros((len(places), 2), np.int32)
    sources = applications.sources[places]
    roots[:, 0] = arrays.owner[sources[:, 0]]
    of_rules, of_row = np.unique(applications.rules[places], return_inverse=True)
    second = np.array([second_root(world, rule) for rule in of_rules.tolist()], np.int32)[of_row]
    has_second = np.flatnonzero(second > 0)
    roots[has_second, 1] = arrays.owner[sources[has_second, second[has_second]]]
    return roots


def look_up_targets(
    world: World,
    applications: Applications,
    templates: Templates,
    places: Ints,
    arrays: NodeArrays,
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the e-nodes of targets that exist, and whether all do and are equal to the sources.

    Args:
        places: applications of rules of equally many sources.
    """
    bound = len(world.rules.rule(int(applications.rules[places[0]])).patterns)
    bindings = applications.bindings[places][:, : bound * world.rules.leaf_columns]
    instances = applications.instances[places]
    targets, target_roots = templates.look_up(arrays, instances, bindings)
    roots = root_classes(world, applications, places, arrays)
    is_whole = (targets > 0).sum(axis=1) == templates.sizes(instances)
    return targets, is_whole & (roots == target_roots).all(1)


def cyclic(
    world: World, applications: Applications, places: Ints, arrays: NodeArrays
) -> Sequence[int]:
    """Return those of some applications of two sources that would close a cycle.

    The root of one source is, or is below, a variable of the other. "Below" is by the oldest e-node of each
    class: these form no cycle, and depend on nothing that a rule found since, which may itself be cyclic.
    """
    oldest = _oldest_nodes(arrays)
    roots = root_classes(world, applications, places, arrays)
    bits = {int(root): 1 << i for i, root in enumerate(np.unique(roots))}
    below: dict[int, int] = {0: 0}
    columns = world.rules.leaf_columns
    bindings = applications.bindings[places]
    for leaf in np.unique(bindings).tolist():
        _note_below(leaf, oldest, arrays.children, bits, below)
    return [
        int(place)
        for place, (root0, root1), leaves in zip(
            places, roots.tolist(), bindings.tolist(), strict=True
        )
        if any(below[leaf] & bits[root1] for leaf in leaves[:columns])
        or any(below[leaf] & bits[root0] for leaf in leaves[columns:])
    ]


def _note_below(
    start: int, oldest: Ints, children: Ints, bits: dict[int, int], below: dict[int, int]
) -> None:
    """Note which of some classes (by bit) are a class or below it, and so of all classes below it."""
    stack = [start]
    while stack:
        owner = stack[-1]
        if owner in below:
            stack.pop()
            continue
        under = children[oldest[owner]].tolist()
        waiting = [child for child in under if child not in below]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        total = bits.get(owner, 0)
        for child in under:
            total |= below[child]
        below[owner] = total


def _oldest_nodes(arrays: NodeArrays) -> Ints:
    """Return, by class, the e-node with the lowest id."""
    oldest = np.zeros(arrays.size, np.int32)
    ids = np.flatnonzero(arrays.exists)[::-1]
    oldest[arrays.owner[ids]] = ids
    return oldest


def second_root(world: World, rule: int) -> int:
    """Return where the root of a rule's second source stands among the e-nodes; 0 where there is none."""
    patterns = world.rules.rule(rule).patterns
    return len(world.rules.patterns[patterns[0] - 1].nodes) if len(patterns) > 1 else 0
