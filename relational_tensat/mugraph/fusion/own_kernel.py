"""A kernel of a model's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.rules.model import Rule

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A kernel that was made or found for a part of a model, and passed verification.

    Attributes:
        key: k and the hash of its μGraph's content; a word of the rule language, which digits are not.
        graph: the μGraph.
        rules: let it stand for operators, each for other ones of the same program.
        dtype: of its elements.
        operands, results: shapes as the model has them: dims of size 1 are none of the μGraph's, and
            several of its dims may be one here.
        cost_us: modelled, or measured as C where costs are; None where it costs what its operators do in
            one kernel, by the roofline.
        masks: by rule, the variables whose elements may be -inf, or the lowest number: it was tested so.
    """

    key: str
    graph: MuGraph
    rules: tuple[Rule, ...]
    dtype: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    cost_us: float | None
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
