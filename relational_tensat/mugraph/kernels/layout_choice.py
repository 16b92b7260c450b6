"""The layouts of a μGraph's tensors: its accesses take the least of shared memory and device memory.

One integer program chooses three things. The first is how each tensor lies in shared memory: which dim is
innermost, and rows as they are, longer by 16 bytes, or swizzled. The others are in which order the threads
of a copy or a sweep go over its elements, and the order of dims of tensors between kernels. The costs of a
statement are counted from the addresses of its threads (``accesses``); inputs and results are as the model
has them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from relational_tensat.base.errors import unknown
from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mugraph import (
    CONDITION_BYTES,
    WIDE_BYTES,
    Kernel,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.validity import BlockStage, kernel_tensors
from relational_tensat.mugraph.kernels.access_costs import CLOCK, device_cost, shared_cost
from relational_tensat.mugraph.kernels.accesses import accesses, order_of
from relational_tensat.mugraph.kernels.choice_program import (
    CostedChoices,
    Costs,
    CostTable,
    Limit,
    solve,
)
from relational_tensat.mugraph.kernels.cuda_buffers import (
    ALIGNMENT_BYTES,
    Roomy,
    alive,
    with_partials,
    with_room_for_buffers,
)
from relational_tensat.mugraph.kernels.indices import load_width, source_layout
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.layouts import Layout, orders, row_major, shared_layouts
from relational_tensat.mugraph.kernels.statements import Load, Program, Save, Statement

#: Of shared memory that a block may have on any device, without being asked for more when it is launched.
STATIC_BYTES = 48 << 10
_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}

#: A statement of a kernel: its kind and what it makes.
StatementKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KernelLayouts:
    """The layouts of a kernel.

    Attributes:
        kernel, most_bytes: the kernel as it is emitted; see ``Roomy``.
        shared: of tensors in shared memory, by name.
        orders: in which threads go over elements, by statement.
        device: the dims of operands and results in their order in device memory.
    """

    kernel: Kernel
    most_bytes: int
    shared: Mapping[str, Layout]
    orders: Mapping[StatementKey, Dims]
    device: Mapping[str, Dims]


@dataclass(frozen=True, slots=True)
class GraphLayouts:
    """The layouts of a μGraph, and the proof that nothing is better.

    Attributes:
        kernels: in order.
        clocks, bound: of memory, added up over all blocks, and what no choice takes less than.
        plain_clocks: of tensors as the model has them, rows of what products read longer by 16 bytes.
        combinations: how many choices there are.
    """

    kernels: tuple[KernelLayouts, ...]
    clocks: float
    bound: float
    plain_clocks: float
    combinations: int


def key_of(statement: Statement) -> StatementKey:
    """Return what a statement is known by."""
    return type(statement).__name__.lower(), statement.output


def chosen_layouts(graph: MuGraph, dtype: str, wide: Collection[str] = ()) -> GraphLayouts:
    """Return the layouts of a μGraph that take the least clocks.

    Args:
        dtype: of its elements.
        wide: the inputs that are float32, too.

    Raises:
        InputError: it is not well-formed, or a kernel has no statements.
    """
    problem = LayoutProblem.of_graph(graph, dtype, wide=wide)
    solution, choices = solve(problem.choices), problem.choices
    unit = problem.unit / CLOCK
    return GraphLayouts(
        problem.layouts(solution.values),
        solution.cost * unit,
        solution.bound * unit,
        choices.cost(problem.plain) * unit,
        choices.combinations,
    )


def kernel_layouts(
    kernel: Kernel, device: Mapping[str, Dims], dtype: str, wide: Collection[str] = ()
) -> KernelLayouts:
    """Return the layouts of a kernel that take the least clocks, its operands and results as they are.

    Args:
        device: the dims of its operands.
        dtype: of elements.
        wide: the operands that are float32, too.

    Raises:
        InputError: it is not well-formed, or has no statements.
    """
    results = {saver.output: saver.dims for saver in kernel.block.savers}
    wide_results = (saver.output for saver in kernel.block.savers if saver.is_wide)
    problem = LayoutProblem({**device, **results}, dtype, {*wide, *wide_results}, (kernel,))
    (chosen,) = problem.layouts(solve(problem.choices).values)
    return chosen


@dataclass(eq=False)
class _Variable:
    """A choice: its values, and which of them is plain."""

    values: Sequence[Layout] | Sequence[Dims]
    plain: int = 0


@dataclass(eq=False)
class _KernelProblem:
    """The variables of a kernel, by number."""

    roomy: Roomy
    program: Program
    shared: dict[str, int] = field(default_factory=dict)
    orders: dict[StatementKey, int] = field(default_factory=dict)


class LayoutProblem:
    """The choices of layouts of some kernels.

    Attributes:
        unit: a cost of 1 is so many halves of clocks.
    """

    def __init__(
        self,
        device: Mapping[str, Dims],
        dtype: str,
        wide: Collection[str],
        kernels: Sequence[Kernel],
        between: Collection[str] = (),
        most_bytes: int | None = None,
    ) -> None:
        """Lower the kernels and count what their choices cost.

        Args:
            device: dims of tensors in device memory.
            dtype: of elements.
            wide: the tensors in device memory that are float32, too.
            between: the tensors whose order of dims is to choose.
            most_bytes: of shared memory of a block, or more, where that cannot do; by default what plain
                layouts take, or what any device has.

        Raises:
            UsageError: no kernels are made for that element type.
            InputError: a kernel is not well-formed, or has no statements.
        """
        if dtype not in _ITEM_BYTES:
            raise unknown("element type", dtype, _ITEM_BYTES)
        self._device = device
        self._dtype, self._item_bytes = dtype, _ITEM_BYTES[dtype]
        self._wide = frozenset(wide if dtype != "float32" else ())
        self._most_bytes = most_bytes
        self._variables: list[_Variable] = []
        self._tables: list[CostTable] = []
        self._limits: list[Limit] = []
        self._kernels: list[_KernelProblem] = []
        self._lying = {name: self._variable(orders(device[name])) for name in sorted(between)}
        blocks = [math.prod(kernel.block.grid) for kernel in kernels]
        self.unit = math.gcd(*blocks)
        for kernel, own in zip(kernels, blocks, strict=True):
            self._add(kernel, own // self.unit)

    @classmethod
    def of_graph(
        cls,
        graph: MuGraph,
        dtype: str,
        most_bytes: int | None = None,
        wide: Collection[str] = (),
    ) -> LayoutProblem:
        """Return the choices of a μGraph's kernels; tensors that libraries read or give stay as they
        are."""
        between = {name for kernel in graph.kernels for name in kernel.outputs}
        between -= set(graph.outputs)
        for step in graph.steps:
            if isinstance(step, Operation):
                between -= set(step.operands)
        device = kernel_tensors(graph)
        wide = graph.wide.union(wide)
        return cls(device, dtype, wide, graph.kernels, between, most_bytes)

    @property
    def choices(self) -> CostedChoices:
        """The integer program."""
        sizes = tuple(len(variable.values) for variable in self._variables)
        return CostedChoices(sizes, tuple(self._tables), tuple(self._limits))

    @property
    def plain(self) -> tuple[int, ...]:
        """The choice of tensors as the model has them, rows of what products read longer by 16 bytes."""
        return tuple(variable.plain for variable in self._variables)

    def layouts(self, values: Sequence[int]) -> tuple[KernelLayouts, ...]:
        """Return the layouts that a choice is."""
        return tuple(self._chosen(mine, values) for mine in self._kernels)

    def _add(self, kernel: Kernel, blocks: int) -> None:
        """Add a kernel's choices, their costs in so many blocks, and that they fit."""
        operands = {name: self._device[name] for name in kernel.operands}
        roomy = with_room_for_buffers(kernel, operands, self._item_bytes, self._wide)
        kernel = roomy.kernel
        program = with_partials(lower(kernel, operands, wide=self._wide))
        mine = _KernelProblem(roomy, program)
        self._kernels.append(mine)
        for name, stored in program.stored.items():
            if stored.frame is None:
                mine.shared[name] = self._shared(mine, name, blocks)
        for stage, statements in program.statements.items():
            times = blocks * (kernel.block.loop if stage is BlockStage.LOOP else 1)
            for statement in statements:
                self._statement(mine, statement, times)
        self._limit(mine)

    def _chosen(self, mine: _KernelProblem, picked: Sequence[int]) -> KernelLayouts:
        names = (*mine.roomy.kernel.operands, *mine.roomy.kernel.outputs)
        return KernelLayouts(
            mine.roomy.kernel,
            mine.roomy.most_bytes,
            {name: self._values(n)[picked[n]] for name, n in mine.shared.items()},
            {key: self._orders(n)[picked[n]] for key, n in mine.orders.items()},
            {name: self._orders(n)[picked[n]] for name, n in self._lying.items() if name in names},
        )

    def _variable(self, values: Sequence[Layout] | Sequence[Dims], plain: int = 0) -> int:
        self._variables.append(_Variable(values, plain))
        return len(self._variables) - 1

    def _shared(self, mine: _KernelProblem, name: str, blocks: int) -> int:
        """Return the variable of a tensor in shared memory; longer rows cost what writing them does."""
        stored = mine.program.stored[name]
        item_bytes = self._bytes_of(mine, name)
        is_fixed = any(dim.variable.startswith("@") for dim in stored.dims)
        values = [row_major(stored.dims)] if is_fixed else shared_layouts(stored.dims, item_bytes)
        number = self._variable(values, 1 if len(values) > 1 and not stored.is_wide else 0)
        padding = [(v.elements - count(stored.dims)) * item_bytes for v in values]
        costs = np.array([-(-size // 128) * CLOCK * blocks for size in padding], np.int64)
        self._tables.append(CostTable((number,), costs))
        return number

    def _bytes_of(self, mine: _KernelProblem, name: str) -> int:
        return WIDE_BYTES if mine.program.stored[name].is_wide else self._item_bytes

    def _statement(self, mine: _KernelProblem, statement: Statement, times: int) -> None:
        dims = order_of(mine.program, statement)
        if dims is None:
            for other, costs in self._touched(mine, statement, None).items():
                self._tables.append(CostTable((other,), costs * times))
            return
        number = self._variable(orders(dims))
        mine.orders[key_of(statement)] = number
        if isinstance(statement, Load):
            self._load(mine, statement, number, times)
            return
        rows = [self._touched(mine, statement, order) for order in orders(dims)]
        for other in dict.fromkeys(variable for row in rows for variable in row):
            table = np.stack([row[other] for row in rows])
            self._tables.append(CostTable((number, other), table * times))

    def _touched(
        self, mine: _KernelProblem, statement: Statement, order: Dims | None
    ) -> dict[int, Costs]:
        """Return what one execution of a statement costs, by variable, at each of its values."""
        result: dict[int, Costs] = {}
        on_tensor_cores = self._dtype != "float32"
        for access in accesses(mine.program, statement, order, on_tensor_cores=on_tensor_cores):
            if access.tensor:
                number = mine.shared[access.tensor]
                item_bytes = self._bytes_of(mine, access.tensor)
                tile = mine.program.stored[access.tensor].dims
                costs = [
                    shared_cost(access, layout, tile, item_bytes) for layout in self._values(number)
                ]
            else:
                assert isinstance(statement, Save)
                number = self._device_variable(statement.output)
                item_bytes = WIDE_BYTES if statement.output in self._wide else self._item_bytes
                costs = [
                    device_cost(access, row_major(dims), item_bytes)
                    for dims in self._orders(number)
                ]
            result[number] = result.get(number, 0) + np.array(costs, np.int64)
        return result

    def _load(self, mine: _KernelProblem, load: Load, number: int, times: int) -> None:
        """Add what a copy costs: 16 bytes at once, where all three have as many in a row."""
        name, tile = load.iterator.tensor, mine.program.dims[load.output]
        item_bytes, lying = self._bytes_of(mine, load.output), self._device_variable(name)
        device_bytes = CONDITION_BYTES if load.iterator.is_condition else item_bytes
        shared = mine.shared[load.output]
        table = np.zeros(
            [len(self._values(variable)) for variable in (number, lying, shared)], np.int64
        )
        for place in np.ndindex(table.shape):
            order, device = self._orders(number)[place[0]], self._orders(lying)[place[1]]
            layout = self._values(shared)[place[2]]
            width = load_width(load.iterator, device, order, layout, item_bytes)
            source, target = accesses(mine.program, load, order, width)
            lies = source_layout(load.iterator, device)
            table[place] = device_cost(source, lies, device_bytes)
            table[place] += shared_cost(target, layout, tile, item_bytes)
        self._tables.append(CostTable((number, lying, shared), table * times))

    def _limit(self, mine: _KernelProblem) -> None:
        """Add that a block's tensors fit: sizes were chosen so that plain ones do."""
        sizes = {
            name: [
                -(-layout.elements * self._bytes_of(mine, name) // ALIGNMENT_BYTES)
                * ALIGNMENT_BYTES
                for layout in self._values(number)
            ]
            for name, number in mine.shared.items()
        }
        for names in alive(mine.program):
            terms = {mine.shared[name]: sizes[name] for name in sorted(names)}
            most = self._most_bytes
            if most is None:
                plain = sum(own[self._variables[v].plain] for v, own in terms.items())
                most = max(plain, STATIC_BYTES)
            if sum(map(max, terms.values())) > most:
                self._limits.append(Limit(terms, max(sum(map(min, terms.values())), most)))

    def _device_variable(self, name: str) -> int:
        """Return the variable of a tensor in device memory; a tensor that is not between kernels has one
        value."""
        if name not in self._lying:
            self._lying[name] = self._variable([self._device[name]])
        return self._lying[name]

    def _values(self, number: int) -> Sequence[Layout]:
        return cast(Sequence[Layout], self._variables[number].values)

    def _orders(self, number: int) -> Sequence[Dims]:
        return cast(Sequence[Dims], self._variables[number].values)
