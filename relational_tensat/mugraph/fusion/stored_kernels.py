"""Kernels of a model's own as rows of the table ``fused_kernel``, from which a run is resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.targets.target import FUSED_FILE, know_kernels

#: The columns, in order.
COLUMNS = ("mugraph", "cost_us", "dtype", "operands", "results", "rules", "graph")


def rows_of(kernels: Iterable[OwnKernel]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of kernels."""
    for kernel in kernels:
        graph = json.dumps(encoded(kernel.graph), ensure_ascii=False)
        operands = [list(shape) for shape in kernel.operands]
        results = [list(shape) for shape in kernel.results]
        rules = [rule.name for rule in kernel.rules]
        yield kernel.key, kernel.cost_us, kernel.dtype, operands, results, rules, graph


def kernels_of(rows: Iterable[tuple[Any, ...]], texts: Mapping[str, str]) -> list[OwnKernel]:
    """Return the kernels that rows are.

    Args:
        rows: of the table.
        texts: the run's rules by name.

    Raises:
        InputError: one is malformed, or its rule is missing.
    """
    know_kernels()
    return [_kernel(row, texts) for row in rows]


def _kernel(row: tuple[Any, ...], texts: Mapping[str, str]) -> OwnKernel:
    key, cost_us, dtype, operands, results, names, graph = row
    missing = [name for name in names if name not in texts]
    if missing:
        raise InputError(f"the rule {missing[0]} of the kernel {key} is missing")
    rules = [rule for name in names for rule in parse_rules(texts[name], FUSED_FILE, sys.maxsize)]
    return OwnKernel(
        key,
        decoded(json.loads(graph), f"the kernel {key}"),
        tuple(rules),
        dtype,
        tuple(map(tuple, operands)),
        tuple(map(tuple, results)),
        cost_us,
    )
