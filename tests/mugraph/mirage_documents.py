"""Documents of Mirage's JSON, written by hand, tensors as dims and a number each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

Json = dict[str, Any]
#: Which dims a grid's axes x, y and z split, and which the loop does; -1 for none.
Maps = tuple[int, int, int, int]


class Document:
    """One, of kernels only, in the order in which it is made."""

    def __init__(self, data_type: int = 921) -> None:
        self.operators: list[Json] = []
        self._data_type = data_type
        self._numbers = count(1)

    def tensor(self, sizes: Sequence[int], data_type: int = 0) -> Json:
        """Return a tensor of its own number."""
        padded = [*sizes, *[0] * (4 - len(sizes))]
        kind = data_type or self._data_type
        return {
            "guid": next(self._numbers),
            "dim": padded,
            "num_dims": len(sizes),
            "data_type": kind,
        }

    def add(self, op: str, given: Sequence[Json], made: Sequence[Json], **others: Any) -> None:
        """Add an operator of the kernel graph."""
        self.operators.append(_operator(f"kn_{op}_op", given, made, **others))

    def inputs(self, *sizes: Sequence[int]) -> list[Json]:
        """Add inputs; return them."""
        made = [self.tensor(one) for one in sizes]
        for one in made:
            self.add("input", [], [one])
        return made


class Block:
    """The block graph of a kernel, in the order in which it is made."""

    def __init__(self, document: Document, grid: tuple[int, int, int], loop: int) -> None:
        self._document, self._grid, self._loop = document, grid, loop
        self._operators: list[Json] = []
        self._loaded: list[Json] = []
        self._stored: list[Json] = []

    def load(self, tensor: Json, sizes: Sequence[int], maps: Maps) -> Json:
        """Add a load; return the tile."""
        made = self._document.tensor(sizes)
        self._loaded.append(tensor)
        self._operators.append(_operator("tb_input_op", [], [made], dtensor=tensor,
                                         input_map=_axes(maps[:3]), forloop_dim=maps[3]))  # fmt: skip
        return made

    def add(self, op: str, given: Sequence[Json], *sizes: Sequence[int]) -> list[Json]:
        """Add an operator; return what it gives."""
        made = [self._document.tensor(one) for one in sizes]
        self._operators.append(_operator(f"tb_{op}_op", given, made))
        return made

    def store(
        self, tile: Json, sizes: Sequence[int], maps: tuple[int, int, int], data_type: int = 0
    ) -> Json:
        """Add a store; return the tensor."""
        made = self._document.tensor(sizes, data_type)
        self._stored.append(made)
        self._operators.append(_operator("tb_output_op", [tile], [], dtensor=made,
                                         output_map=_axes(maps)))  # fmt: skip
        return made

    def end(self) -> None:
        """Add the kernel to the document."""
        graph = {"grid_dim": _axes(self._grid), "forloop_range": self._loop, "reduction_dimx": 64,
                 "operators": self._operators}  # fmt: skip
        self._document.add("customized", self._loaded, self._stored, bgraph=graph)


def split_attention(
    rescaled: str = "forloop_accum_nored_rescale", wide: int = 0, keys: int = 64
) -> list[Json]:
    """Return the attention of Mirage's demo of online softmax, of two kernels, with smaller dims.

    The second kernel's maximum is over one element of each of its iterations.

    Args:
        rescaled: the accumulator of the values.
        wide: the number of the type of what is between the kernels; that of the inputs by default.
        keys: of a head; four blocks have them, each in four iterations.
    """
    document = Document()
    q, k, v = document.inputs((2, 16, 16), (2, 16, keys), (2, keys, 16))
    block, tile = Block(document, (2, 4, 1), 4), keys // 16
    queries = block.load(q, (1, 16, 16), (0, -1, -1, -1))
    columns = block.load(k, (1, 16, tile), (0, 2, -1, 2))
    rows = block.load(v, (1, tile, 16), (0, 1, -1, 1))
    (scores,) = block.add("matmul", [queries, columns], (1, 16, tile))
    largest, moved = block.add("reduction_2_max", [scores], (1, 16, 1), (1, 16, 1))
    (below,) = block.add("sub", [scores, largest], (1, 16, tile))
    (weights,) = block.add("exp", [below], (1, 16, tile))
    (factor,) = block.add("exp", [moved], (1, 16, 1))
    (values,) = block.add("matmul", [weights, rows], (1, 16, 16))
    given = [values, factor] if rescaled.endswith("rescale") else [values]
    (weighed,) = block.add(rescaled, given, (1, 16, 16))
    (total,) = block.add("forloop_accum_red_ld_sum_rescale", [weights, factor], (1, 16, 1))
    (top,) = block.add("forloop_accum_max", [largest], (1, 16, 1))
    parts = block.store(weighed, (2, 16, 64), (0, 2, -1), wide)
    totals, tops = (block.store(one, (2, 16, 4), (0, 2, -1), wide) for one in (total, top))
    block.end()
    _together(document, parts, totals, tops)
    return document.operators


def _together(document: Document, parts: Json, totals: Json, tops: Json) -> None:
    """Add the second kernel, which brings the parts of four blocks to one scale."""
    block = Block(document, (2, 4, 1), 4)
    (weighed, total, top) = (
        block.load(one, (1, 4, size), (0, 1, -1, 2))
        for one, size in ((parts, 16), (totals, 1), (tops, 1))
    )
    largest, moved = block.add("reduction_2_max", [top], (1, 4, 1), (1, 4, 1))
    (below,) = block.add("sub", [top, largest], (1, 4, 1))
    (factor,) = block.add("exp", [moved], (1, 4, 1))
    (own,) = block.add("exp", [below], (1, 4, 1))
    (numerator,) = block.add("mul", [weighed, own], (1, 4, 16))
    (denominator,) = block.add("mul", [total, own], (1, 4, 1))
    (sums,) = block.add("forloop_accum_nored_rescale", [numerator, factor], (1, 4, 16))
    (whole,) = block.add("forloop_accum_red_ld_sum_rescale", [denominator, factor], (1, 4, 1))
    (result,) = block.add("div", [sums, whole], (1, 4, 16))
    stored = block.store(result, (2, 16, 16), (0, 1, -1))
    block.end()
    document.add("output", [stored], [])


def _operator(op_type: str, given: Sequence[Json], made: Sequence[Json], **others: Any) -> Json:
    return {"op_type": op_type, "input_tensors": [*given], "output_tensors": [*made], **others}


def _axes(numbers: Sequence[int]) -> Mapping[str, int]:
    return dict(zip("xyz", numbers, strict=True))
