"""Verification of many rules at once, by a runner."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from relational_tensat.base.runner import runner
from relational_tensat.rules.backends.backend import know_kernels
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
    on: str = "here",
) -> Iterator[Verified]:
    """Yield what is found out about rules, in their order, as soon as it is known.

    Args:
        seed, trials, shrink: as for ``judged``.
        on: a runner, as ``base.runner`` names it.
    """
    judge = partial(_verified, seed=seed, trials=trials, shrink=shrink)
    with runner(on) as run:
        yield from run.map(judge, rules)


def _verified(rule: Rule, *, seed: int, trials: int, shrink: bool) -> Verified:
    know_kernels()  # another process has only what it imports
    begin = time.perf_counter()
    verdict = judged(rule, seed=seed, trials=trials, shrink=shrink)
    return Verified(verdict, time.perf_counter() - begin)
