"""Extraction: the cheapest acyclic choice of e-nodes, greedy or with a proof by HiGHS.

The names below are imported when they are first used: code that only reads options needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.extract.extraction import extract
    from relational_tensat.extract.extraction_options import ExtractionOptions
    from relational_tensat.extract.problem import (
        UNUSED,
        Extraction,
        ExtractionProblem,
        dag_cost_us,
        is_acyclic,
        reachable,
        relative_gap,
        topological_order,
    )
    from relational_tensat.extract.techniques import TECHNIQUES

__all__ = [
    "TECHNIQUES",
    "UNUSED",
    "Extraction",
    "ExtractionOptions",
    "ExtractionProblem",
    "dag_cost_us",
    "extract",
    "is_acyclic",
    "reachable",
    "relative_gap",
    "topological_order",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "extraction": ("extract",),
        "extraction_options": ("ExtractionOptions",),
        "problem": (
            "UNUSED",
            "Extraction",
            "ExtractionProblem",
            "dag_cost_us",
            "is_acyclic",
            "reachable",
            "relative_gap",
            "topological_order",
        ),
        "techniques": ("TECHNIQUES",),
    },
)
