"""What the known configurations of a rule have in common, and which of it has to be so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relational_tensat.tensor.types import TensorType

#: Whether a condition holds for the rule's operands.
Test: TypeAlias = Callable[[tuple[TensorType, ...]], bool]

#: Configurations without something common, after which it is done with: so many to which the rule
#: does not apply, as it then has to be so; or so many to which it does.
_FAILURES, _SUCCESSES = 2000, 3


@dataclass(slots=True)
class CommonWord:
    """A condition that all known configurations fulfil.

    Attributes:
        operands: the indices of those that it mentions.
        failures, successes: configurations without it to which the rule did not apply, and did.
    """

    test: Test
    operands: Sequence[int]
    failures: int = 0
    successes: int = 0


class Commonality:
    """The conditions that all known configurations fulfil, in turn, as long as one is open."""

    def __init__(self, words: Sequence[CommonWord]) -> None:
        self._open = list(words)
        self._turn = 0

    def next(self) -> CommonWord | None:
        """Return a condition to do without; None when there is none left."""
        if not self._open:
            return None
        self._turn = (self._turn + 1) % len(self._open)
        return self._open[self._turn]

    def learn(self, word: CommonWord, applies: bool) -> None:
        """Note whether the rule applies to a configuration that does without a condition."""
        word.successes += applies
        word.failures += not applies
        if word.successes == _SUCCESSES or (not word.successes and word.failures == _FAILURES):
            self._open.remove(word)
