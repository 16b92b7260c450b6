"""A few lines of Python that run what a step replaced and what it put in its place, alone."""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.explain.explanation import Explanation
from relational_tensat.explain.rewrite import Rewrite
from relational_tensat.rules.targets.fused_kernel import FusedKernel
from relational_tensat.tensor import Graph, TensorType, ValueType
from relational_tensat.tensor.operators import get_operator

_IMPORTS = (
    "import numpy as np",
    "from relational_tensat.formats import to_onnx_model",
    "from relational_tensat.tensor import Node, TensorType, Weight, build_graph",
    "from relational_tensat.verify import verify, verify_files",
)
#: Kernels of a target are compared as they are written.
_IMPORTS_OF_KERNELS = (
    "from relational_tensat.rules.targets.as_written import as_written",
    "from relational_tensat.rules.targets.known import know_kernels",
    "know_kernels()",
)
_KERNELS_WRITTEN = ("before, after = (as_written(graph, before) for graph in (before, after))",)
_COMPARISON = (
    "files = [to_onnx_model(graph).SerializeToString() for graph in (before, after)]",
    "print(verify(before, after).failure() or verify_files(before, *files).failure())",
)
#: Weights of at most so many elements are written out.
_FEW = 16


def reproduce(explanation: Explanation, rewrite: Rewrite, original: Graph) -> tuple[str, ...]:
    """Return the lines.

    Args:
        original: has the data of weights.
    """
    terms = explanation.terms
    signatures = explanation.stored.signatures
    stop = {
        term
        for term in rewrite.operands
        if signatures[terms[term].signature].symbol.op not in ("weight", "fill")
    }

    has_kernels = False

    def graph_line(name: str, roots: list[int]) -> list[str]:
        nonlocal has_kernels
        reachable: dict[int, None] = {}
        stack = list(roots)
        while stack:
            term = stack.pop()
            if term not in reachable:
                reachable[term] = None
                if term not in stop:
                    stack += terms[term].children
        inputs: list[str] = []
        weights: list[str] = []
        nodes: list[str] = []
        for term in sorted(reachable):
            signature, children = terms[term]
            stored = signatures[signature]
            attrs = dict(stored.symbol.attrs)
            if term in stop or stored.symbol.op in ("input", "weight"):
                data = _data(original, attrs) if stored.symbol.op == "weight" else ""
                place = weights if data else inputs
                place.append(f"{_name(term)!r}: {_typed(stored.type, data)}")
                continue
            has_kernels |= isinstance(get_operator(stored.symbol.op), FusedKernel)
            operands = tuple(map(_name, children))
            suffix = f", {attrs!r}" if attrs else ""
            nodes.append(f"Node({stored.symbol.op!r}, {operands!r}, ({_name(term)!r},){suffix})")
        return [
            f"{name} = build_graph({name!r}, {{{', '.join(inputs)}}}, {{{', '.join(weights)}}}, [",
            *(f"    {node}," for node in nodes),
            f"], {[_name(root) for root in roots]!r})",
        ]

    before = graph_line("before", [replaced.before for replaced in rewrite.replaced])
    after = graph_line("after", [replaced.after for replaced in rewrite.replaced])
    if not has_kernels:
        return (*_IMPORTS, *before, *after, *_COMPARISON)
    return (
        *_IMPORTS,
        *_IMPORTS_OF_KERNELS,
        *before,
        *after,
        *_KERNELS_WRITTEN,
        *_COMPARISON,
    )


def _name(term: int) -> str:
    return f"v{term}"


def _data(original: Graph, attrs: Mapping[str, object]) -> str:
    """Return a small weight's elements as an expression; "" for others."""
    weight = original.weights.get(str(attrs["name"]))
    if weight is None or weight.data is None or weight.type.size > _FEW:
        return ""
    return f"np.array({weight.data.tolist()!r}, {str(weight.data.dtype)!r})"


def _typed(kind: ValueType, data: str) -> str:
    assert isinstance(kind, TensorType)  # a rule's operands are no tuples, nor are weights
    text = f"TensorType({kind.dtype!r}, {kind.shape!r})"
    return f"Weight({text}, {data})" if data else text
