"""The paper's Algorithm 1 for a block, in plain Python: prefix after prefix, canonical, unpruned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import run_step, tile_of
from relational_tensat.mugraph.graph.mugraph import Accumulate, BlockStep, MuGraph, Operation
from relational_tensat.mugraph.graph.partial_tiles import LOOP
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.search.block_terms import fingerprint, iterator_of
from relational_tensat.mugraph.search.structure import BlockConfiguration
from relational_tensat.tensor.field import Undefined


@dataclass(frozen=True)
class Tensor:
    value: Labelled
    stage: int  # 0 in the loop, 1 after it, 2 before it


class Block:
    """All graphs of one configuration with operators of a program."""

    def __init__(
        self,
        original: MuGraph,
        configuration: BlockConfiguration,
        values: dict[str, Labelled],
        most: int,
    ) -> None:
        self.configuration = configuration
        self.most = most
        self.arithmetic = Residues(0)
        self.ops = {step.op for step in original.steps if isinstance(step, Operation)}
        self.summed = sorted(
            {str(v) for s in original.steps for v in s.attrs.get("over", ())}  # type: ignore[union-attr]
        )
        grid = [variable.factor for variable in configuration.grid]
        self.prefix = []
        for name, dims in original.inputs.items():
            tile = iterator_of(name, name, dims, configuration)
            value = tile_of(tile, values[name], grid, configuration.iterations)
            loop = configuration.loop
            self.prefix.append(Tensor(value, 0 if loop and loop.name in variables(dims) else 2))

    def finds(self, target: int) -> bool:
        """Whether some graph computes a tile with this fingerprint, after the loop if there is one."""
        return self._extend((-1, -1, ""), target)

    def _extend(self, last: tuple[int, int, str], target: int) -> bool:
        stages = (1,) if self.configuration.loop else (2,)
        if self.prefix[-1].stage in stages and fingerprint(self.prefix[-1].value) == target:
            return True
        if last[0] >= 0 and len(self.prefix) >= self.most:
            return False
        for rank, step, stage in self._steps():
            if rank <= last:
                continue
            tiles = {str(n): tensor.value for n, tensor in enumerate(self.prefix)}
            try:
                made = run_step(step, tiles, self.configuration.iterations, self.arithmetic)
            except Undefined:
                continue
            self.prefix.append(Tensor(made["made"], stage))
            if self._extend(rank, target):
                return True
            self.prefix.pop()
        return False

    def _steps(self) -> Iterator[tuple[tuple[int, int, str], BlockStep, int]]:
        loop = self.configuration.loop
        for n, x in enumerate(self.prefix):
            own = [v for v in self.summed if v in x.value.labels]
            if x.stage == 0 and LOOP in x.value.labels:
                assert loop is not None
                if loop.name not in x.value.labels:
                    yield (n, n, "accumulate"), Accumulate(str(n), "made"), 1
                elif "rms" in self.ops:
                    rms = Accumulate(str(n), "made", "rms", (loop.name,))
                    yield (n, n, "accumulate rms"), rms, 1
            for op in sorted(self.ops & {"relu", "exp", "silu"}):
                yield (n, n, op), Operation(op, (str(n),), "made"), x.stage
            for v in own if "rms" in self.ops else ():
                attrs = {"over": (v,), "epsilon": 0.0}
                yield (n, n, f"rms {v}"), Operation("rms", (str(n),), "made", attrs), x.stage
            for m, y in enumerate(self.prefix):
                if x.stage != y.stage and 2 not in (x.stage, y.stage):
                    continue
                stage = min(x.stage, y.stage)
                for v in own if m < n else ():
                    if v in y.value.labels:
                        step = Operation("matmul", (str(n), str(m)), "made", {"over": (v,)})
                        yield (n, m, f"matmul {v}"), step, stage
                for op in sorted(self.ops & {"div", "mul", "add"}):
                    if m != n:
                        yield (n, m, op), Operation(op, (str(n), str(m)), "made"), stage
