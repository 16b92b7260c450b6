"""Applications of single-pattern rules from their matches, in arrays: ``Matcher.single`` has SQL for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np

from relational_tensat.base.records import record
from relational_tensat.egraph.node_hashes import Ints, Places
from relational_tensat.explore.match.extremes import Mask
from relational_tensat.explore.match.found import Found, numbered, order_by
from relational_tensat.explore.match.instances import Instances


@record
class Matches:
    """Rows of the table ``match``, a column each.

    Attributes:
        patterns, roots: of each: its pattern, and the class of its root.
        signatures: of its e-nodes.
        leaves: the classes of its variables.
    """

    patterns: Ints
    roots: Ints
    signatures: Sequence[Ints]
    leaves: Sequence[Ints]


def applications_of(
    matches: Matches,
    rules_of: Mapping[int, Sequence[int]],
    rules: frozenset[int] | None,
    instances: Instances,
    left_out: Callable[[Ints, Sequence[Ints]], Mask],
) -> Found:
    """Return the applications of valid instances, in their order; judge new configurations.

    Args:
        rules_of: by pattern, the rules whose source it is.
        rules: those that take part; None for all of them.
        left_out: which applications what they bind rules out, by their rules and the classes bound; asked
            when all configurations are judged.
    """
    columns = [matches.patterns, *matches.signatures]
    number, first = numbered(columns)
    configurations = [
        [(rule, *signatures) for rule in rules_of[pattern]]
        for pattern, *signatures in zip(*(c[first].tolist() for c in columns), strict=True)
    ]
    unjudged = {c for several in configurations for c in several} - instances.ids.keys()
    if unjudged:
        instances.judge(sorted(unjudged))
    valid = [
        [
            (c[0], instance)
            for c in several
            if (instance := instances.ids[c]) and (rules is None or c[0] in rules)
        ]
        for several in configurations
    ]
    rows, of_rules, of_instances = _expanded(number, valid)
    is_kept = ~left_out(of_rules, [column[rows] for column in matches.leaves])
    rows, of_rules, of_instances = rows[is_kept], of_rules[is_kept], of_instances[is_kept]
    roots, leaves = matches.roots[rows], [column[rows] for column in matches.leaves]
    order = order_by([of_rules, int(roots.max(initial=0)) - roots, of_instances, *leaves])
    none: Ints = np.zeros(len(rows), np.int32)
    later = [none] * (instances.targets.sources - 1)
    return Found(
        np.arange(1, len(rows) + 1, dtype=np.int32), of_rules[order], of_instances[order],
        (roots[order], *later), [column[order] for column in leaves],
    )  # fmt: skip


def _expanded(
    number: Ints, valid: Sequence[Sequence[tuple[int, int]]]
) -> tuple[Places, Ints, Ints]:
    """Return a row for each match and each valid instance of it: which match, the rule, the instance.

    Args:
        number: by match, its configuration.
        valid: by configuration, rules with their instances.
    """
    counts = np.array([len(several) for several in valid], np.intp)
    starts = np.cumsum(counts) - counts
    flat = np.array(list(chain.from_iterable(valid)), np.int32).reshape(-1, 2)
    of_match = counts[number]
    if counts.max(initial=0) <= 1:
        rows = np.flatnonzero(of_match)
        place = starts[number[rows]]
    else:
        rows = np.repeat(np.arange(len(number)), of_match)
        begins = np.repeat(np.cumsum(of_match) - of_match - starts[number], of_match)
        place = np.arange(len(rows)) - begins
    return rows, flat[place, 0], flat[place, 1]
