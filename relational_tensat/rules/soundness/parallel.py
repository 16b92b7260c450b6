"""Verification of many rules at once, in as many processes as there are cores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.rule_verification import DEFAULT_TRIALS, judged
from relational_tensat.rules.soundness.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Verified:
    """A verdict and how long it took, in seconds."""

    verdict: Verdict
    seconds: float


def verified(
    rules: Sequence[Rule],
    *,
    seed: int = 0,
    trials: int = DEFAULT_TRIALS,
    shrink: bool = True,
    jobs: int = 1,
) -> Iterator[Verified]:
    """Yield what is found out about rules, in their order, as soon as it is known.

    Args:
        seed, trials, shrink: as for ``judged``.
        jobs: processes; of one, this one.
    """
    judge = partial(_verified, seed=seed, trials=trials, shrink=shrink)
    jobs = min(jobs, len(rules))
    if jobs <= 1:
        yield from map(judge, rules)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(judge, rules, chunksize=_chunk(len(rules), jobs))


def _chunk(rules: int, jobs: int) -> int:
    """A few rules at a time: little is waited for at the end, little is sent about."""
    return max(1, min(8, rules // (4 * jobs)))


def _verified(rule: Rule, *, seed: int, trials: int, shrink: bool) -> Verified:
    begin = time.perf_counter()
    verdict = judged(rule, seed=seed, trials=trials, shrink=shrink)
    return Verified(verdict, time.perf_counter() - begin)
