"""The axioms as rules of the engine: those of ``rules/mugraph``, and one per pair of sizes of a program."""

from __future__ import annotations

from collections.abc import Iterable

from relational_tensat.base.resources import resource_dir
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import Rule

_LINK = """
(rule abstract-sum-of-{whole}-is-sums
  (law "sum({first}, sum({rest}, x)) = sum({whole}, x)")
  (<=> (abstract_sum ?x :size {whole}) (abstract_sum (abstract_sum ?x :size {rest}) :size {first})))
"""


def axioms(sizes: Iterable[int], files: Iterable[str] = ()) -> list[Rule]:
    """Return the equalities of Table 2, for sums over so many elements, and those of further files.

    ``abstract_operators`` has to hold where they are read and used.
    """
    chains = {link for size in sizes for link in chain(size)}
    text = "".join(
        _LINK.format(whole=whole, first=first, rest=rest) for whole, first, rest in sorted(chains)
    )
    folder = resource_dir("rules") / "mugraph"
    shipped = [r for name in ("axioms", *files) for r in read_rule_file(folder / f"{name}.rules")]
    return [*shipped, *parse_rules(text, "the sizes of a program")]


def chain(size: int) -> list[tuple[int, int, int]]:
    """Return how a number falls apart, smallest factor first: (12, 2, 6), (6, 2, 3)."""
    links, factor = [], 2
    while factor * factor <= size:
        if size % factor:
            factor += 1
        else:
            links.append((size, factor, size // factor))
            size //= factor
    return links
