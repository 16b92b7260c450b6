"""The statements of a kernel in CUDA C++: loads, products, sweeps, reductions, stores.

A loop of a block's threads goes over the elements of a tensor, or over a product's registers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.kernels.accesses import reading_of
from relational_tensat.mugraph.kernels.cuda_buffers import WARPS
from relational_tensat.mugraph.kernels.indices import (
    COPIED_BYTES,
    Formulas,
    element_offset,
    exists,
    inside,
    load_width,
    offset,
    parts_of,
    reduced,
    result_start,
    summand,
    tile_start,
    written_index,
)
from relational_tensat.mugraph.kernels.layout_choice import KernelLayouts, key_of
from relational_tensat.mugraph.kernels.statements import (
    Compute,
    KernelFrame,
    Load,
    Multiply,
    Program,
    Reduce,
    Save,
    Statement,
    Text,
    fade_of,
    identifier,
    partials_of,
)


@dataclass(frozen=True, slots=True)
class OperandText:
    """A product's operand: its tile, the function of places in it, and how it is read there."""

    tile: str
    index: str
    reading: str


def shared(name: str) -> str:
    """Return what a tensor in shared memory is called."""
    return f"tile_{identifier(name)}"


def registers(name: str) -> str:
    """Return what a product in registers is called."""
    return f"sums_{identifier(name)}"


def type_of(is_wide: bool, is_condition: bool = False) -> str:
    """Return the type of elements: float, or the kernel's; of bools in device memory, bytes."""
    return "u8" if is_condition else "float" if is_wide else "T"


def _if_any(condition: str, value: str, none: str = "0.0f") -> str:
    """Return a value where a condition holds, if there is one."""
    return f"({condition} ? {value} : {none})" if condition else value


#: Threads of a block.
THREADS = 32 * WARPS
#: So many passes of a loop are begun at once: their loads are on their way together.
_UNROLLED = 8


class Loops:
    """Writes loops; statements written meanwhile are in them."""

    def __init__(self, text: Text) -> None:
        """Begin at the end of a text."""
        self._text = text

    @contextmanager
    def elements(self, dims: Dims, width: int = 1) -> Iterator[Mapping[str, str]]:
        """Have the threads go over all elements; yield an index for each variable."""
        total = count(dims) // width
        narrow = tuple(
            replace(dim, size=dim.size // width) if place == len(dims) - 1 else dim
            for place, dim in enumerate(dims)
        )
        at = parts_of("e", narrow)
        if width > 1:
            at[dims[-1].variable] = f"{at[dims[-1].variable]} * {width}"
        with self._passes(total):
            yield at

    @contextmanager
    def _passes(self, total: int) -> Iterator[None]:
        """Have the threads count so many with e; how often each goes round is a constant."""
        passes, is_cut = -(-total // THREADS), total % THREADS != 0
        if passes == 1 and is_cut:
            with self._text.block(f"if (threadIdx.x < {total}) {{"):
                self._text.line("const int e = threadIdx.x;")
                yield
            return
        self._text.line(f"#pragma unroll {min(passes, _UNROLLED)}")
        with self._text.block(f"for (int pass = 0; pass < {passes}; ++pass) {{"):
            self._text.line("const int e = pass * THREADS + threadIdx.x;")
            if is_cut:
                self._text.line(f"if (e >= {total}) break;")
            yield

    @contextmanager
    def each(self, frame: KernelFrame) -> Iterator[Mapping[str, str]]:
        """Have the threads go over their registers; yield an index for each variable."""
        _, rows, columns = frame.sizes
        with (
            self.batch(frame),
            self._text.block(
                f"each<{rows}, {columns}>([&](int row, int column, Own own) {{", "});"
            ),
        ):
            yield _frame_index(frame)

    @contextmanager
    def batch(self, frame: KernelFrame) -> Iterator[None]:
        """Have the threads go over the matrices of a product, if it has several."""
        if frame.sizes[0] == 1:
            yield
            return
        self._text.line("#pragma unroll")
        with self._text.block(f"for (int b = 0; b < {frame.sizes[0]}; ++b) {{"):
            yield


def _frame_index(frame: KernelFrame) -> dict[str, str]:
    """Return an index for each variable of a product, in its batch b, row and column."""
    return {
        **parts_of("b", frame.batch),
        **parts_of("row", frame.rows),
        **parts_of("column", frame.columns),
    }


#: Of elements in shared and in device memory, by their type.
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
#: The place of a block in the grid.
BLOCKS = ("(int)blockIdx.x", "(int)blockIdx.y", "(int)blockIdx.z")
_HOW = {"sum": "Sum", "squares": "Sum", "max": "Largest", "reduce_max": "LargestOfAll"}


class Statements(Formulas):
    """Writes statements one after the other.

    Args:
        program: whose statements they are.
        chosen: the layouts.
        wide: the operands that are float32 in models of all types.
        item_bytes: of elements that are not.
        text: where they are written.
    """

    def __init__(
        self,
        program: Program,
        chosen: KernelLayouts,
        wide: Collection[str],
        item_bytes: int,
        text: Text,
    ) -> None:
        super().__init__(program)
        self._chosen, self._layouts = chosen, chosen.shared
        self._wide, self._item_bytes = wide, item_bytes
        self._text, self._loops = text, Loops(text)

    def write(self, statement: Statement) -> None:
        """Write a statement."""
        match statement:
            case Load():
                self._load(statement)
            case Multiply():
                self._multiply(statement)
            case Compute():
                self._compute(statement)
            case Reduce():
                self._reduce(statement)
            case Save():
                self._save(statement)

    def copied(self, load: Load) -> tuple[int, int]:
        """Return how many elements a thread copies at once, and their bytes; 0 where it waits for them."""
        iterator = load.iterator
        tensor, layout = self._chosen.device[iterator.tensor], self._layouts[load.output]
        item_bytes = 4 if iterator.tensor in self._wide else self._item_bytes
        width = load_width(iterator, tensor, self._chosen.orders[key_of(load)], layout, item_bytes)
        copied_bytes = width * item_bytes
        is_copy = copied_bytes in COPIED_BYTES and not iterator.is_condition
        return width, copied_bytes if is_copy else 0

    def _load(self, load: Load) -> None:
        """Copy a tile, 16 bytes at a time where both places have as many in a row."""
        iterator, program = load.iterator, self._program
        tensor, tile = self._chosen.device[iterator.tensor], program.dims[iterator.output]
        layout, order = self._layouts[iterator.output], self._chosen.orders[key_of(load)]
        start = tile_start(iterator, tensor, tile, program.block, BLOCKS)
        is_wide = iterator.tensor in self._wide
        width, copied_bytes = self.copied(load)
        kind = type_of(is_wide, iterator.is_condition)
        with self._text.block("{"):
            self._text.line(
                f"const {kind}* const from = in_{identifier(iterator.tensor)} + ({start});"
            )
            with self._loops.elements(order, width) as at:
                to, source = shared(iterator.output), element_offset(iterator, at, tensor)
                is_there = inside(iterator, tile, program.block, BLOCKS, at)
                condition = " && ".join(filter(None, [exists(tile, at), is_there]))
                if copied_bytes:
                    given = ", ".join(filter(None, [f"from + {source}", condition]))
                    place = f"{to} + {layout.offset(at)}"
                    self._text.line(f"begin_copy<{copied_bytes}>({place}, {given});")
                else:
                    none, value = "0.0f" if is_wide else "from_float<T>(0.0f)", f"from[{source}]"
                    if iterator.is_condition:
                        value = f"(float){value}" if is_wide else f"from_float<T>((float){value})"
                    value = _if_any(condition, value, none)
                    self._text.line(f"{to}[{layout.offset(at)}] = {value};")

    def _multiply(self, product: Multiply) -> None:
        frame = self._frame_of(product.output)
        sums = self._register_array(product.output, frame)
        _, rows, columns = frame.sizes
        if product.rescale:
            with self._loops.each(frame) as at:
                self._text.line(
                    f"{self._own(product.output, at)} *= {self._fade(product.rescale, at)};"
                )
        elif not product.adds:
            self.clear(product.output, frame)
        with self._loops.batch(frame):
            for a, b, over in product.pairs:
                summed = tuple(dim for dim in self._program.dims[a] if dim.variable in over)
                batch = parts_of("b", frame.batch)
                left = self._operand(a, batch, (frame.rows, "row"), summed)
                right = self._operand(b, batch, (frame.columns, "column"), summed)
                readings = f"{left.reading}, {right.reading}"
                self._text.line(
                    f"multiply<{rows}, {columns}, {count(summed)}, {readings}>({sums},",
                    f"    {left.tile}, {left.index},",
                    f"    {right.tile}, {right.index});",
                )

    def _operand(
        self, name: str, batch: Mapping[str, str], outer: tuple[Dims, str], summed: Dims
    ) -> OperandText:
        """Return how a product reads a tile: an offset for a row or column, and a place k of the sum."""
        own, outer_name = outer
        at = {**batch, **parts_of(outer_name, own), **parts_of("k", summed)}
        stored, index = self.place(name, at)
        layout, tile = self._layouts[stored], self._program.stored[stored].dims
        reading = reading_of(layout, tile, own if stored == name else (), summed)
        lambda_text = f"[&](int {outer_name}, int k) {{ return {layout.offset(index)}; }}"
        return OperandText(shared(stored), lambda_text, reading)

    def _compute(self, compute: Compute) -> None:
        program, text = self._program, self._text
        target, frame = program.stored[compute.output], program.frame(compute.operand)
        with (
            self._loops.each(frame)
            if frame is not None
            else self._loops.elements(self._chosen.orders[key_of(compute)]) as at
        ):
            condition = exists(self._masked(compute), at)
            value = _if_any(condition, self.element(compute.operand, at))
            if target.frame is not None:
                cell = self._own(compute.output, at)
            else:
                cell = self.cell(compute.output, written_index(self._program, compute, at))
            if compute.rescale:
                value = f"{cell} * {self._fade(compute.rescale, at)} + {value}"
            elif compute.adds:
                value = f"{cell} + {value}"
            store = f"{cell} = {value if target.is_wide else f'from_float<T>({value})'};"
            text.line(f"if ({condition}) {store}" if condition and compute.along else store)

    def _masked(self, compute: Compute) -> Dims:
        """Return the dims beyond whose end what is computed must be zero.

        A product reads all of its operands; the loop's last iteration must not add up what it lacks. Other
        readers leave out elements that do not exist.
        """
        program = self._program
        dims = program.dims[compute.operand]
        if compute.along or not program.stored[compute.output].is_wide:
            return dims
        adds = compute.adds or compute.rescale
        return tuple(d for d in dims if adds and d.whole and program.partial[d.variable].is_in_loop)

    def _reduce(self, reduce: Reduce) -> None:
        program, text = self._program, self._text
        frame, dims = program.frame(reduce.operand), program.dims[reduce.operand]
        partials = partials_of(reduce.output)
        pointer = shared(partials) if partials in program.stored else "nullptr"
        how = _HOW[reduce.kind]
        if frame is not None:
            _, rows, columns = frame.sizes
            with self._loops.batch(frame):
                at = _frame_index(frame)
                if frame.sizes[0] > 1 and pointer != "nullptr":
                    pointer += f" + b * {rows * WARPS}"
                text.line(
                    f"reduce_rows<{rows}, {columns}, {how}>({pointer},",
                    "    [&](int row, int column, Own own) {",
                    f"  return {self._summand(reduce, at)};", "}, [&](int row, float x) {",
                    *(f"  {line}" for line in self._result(reduce, at)), "});",
                )  # fmt: skip
            return
        kept = tuple(dim for dim in dims if dim.variable not in reduce.over)
        summed = tuple(dim for dim in dims if dim.variable in reduce.over)
        at = {**parts_of("n", kept), **parts_of("k", summed)}
        text.line(
            f"reduce<{count(kept)}, {count(summed)}, {how}>({pointer}, [&](int n, int k) {{",
            f"  return {self._summand(reduce, at)};", "}, [&](int n, float x) {",
            *(f"  {line}" for line in self._result(reduce, at)), "});",
        )  # fmt: skip

    def _summand(self, reduce: Reduce, at: Mapping[str, str]) -> str:
        dims = self._program.dims[reduce.operand]
        condition = exists(tuple(dim for dim in dims if dim.variable in reduce.over), at)
        none = f"{_HOW[reduce.kind]}::none()"
        return _if_any(condition, summand(reduce, self.element(reduce.operand, at)), none)

    def _result(self, reduce: Reduce, at: Mapping[str, str]) -> list[str]:
        return reduced(reduce, lambda name: self.cell(name, at))

    def _save(self, save: Save) -> None:
        saver, program = save.saver, self._program
        tile, frame = program.dims[saver.tile], program.frame(saver.tile)
        result = self._chosen.device[saver.output]
        start = result_start(saver, result, tile, program.block, BLOCKS)
        with self._text.block("{"):
            to = f"{type_of(saver.is_wide)}* const to"
            self._text.line(f"{to} = out_{identifier(saver.output)} + ({start});")
            with (
                self._loops.each(frame)
                if frame is not None
                else self._loops.elements(self._chosen.orders[key_of(save)]) as at
            ):
                value = self.element(saver.tile, at)
                stored = value if saver.is_wide else f"from_float<T>({value})"
                condition = exists(tile, at)
                store = f"to[{offset(at, result)}] = {stored};"
                self._text.line(f"if ({condition}) {store}" if condition else store)

    def stored(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element of a register or of shared memory."""
        if self._program.stored[name].frame is not None:
            return self._own(name, at)
        cell = self.cell(name, at)
        return cell if self._program.stored[name].is_wide else f"to_float({cell})"

    def _own(self, name: str, at: Mapping[str, str]) -> str:
        return f"{self._register_array(name, self._frame_of(name))}[own]"

    def cell(self, name: str, at: Mapping[str, str]) -> str:
        """Return an element in shared memory."""
        return f"{shared(name)}[{self._layouts[name].offset(at)}]"

    def _fade(self, running_max: str, at: Mapping[str, str]) -> str:
        return self.cell(fade_of(running_max), at)

    def _frame_of(self, name: str) -> KernelFrame:
        frame = self._program.stored[name].frame
        assert frame is not None, name
        return frame

    def _register_array(self, name: str, frame: KernelFrame) -> str:
        return f"{registers(name)}[{'b' if frame.sizes[0] > 1 else '0'}]"

    def clear(self, name: str, frame: KernelFrame) -> None:
        """Write zeros to what threads add up in registers."""
        with self._loops.batch(frame):
            self._text.line(f"clear({self._register_array(name, frame)});")
