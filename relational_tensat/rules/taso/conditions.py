"""The search for the condition under which a rule holds.

Of the conditions, and conjunctions of them, that reject every example on which the law fails, the one
is taken that keeps most of those on which it holds. Then more examples are sought beside those that
it keeps; while one of them refutes it, the search is repeated with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.rules.model import Expr
from relational_tensat.rules.taso.samples import Samples
from relational_tensat.rules.taso.vocabulary import vocabulary

_MOST_CONJUNCTS = 3
#: A condition that keeps fewer of the examples on which the law holds repairs nothing.
_LEAST_KEPT, _LEAST_SHARE = 6, 0.02
#: More conjuncts must be worth it: fewer are taken if they keep that share of the most that can be.
_WORTH_SHARE = 0.9
_ROUNDS = 8
#: Examples sought that could refute a condition, and attempts to find them: any, and such as lack
#: what those that it keeps have in common.
_PROBES, _PROBE_ATTEMPTS = 60, 1500
_CHALLENGE_ATTEMPTS = 30_000


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A condition and the examples that it accepts, as bits."""

    condition: Expr
    accepted: int


def find_condition(samples: Samples) -> tuple[Expr, ...] | None:
    """Return the weakest conjunction under which a rule holds on all examples.

    The examples by which it was tried are added to ``samples``.

    Returns:
        None where no condition of the vocabulary repairs the rule, or only such as leave next to
        nothing of it.
    """
    words = vocabulary(samples.rule)
    for _ in range(_ROUNDS):
        condition = _weakest(words, samples)
        if condition is None:
            return None
        before = len(samples.examples)
        samples.look_around(_PROBES, _PROBE_ATTEMPTS, condition)
        samples.challenge(words, _CHALLENGE_ATTEMPTS, condition)
        if all(example.holds for example in samples.examples[before:]):
            return condition
    return None


def _weakest(words: Sequence[Expr], samples: Samples) -> tuple[Expr, ...] | None:
    good = sum(example.holds << place for place, example in enumerate(samples.examples))
    bad = ~good & (1 << len(samples.examples)) - 1
    least = max(_LEAST_KEPT, int(_LEAST_SHARE * good.bit_count()))
    candidates = _candidates(words, samples, good, bad, least)
    best = [_best(candidates, size, good, bad, least) for size in range(1, _MOST_CONJUNCTS + 1)]
    most = max(count for count, _ in best)
    for count, conjunction in best:
        if conjunction and count >= _WORTH_SHARE * most:
            return tuple(candidate.condition for candidate in conjunction)
    return None


def _candidates(
    words: Sequence[Expr], samples: Samples, good: int, bad: int, least: int
) -> list[_Candidate]:
    """Return the conditions that reject something bad and keep enough; of equal ones the first."""
    by_examples: dict[int, _Candidate] = {}
    for word in words:
        holds = samples.evaluator(word)
        examples = sum(
            holds(example.configuration.var_types) << place
            for place, example in enumerate(samples.examples)
        )
        if (examples & good).bit_count() >= least and bad & ~examples:
            by_examples.setdefault(examples, _Candidate(word, examples))
    return list(by_examples.values())


def _best(
    candidates: Sequence[_Candidate], size: int, good: int, bad: int, least: int
) -> tuple[int, tuple[_Candidate, ...]]:
    """Return how many good examples the best conjunction of a size keeps, and its conjuncts."""
    most = least - 1
    best: tuple[_Candidate, ...] = ()
    for conjunction in itertools.combinations(candidates, size):
        examples = good | bad
        for candidate in conjunction:
            examples &= candidate.accepted
        count = (examples & good).bit_count()
        if not examples & bad and count > most:
            most, best = count, conjunction
    return (most, best) if best else (0, ())
