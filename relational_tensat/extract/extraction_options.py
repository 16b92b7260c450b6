"""The options of extraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relational_tensat.base.lazy import Registry
from relational_tensat.base.option import OptionGroup, option

_EXTRACTION = "relational_tensat.extract.extraction"

#: What ``--extractor`` names; each is an ``extraction.Extractor``.
EXTRACTORS: Registry[Any] = Registry(
    "extractor",
    {
        "ilp": f"{_EXTRACTION}:ilp",
        "greedy-dag": f"{_EXTRACTION}:greedy_dag",
        "greedy": f"{_EXTRACTION}:greedy",
        "ocf": f"{_EXTRACTION}:ocf",
    },
)


@dataclass(frozen=True, slots=True)
class ExtractionOptions(OptionGroup):
    """How a graph is chosen, how long that may take, and when.

    Attributes:
        extractor: ``greedy`` (least tree cost), ``ocf`` (Algorithm 2 of the paper of tree search),
            ``greedy-dag`` (shared work charged once, never worse than the original graph) or ``ilp``
            (proven by HiGHS, never worse than ``greedy-dag``).
        ilp_cycles: how cycles are kept out of strongly connected components: ``order`` (topological
            variables), ``cuts`` (for the cycles that are found) or ``auto`` (by the size of the
            component); or, without reductions, as the papers do: ``real`` or ``int`` (topological
            variables over all classes) or ``none`` (a cyclic answer is repaired by cuts).
        time_limit_s: wall seconds for ``ilp``, and for improving very large choices of ``greedy-dag``;
            the best choice so far is returned then.
        extract_every: these extractions together may take as long as exploration has, and half a second
            each anyway.
    """

    extractor: str = option("ilp", "how the graph is chosen", choices=EXTRACTORS)
    ilp_cycles: str = option(
        "auto",
        "how the ILP is kept acyclic",
        choices=("auto", "order", "cuts", "real", "int", "none"),
        is_rare=True,
    )
    time_limit_s: float = option(
        60.0,
        "seconds of extraction",
        name="extract_time_limit_s",
        metavar="S",
        default_text="60, or 2 where the result is timed here",
        is_rare=True,
    )
    extract_every: int = option(
        0,
        "extract after every N iterations, too, for as long as they took; 0: never",
        metavar="N",
        is_rare=True,
    )
