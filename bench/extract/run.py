"""Running the extractors over groups of e-graphs, in several processes."""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.extract.ablation import Ablation, ablate
from bench.extract.instances import Instance, Source
from bench.extract.methods import PAPER_METHODS, Answer, contradictions, run_method
from bench.extract.report import cell

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take.

    Attributes:
        ours_s: wall seconds of one extraction of ours (and of Algorithm 2).
        papers_s: wall seconds of one of the papers' integer programs.
        threads: of HiGHS.
        deadline: ``time.time()`` after which no further e-graph is begun.
    """

    ours_s: float
    papers_s: float
    threads: int = 1
    deadline: float = math.inf


@dataclass(frozen=True, slots=True)
class Group:
    """E-graphs of growing size, run one after the other in one process.

    Attributes:
        sources: the smaller first: a paper's integer program that finds no solution of one is not
            run on those after it.
    """

    sources: tuple[Source, ...]
    methods: tuple[str, ...]
    limits: Limits


def run_groups(groups: Sequence[Group], jobs: int) -> Iterator[Row]:
    """Yield a row per e-graph: what it is, the answers, and contradictions between them.

    Args:
        groups: what to run; rows come in this order.
        jobs: processes at a time; with 1, all runs in this one.
    """
    if jobs == 1:
        for group in groups:
            yield from run_group(group)
        return
    # Not forked: DuckDB and HiGHS have threads, which a fork would not copy.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for rows in pool.map(run_group, groups):
            yield from rows


def run_group(group: Group) -> list[Row]:
    """Return the rows of a group."""
    rows: list[Row] = []
    hopeless: set[str] = set()
    for source in group.sources:
        if _too_late(source, group.limits):
            continue
        instance = source.make()
        answers = []
        for method in group.methods:
            if method in hopeless:
                answers.append(Answer(method, "skipped", note="no solution of a smaller one"))
                continue
            answer = _answer(instance, method, group.limits)
            answers.append(answer)
            if method in PAPER_METHODS and answer.status == "no solution":
                hopeless.add(method)
        wrong = contradictions(answers, instance.optimum)
        rows.append({**instance.describe(), "answers": answers, "contradictions": wrong})
        _print_answers(instance.name, instance.problem.n_nodes, answers)
    return rows


@dataclass(frozen=True, slots=True)
class AblationTask:
    """An e-graph to be solved without each technique in turn."""

    source: Source
    limits: Limits


def run_ablations(tasks: Sequence[AblationTask], jobs: int) -> Iterator[Ablation]:
    """Yield the ablation of each e-graph, in order."""
    if jobs == 1:
        yield from (ablation for ablation in map(run_ablation, tasks) if ablation)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from (ablation for ablation in pool.map(run_ablation, tasks) if ablation)


def run_ablation(task: AblationTask) -> Ablation | None:
    """Return the ablation of one e-graph; None where it is too late to begin it."""
    if _too_late(task.source, task.limits):
        return None
    instance = task.source.make()
    ablation = ablate(instance, task.limits.ours_s, threads=task.limits.threads)
    _print_answers(f"ablation of {instance.name}", instance.problem.n_nodes, ablation.answers[:1])
    return ablation


def _too_late(source: Source, limits: Limits) -> bool:
    is_late = time.time() > limits.deadline
    if is_late:
        print(f"{source.name}: not run, the bench's time is over", file=sys.stderr, flush=True)
    return is_late


def _answer(instance: Instance, method: str, limits: Limits) -> Answer:
    limit_s = limits.papers_s if method in PAPER_METHODS else limits.ours_s
    return run_method(instance.problem, method, limit_s, threads=limits.threads)


def _print_answers(name: str, n_nodes: int, answers: Sequence[Answer]) -> None:
    last = answers[-1]
    print(
        f"{name}: {n_nodes:,} e-nodes; {last.method} {cell(last, last.cost)}",
        file=sys.stderr,
        flush=True,
    )
