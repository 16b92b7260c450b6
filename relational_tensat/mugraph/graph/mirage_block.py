"""A block graph of Mirage's while it is read: accumulators, and the maxima that these are rescaled by.

A maximum of tiles (``reduction_N_max``) is that of all iterations so far, and comes with by how much the
last one moved it, before minus now. The exponential of that rescales a sum over the loop: what was added
is multiplied by it before more is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.mirage_level import Level, Tensor, check_sizes
from relational_tensat.mugraph.graph.mugraph import Accumulate, Operation, RunningMax
from relational_tensat.tensor.types import Attrs

#: Sums in strides, and maxima, with the position that they are over.
_TO_DIMX = re.compile(r"reduction_([0-2])_to_dimx")
_MAX = re.compile(r"reduction_([0-2])_max")


class BlockLevel(Level):
    """The steps of a block graph.

    Args:
        fresh: makes names.
        loop: the number of iterations.
        strided: what sums in strides leave of a dim.
    """

    def __init__(self, fresh: Callable[[str], str], loop: int, strided: int) -> None:
        super().__init__(fresh, has_order=False)
        self._loop, self._strided = loop, strided
        self._after: set[str] = set()
        self._moved: dict[str, str] = {}  # by how much a running maximum moved, and which
        self._factors: dict[str, str] = {}  # the exponentials of these

    def read(self, tensor: Mapping[str, Any]) -> Tensor:
        """Return a tensor that a step or a store reads.

        Raises:
            InputError: it is by how much a maximum moved, which only rescaled sums read here.
        """
        result = self.tensors[tensor["guid"]]
        if result.name in self._moved or result.name in self._factors:
            raise InputError(
                "by how much a maximum moved is read by something else than the exponential that sums "
                "are rescaled by"
            )
        return result

    def step(
        self, op: str, given: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add an operator by its name without level and suffix, tensors as the file has them.

        Raises:
            InputError: it is not known, or gives results of other sizes.
        """
        count = len(self.steps)
        accumulation = op.removeprefix("forloop_").removeprefix("accum_")
        if accumulation != op:
            results = [self._accumulation(op, accumulation, given)]
        else:
            results = self._computed(op, given, made)
        for tensor, result in zip(made, results, strict=True):
            check_sizes(op, result, tensor)
            self.tensors[tensor["guid"]] = result
        for step in self.steps[count:]:
            if isinstance(step, Accumulate) or not self._after.isdisjoint(step.operands):
                self._after.update(step.outputs)

    def _computed(
        self, op: str, given: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
    ) -> list[Tensor]:
        to_dimx, largest = _TO_DIMX.fullmatch(op), _MAX.fullmatch(op)
        first = self.tensors[given[0]["guid"]]
        if op == "exp" and first.name in self._moved:
            factor = Tensor(self.fresh("t"), first.labels, first.sizes)
            self._factors[factor.name] = self._moved[first.name]
            return [factor]
        operands = [self.read(tensor) for tensor in given]
        if to_dimx is not None:
            return [self.summed_to(operands[0], int(to_dimx[1]), self._strided)]
        if largest is not None:
            return self._largest(operands[0], int(largest[1]))
        return self.results(op, operands, made)

    def _largest(self, x: Tensor, position: int) -> list[Tensor]:
        """Return the largest elements so far, over a position too, and by how much they moved.

        Of one iteration, and after the loop, they are the largest of one tensor, and rescale nothing.
        """
        label = x.labels[position]
        over = () if label is None else (label,)
        labels = [*x.labels[:position], None, *x.labels[position + 1 :]]
        sizes = [*x.sizes[:position], 1, *x.sizes[position + 1 :]]
        result, moved = (Tensor(self.fresh("t"), labels, sizes) for _ in range(2))
        is_running = self._loop > 1 and x.name not in self._after
        if is_running:
            self.steps.append(RunningMax(x.name, result.name, over))
        else:
            self.steps.append(Operation("max", (x.name,), result.name, {"over": over}))
        self._moved[moved.name] = result.name if is_running else ""
        return [result, moved]

    def _accumulation(self, op: str, kind: str, given: Sequence[Mapping[str, Any]]) -> Tensor:
        """Return what an accumulator gives, of its name without the prefix.

        Raises:
            InputError: it is not known, or rescaled by something else than how much a maximum moved.
        """
        is_rescaled = kind.endswith("_rescale")
        x = self.read(given[0])
        rescale = self._rescale(op, given[1]) if is_rescaled else ""
        last = len(x.sizes) - 1
        match kind.removesuffix("_rescale"), is_rescaled:
            case (("nored" | "no_red"), _):
                return self._accumulated(x, "sum", rescale)
            case "red_ld_sum", _:
                return self._accumulated(self.summed(x, last), "sum", rescale)
            case "max", False:
                return self._accumulated(x, "max")
            case "red_ld_mean", False:
                total = self._accumulated(self.summed(x, last))
                mean: Attrs = {"value": 1.0 / (x.sizes[-1] * self._loop)}
                return self.emit("scale", [total], total.labels, total.sizes, mean)
            case "redtox_ld_sum", False:
                return self._accumulated(self.summed_to(x, last, self._strided))
            case "red_ld_rms", False:
                result = Tensor(self.fresh("t"), [*x.labels[:-1], None], [*x.sizes[:-1], 1])
                along = () if x.labels[-1] is None else (x.labels[-1],)
                self.steps.append(Accumulate(x.name, result.name, "rms", along))
                return result
        raise InputError(f"Mirage's accumulator {op!r} is not known here")

    def _rescale(self, op: str, tensor: Mapping[str, Any]) -> str:
        name = self.tensors[tensor["guid"]].name
        if name not in self._factors:
            raise InputError(
                f"{op} by something else than the exponential of how much a maximum moved is not known here"
            )
        return self._factors[name]

    def _accumulated(self, x: Tensor, kind: str = "sum", rescale: str = "") -> Tensor:
        result = Tensor(self.fresh("t"), x.labels, x.sizes)
        self.steps.append(Accumulate(x.name, result.name, kind, rescale=rescale))
        return result
