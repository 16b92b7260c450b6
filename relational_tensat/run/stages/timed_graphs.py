"""The graphs of a run that were timed whole: by this run, or by one before it in the same setting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relational_tensat.cost import Device
from relational_tensat.cost.cache import CostCache, default_cache
from relational_tensat.cost.configurations import Contents
from relational_tensat.cost.earlier_runs import RACING, Raced, RunsBefore
from relational_tensat.cost.key import now
from relational_tensat.cost.race import RACE_VERSION, RaceResult
from relational_tensat.run.stages.contenders import Contestant
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph


@dataclass
class TimedGraphs:
    """What is known of graphs by hash of their content, and the candidates that have these.

    Attributes:
        candidates: those of this run that are known, in the order in which they were met.
        run: hash of the run; "" where costs are not measured.
        seconds_before: that earlier runs of this hash have raced.
        round_of: in which race of this run a graph was timed; those that are not in it were before.
    """

    original: str
    setting: str
    before: RunsBefore
    contents: Contents
    known: dict[str, Raced]
    candidates: dict[str, Contestant] = field(default_factory=dict)
    round_of: dict[str, int] = field(default_factory=dict)
    run: str = ""
    seconds_before: float = 0.0

    @classmethod
    def of(cls, state: RunState, device: Device) -> TimedGraphs:
        """Return what is known of graphs that raced against a run's original."""
        contents = state.contents
        inputs = contents.of_arrays(state.inputs)
        setting = json.dumps({"race": RACE_VERSION, "inputs": inputs})
        original = contents.of(state.original)
        before = RunsBefore(
            CostCache(state.options.costs.cache or default_cache(), is_dispensable=True), device.key
        )
        if state.options.costs.race_again:
            return cls(original, setting, before, contents, {}, run=state.run)
        known = before.raced(original, setting)
        spent_s = before.seconds(state.run, RACING) if state.run else 0.0
        return cls(
            original, setting, before, contents, known, run=state.run, seconds_before=spent_s
        )

    def meet(self, candidate: Contestant) -> str:
        """Return the hash of a graph; the first candidate of one that is known stays."""
        digest = self.hash_of(candidate.graph)
        if digest in self.known:
            self.candidates.setdefault(digest, candidate)
        return digest

    def hash_of(self, graph: Graph) -> str:
        """Return the hash of a graph's content."""
        return self.contents.of(graph)

    @property
    def is_settled(self) -> bool:
        """Whether the fastest of all that are known is among the candidates."""
        won = self._won(self.known)
        return bool(won) and won[0] in self.candidates

    @property
    def winners(self) -> list[str]:
        """The candidates that won a race, the fastest first."""
        return self._won(self.candidates)

    def add(self, raced: Sequence[Contestant], result: RaceResult, number: int) -> None:
        """Keep the result of a race, the run's so many-th."""
        new = {}
        for place, (candidate, standing) in enumerate(zip(raced, result.standings, strict=True), 1):
            is_final = place == result.winner
            own = result.final if is_final else standing
            digest = self.hash_of(candidate.graph)
            new[digest] = Raced(own, is_final, result.noise, now())
            self.candidates[digest] = candidate
            self.round_of[digest] = number
        self.known |= new
        self.before.keep(self.original, self.setting, new)

    def spent(self, seconds: float) -> None:
        """Keep that so long was raced."""
        if self.run and seconds:
            self.before.add_seconds(self.run, RACING, seconds)

    def _won(self, digests: Iterable[str]) -> list[str]:
        """Return those of graphs that won a race, the fastest first."""
        won = [digest for digest in digests if self.known[digest].is_final]
        return sorted(won, key=lambda digest: -self.known[digest].standing.speedup)
