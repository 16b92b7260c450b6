"""The kernels of a run, beside the operators that each replaces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import type_text
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredSignature
from relational_tensat.mugraph.graph.mugraph_json import decoded
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.tensor import Attrs, TensorType, ValueType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.view.data.kernel_data import FusedUse, ReplacedOperator
from relational_tensat.view.frames import has_table
from relational_tensat.view.kernel_figure import drawing


def fused_kernels(stored: StoredEGraph) -> tuple[FusedUse, ...]:
    """Return the kernels that e-nodes are, those of the extracted graph first; none without ``--fuse``.

    Raises:
        InputError: a kernel in the tables is malformed.
    """
    if not has_table(stored.connection, "fused_kernel"):
        return ()
    rows = stored.connection.execute(sql("view/kernels")).fetchall()
    costs_us = _KernelCosts(stored)
    return tuple(_use(stored, costs_us, *row) for row in rows)


class _KernelCosts:
    """Costs of operators by what they are, as far as the run has them."""

    def __init__(self, stored: StoredEGraph) -> None:
        rows = stored.connection.execute("SELECT signature, cost_us FROM cost").fetchall()
        self.of_signature: Mapping[int, float] = dict(rows)
        self._signatures: dict[tuple[object, ...], int] = {
            _key(one.symbol.op, dict(one.symbol.attrs), one.operands): number
            for number, one in stored.signatures.items()
        }

    def of(self, op: str, attrs: Attrs, operands: tuple[ValueType, ...]) -> float | None:
        """Return the microseconds of an operator; None where the e-graph does not have it."""
        signature = self._signatures.get(_key(op, attrs, operands))
        return None if signature is None else self.of_signature.get(signature)


def _key(op: str, attrs: Attrs, operands: tuple[ValueType, ...]) -> tuple[object, ...]:
    return op, tuple(sorted(attrs.items())), operands


def _use(
    stored: StoredEGraph,
    costs: _KernelCosts,
    key: str,
    mugraph: str,
    dtype: str,
    chosen_uses: int,
    uses: int,
    example: Mapping[str, Any],
) -> FusedUse:
    signature = stored.signatures[example["signature"]]
    names = tuple(stored.class_text(child) for child in example["children"])
    return FusedUse(
        key=key,
        eclass=example["class"],
        enode=example["enode"],
        chosen_uses=chosen_uses,
        uses=uses,
        cost_us=costs.of_signature.get(example["signature"]),
        operands=names,
        replaced=tuple(_replaced(signature, costs)),
        drawing=drawing(decoded(json.loads(mugraph), f"kernel {key}"), dtype),
    )


def _replaced(signature: StoredSignature, costs: _KernelCosts) -> Iterator[ReplacedOperator]:
    """Return the operators that an e-node's kernel replaces, without constants."""
    operator = cast(FusedKernel, get_operator(signature.symbol.op))
    first = len(signature.operands)
    parts, kinds = operator.typed_parts(signature.operands, dict(signature.symbol.attrs))
    for number, part in enumerate(parts, first):
        if not part.operands:
            continue
        own = tuple(kinds[operand] for operand in part.operands)
        moved = [kinds[operand] for operand in dict.fromkeys(part.operands)]
        yield ReplacedOperator(
            id=str(number),
            op=part.op,
            type=type_text(kinds[number]),
            inputs=tuple(str(operand) for operand in dict.fromkeys(part.operands)),
            cost_us=costs.of(part.op, part.attrs, own),
            moved_bytes=sum(map(_bytes, (*moved, kinds[number]))),
        )


def _bytes(kind: ValueType) -> int:
    return kind.nbytes if isinstance(kind, TensorType) else sum(map(_bytes, kind))
