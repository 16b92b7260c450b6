"""Running a plan, any number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from relational_tensat.base.closing import Closing
from relational_tensat.base.errors import InputError, nearest
from relational_tensat.gpu.calls import Ref
from relational_tensat.gpu.elements import decode, encode
from relational_tensat.gpu.library import BoundCall, KernelLibrary
from relational_tensat.gpu.plan import Plan
from relational_tensat.tensor import Array


class Executor(Closing):
    """A plan in a device's memory: weights uploaded, every call bound to its addresses.

    Use it as a context manager: memory is given back at the end.
    """

    def __init__(self, plan: Plan, library: KernelLibrary) -> None:
        """Take the memory and fill in the weights.

        Raises:
            InputError: a weight has no data, or the library has no kernel for a call.
        """
        self._plan = plan
        self._library = library
        self._memory: list[int] = []
        self._calls: list[BoundCall] = []
        try:
            self._base = self._allocate(plan.total_bytes)
            # calls are tried when they are bound: what lies here must not be taken for indices
            library.clear(self._base, plan.total_bytes)
            for name, tensor in plan.weights.items():
                data = encode(plan.weight_data(name), tensor.type.dtype)
                library.write(self._address(tensor.ref), data)
            for step in plan.steps:
                self._calls.append(library.bind(step.call, self._address))
            needed = max((call.workspace_bytes for call in self._calls), default=0)
            self._workspace = self._allocate(needed) if needed else 0
        except BaseException:
            self.close()
            raise

    def write_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Upload the graph's inputs.

        Raises:
            InputError: one is missing or of the wrong shape.
        """
        for name, tensor in self._plan.inputs.items():
            if name not in inputs:
                raise InputError(f"the input {name!r} is not given{nearest(name, inputs)}")
            array = np.asarray(inputs[name])
            if array.shape != tensor.type.shape:
                shape = list(array.shape)
                raise InputError(f"{name!r} has shape {shape}, expected {tensor.type}")
            self._library.write(self._address(tensor.ref), encode(array, tensor.type.dtype))

    def start(self) -> None:
        """Enqueue all calls, in order; wait for nothing."""
        for call in self._calls:
            call.start(self._workspace)

    def read_outputs(self) -> list[Array]:
        """Wait, and return the tensors that the graph returns (bfloat16 as float32)."""
        return [
            decode(self._library.read(self._address(output.ref), output.type.nbytes), output.type)
            for output in self._plan.outputs
        ]

    def run(self, inputs: Mapping[str, Any]) -> list[Array]:
        """Upload inputs, run all calls once, return the outputs; a tuple output as its parts.

        Raises:
            InputError: an input is missing or of the wrong shape.
        """
        self.write_inputs(inputs)
        self.start()
        return self.read_outputs()

    def implementations(self) -> dict[str, int]:
        """Return how many calls each library runs, by its name."""
        return dict(sorted(Counter(call.implementation for call in self._calls).items()))

    def close(self) -> None:
        """Give the memory back."""
        while self._calls:
            self._calls.pop().close()
        while self._memory:
            self._library.free(self._memory.pop())

    def _allocate(self, nbytes: int) -> int:
        address = self._library.allocate(max(nbytes, 1))
        self._memory.append(address)
        return address

    def _address(self, ref: Ref) -> int:
        return self._base + self._plan.offsets[ref.buffer] + ref.offset_bytes
