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
    return "\n\n".join([*blocks, *_summary(ablations)])


def _summary(ablations: Sequence[Ablation]) -> list[str]:
    """Return a table of what each technique is worth over all e-graphs, by exact counts."""
    header = (
        "left out",
        "not proven",
        "more iterations",
        "fewer",
        "at most",
        "more e-nodes left",
    )
    bases = [ablation.answers[0] for ablation in ablations]
    rows = []
    for answers in zip(*(ablation.answers[1:] for ablation in ablations), strict=True):
        pairs = list(zip(answers, bases, strict=True))
        proven = [(a, b) for a, b in pairs if a.status == b.status == "optimal"]
        iterations = [(a.simplex_iterations, b.simplex_iterations) for a, b in proven]
        sizes = [(a.reduced[0], b.reduced[0]) for a, b in pairs if a.reduced and b.reduced]
        rows.append(
            (
                answers[0].method,
                str(sum(b.status == "optimal" and a.status != "optimal" for a, b in pairs)),
                str(sum(count > base for count, base in iterations)),
                str(sum(count < base for count, base in iterations)),
                _ratio(*max(iterations, key=_quotient, default=(0, 0))),
                str(sum(count > base for count, base in sizes)),
            )
        )
    title = f"of {len(ablations)} e-graphs, how many were so without"
    return [f"{title}\n{format_table(header, rows)}"] if rows else []


def _quotient(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1] if counts[1] else 0.0


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
