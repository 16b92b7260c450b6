"""What each reduction and cut is worth: it is left out, and time, gap and size are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.extract.instances import Instance
from bench.extract.methods import Answer, contradictions, ours_without
from bench.extract.report import format_table
from relational_tensat.extract import TECHNIQUES

_ALL = "all"


@dataclass(frozen=True, slots=True)
class Ablation:
    """One e-graph solved with all techniques and without each in turn.

    Attributes:
        instance: name of the e-graph.
        answers: the first with all techniques (``method`` is ``all``), the others by the name of
            what was left out.
        contradictions: answers that cannot all be true, in words.
    """

    instance: str
    answers: tuple[Answer, ...]
    contradictions: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the keys of the documented schema."""
        return asdict(self)


def ablate(
    instance: Instance,
    time_limit_s: float,
    *,
    threads: int = 1,
    techniques: Sequence[str] = tuple(TECHNIQUES),
) -> Ablation:
    """Solve an e-graph with all techniques, and without each of them in turn."""
    answers = [
        ours_without(instance.problem, technique, time_limit_s, threads=threads)
        for technique in (None, *techniques)
    ]
    return Ablation(instance.name, tuple(answers), tuple(contradictions(answers, instance.optimum)))


def ablation_tables(ablations: Sequence[Ablation]) -> str:
    """Return a table per e-graph: seconds, gap, cost, size after reduction and HiGHS's counts."""
    header = (
        "left out",
        "CPU s",
        "of all",
        "gap",
        "cost above all's",
        "e-nodes left",
        "of all",
        "iterations",
        "branch nodes",
    )
    blocks = []
    for ablation in ablations:
        base, *ablated = ablation.answers
        rows = [_row(answer, base) for answer in (base, *ablated)]
        blocks.append(f"ablation: {ablation.instance}\n{format_table(header, rows)}")
    return "\n\n".join(blocks)


def _row(answer: Answer, base: Answer) -> tuple[str, ...]:
    reduced, base_reduced = answer.reduced, base.reduced
    return (
        "(nothing)" if answer.method == _ALL else answer.method,
        f"{answer.cpu_s:.2f}",
        _ratio(answer.cpu_s, base.cpu_s),
        "optimal" if answer.status == "optimal" else f"{answer.gap or 0.0:.2%} t/o",
        _difference(answer.cost, base.cost),
        "-" if reduced is None else f"{reduced[0]:,}",
        "-" if reduced is None or base_reduced is None else _ratio(reduced[0], base_reduced[0]),
        f"{answer.simplex_iterations:,}",
        f"{answer.branch_nodes:,}",
    )


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.2f}x" if base > 0 else "-"


def _difference(cost: float | None, base: float | None) -> str:
    if cost is None or base is None:
        return "-"
    return "=" if abs(cost - base) <= 1e-6 * max(1.0, base) else f"{cost / base - 1:+.2%}"
