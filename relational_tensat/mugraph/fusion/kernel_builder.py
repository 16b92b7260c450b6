"""Kernels for parts of a model, each verified, with a rule that lets it stand for the part.

A program that was read from a model's nodes is checked to compute what these compute. The rule's target
means the same as its source, operator by operator, so the rule is true by itself; the verification of the
kernel's μGraph shows that it computes this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import cast

import numpy as np

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.egraph.enode_rows import gathered, single_number
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.fusion.savings import SavingsModel
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Kernel, MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.graph.rewrites import core, with_windows
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import KernelSearcher, SearchEffort, UnfitError
from relational_tensat.mugraph.verify.masks import are_same, masked, masks_of
from relational_tensat.mugraph.verify.random_tests import has_choices
from relational_tensat.mugraph.verify.stability import stabilized, stable_if_possible
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.rules.backends.backend import FUSED_FILE
from relational_tensat.rules.backends.fused_chain import body_of
from relational_tensat.rules.backends.fused_kernel import FusedPart
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.tensor import Array, Attrs, Graph, TensorType, ValueType, Weight, tensors_of
from relational_tensat.tensor.operators import get_operator

_SEED = 2_000_000


class KernelBuilder:
    """Makes kernels: functions and reductions by rows, regions with products by search.

    Args:
        savings: their modelled, or measured, times.
        searcher: searches.
        is_for_one: whether one block may do it all, as of ``row_kernel``.
    """

    def __init__(
        self, savings: SavingsModel, searcher: KernelSearcher, *, is_for_one: bool = False
    ) -> None:
        self._savings = savings
        self._is_for_one = is_for_one
        self._searcher = searcher
        self._kernels: dict[str, OwnKernel] = {}

    @property
    def kernels(self) -> tuple[OwnKernel, ...]:
        """All that were made."""
        return tuple(self._kernels.values())

    def make(
        self, candidate: KernelCandidate, effort: SearchEffort, *, was_verified: bool = False
    ) -> OwnKernel:
        """Return the kernel of a candidate, with a rule for it.

        Args:
            candidate: the part.
            effort: of a search, where there are products.
            was_verified: whether this very code has made and verified the kernel of an equal part before.

        Raises:
            RelationalTensatError: no kernel can be made; says why.
        """
        part = candidate.within or candidate
        if not (was_verified or computes_nodes(part, _SEED)):
            raise VerificationError("its program computes something else")
        device = self._savings.device(candidate)
        if candidate.has_products:
            assert device is not None
            graph = self._searcher.search(candidate.program, device, effort)
        else:
            graph = by_rows(candidate.program, self._is_for_one, was_verified)
        graph = stored_in_order(graph, candidate.program, candidate.orders)
        cost_us = self._savings.kernel_us(part, graph)
        if cost_us is not None and not math.isfinite(cost_us):
            raise UnfitError("a block of it is too large")
        kernel = self._with_rule(candidate, graph, cost_us)
        self._kernels[kernel.key] = kernel
        return kernel

    def _with_rule(
        self, candidate: KernelCandidate, graph: MuGraph, cost_us: float | None
    ) -> OwnKernel:
        """Return a kernel with one more rule, unless it has this one already."""
        program = candidate.program
        named = dict(
            zip((*program.inputs, *program.outputs), (*graph.inputs, *graph.outputs), strict=True)
        )
        quantized = {named[name]: kind for name, kind in candidate.quantized.items()}
        key = f"k{content_hash(graph, quantized)}"
        known = self._kernels.get(key)
        rules = known.rules if known else ()
        name = f"fused-{key}-{len(rules) + 1}" if rules else f"fused-{key}"
        rule = kernel_rule(candidate, key, name)
        if any(replace(rule, name=other.name) == other for other in rules):
            assert known is not None
            return known
        given = enumerate(candidate.program.inputs)
        may_be = masks_of(candidate.program)
        masks = {name: tuple(f"x{place}" for place, tensor in given if tensor in may_be)}
        return OwnKernel(
            key, graph, (*rules, rule), candidate.dtype,
            tuple(_shape(candidate.graph, name) for name in candidate.inputs),
            tuple(_shape(candidate.graph, name) for name in candidate.outputs), cost_us,
            {**(known.masks if known else {}), **masks}, quantized=quantized,
        )  # fmt: skip


def by_rows(program: MuGraph, is_for_one: bool, was_verified: bool) -> MuGraph:
    """Return the kernel that computes a program row by row, verified unless it was before.

    Raises:
        RelationalTensatError: no kernel can be made, or it is wrong.
    """
    graph = with_windows(stabilized(row_kernel(core(program), is_for_one=is_for_one)), program)
    if was_verified:
        return graph
    verification = verify_mugraph(program, graph, _SEED)
    if not verification.passed or not verification.is_stable:
        raise VerificationError("the kernel computes something else")
    return graph


def stored_in_order(graph: MuGraph, program: MuGraph, orders: Sequence[tuple[str, ...]]) -> MuGraph:
    """Return a μGraph whose results lie in memory as the model has them.

    Args:
        graph: the μGraph.
        program: the kernel's program; operators on index variables leave no order in memory.
        orders: of each result the index variables, as the model has them.

    Raises:
        UnfitError: it has other index variables than its program, which is not stored as the model is.
    """
    order_of = dict(zip(graph.outputs, orders, strict=True))
    own, dims = kernel_tensors(graph), kernel_tensors(program)
    for name, of_program in zip(graph.outputs, program.outputs, strict=True):
        if not {*variables(own[name])} <= {*order_of[name]}:
            if variables(dims[of_program]) != order_of[name]:
                raise UnfitError("its results have other index variables than its program's")
            del order_of[name]  # compared with the program's as they lie in memory
    steps = tuple(
        replace(step, block=_with_order(step.block, order_of)) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _with_order(block: BlockGraph, order_of: Mapping[str, tuple[str, ...]]) -> BlockGraph:
    savers = []
    for saver in block.savers:
        order = order_of.get(saver.output)
        if order is not None:
            dims = sorted(saver.dims, key=lambda dim: order.index(dim.variable))
            saver = replace(saver, dims=tuple(dims))
        savers.append(saver)
    return replace(block, savers=tuple(savers))


_TOLERANCE = 1e-9
#: In float64: 1 GiB, and about a minute.
_MOST_ELEMENTS = 1 << 27
_MOST_FLOPS = 1 << 40


def computes_nodes(candidate: KernelCandidate, seed: int) -> bool:
    """Compare a candidate's program with its nodes in float64, on random inputs of any sign.

    If results are not finite (a root of a negative number), they are compared on positive inputs instead;
    if conditions may leave nothing, NaN has to be where the nodes have it.

    Raises:
        InputError: that would take minutes, or more memory than a few GB.
    """
    _check_size(candidate)
    if has_choices(candidate.program):  # exp of the lowest number is 0, throughout some rows
        candidate = replace(candidate, program=stable_if_possible(candidate.program))
    random = np.random.default_rng(seed)
    shapes = {name: _shape(candidate.graph, name) for name in candidate.inputs}
    for draw in (random.standard_normal, lambda shape: random.uniform(0.5, 1.5, shape)):
        inputs = {name: np.asarray(draw(shape)) for name, shape in shapes.items()}
        inputs |= {name: random.random(shapes[name]) < 0.5 for name in _bool_inputs(candidate)}
        expected = _by_nodes(candidate, inputs)
        if has_choices(candidate.program) and all(np.isfinite(v).any() for v in expected):
            pairs = zip(expected, _by_program(candidate, inputs), strict=True)
            is_right = all(are_same(one.ravel(), other) for one, other in pairs)
            return is_right and _computes_masked(candidate, inputs, seed)
        if all(np.isfinite(value).all() for value in expected):
            computed = _by_program(candidate, inputs)
            is_right = all(map(_is_close, computed, expected))
            return is_right and _computes_masked(candidate, inputs, seed)
    return False


def _computes_masked(candidate: KernelCandidate, inputs: dict[str, Array], seed: int) -> bool:
    """Compare a candidate's program with its nodes where masks leave little or nothing, if it has any."""
    program = candidate.program
    shapes = {name: _shape(candidate.graph, name) for name in candidate.inputs}
    for given in masked(program, _as_program_has(candidate, inputs), seed):
        values = [
            given[name].reshape(shape) for name, shape in zip(given, shapes.values(), strict=True)
        ]
        masks = dict(zip(shapes, values, strict=True))
        masks |= {name: masks[name] != 0 for name in _bool_inputs(candidate)}
        computed = _by_program(candidate, masks)
        for one, other in zip(_by_nodes(candidate, masks), computed, strict=True):
            if not are_same(one.ravel(), other):
                return False
    return True


def _is_close(computed: Array, expected: Array) -> bool:
    distance = np.linalg.norm(np.subtract(computed, expected.ravel()))
    return bool(distance <= _TOLERANCE * np.linalg.norm(expected.ravel()))


def _check_size(candidate: KernelCandidate) -> None:
    types, elements, flops = candidate.graph.types, 0, 0
    for node in candidate.nodes:
        kinds = [types[name] for name in node.outputs]
        kind = kinds[0] if len(kinds) == 1 else tuple(map(_tensor_type, kinds))
        elements += sum(part.size for part in tensors_of(kind))
        operands = tuple(types[name] for name in node.inputs)
        flops += get_operator(node.op).flops(operands, kind, node.attrs)
    if elements > _MOST_ELEMENTS or flops > _MOST_FLOPS:
        raise InputError("too large to be compared with its nodes here")


def _by_nodes(candidate: KernelCandidate, inputs: dict[str, Array]) -> list[Array]:
    graph, values = candidate.graph, dict(inputs)
    with np.errstate(all="ignore"):
        for node in candidate.nodes:
            for name in node.inputs:
                if name not in values:  # a number
                    data = np.asarray(graph.weights[name].data)
                    values[name] = data if data.dtype.kind in "iu" else data.astype(np.float64)
            kinds = tuple(graph.types[name] for name in node.inputs)
            operands = tuple(values[name] for name in node.inputs)
            operator = get_operator(node.op)
            computed = operator.evaluate_typed(operands, kinds, node.attrs)
            made = computed if isinstance(computed, tuple) else (computed,)
            values.update(zip(node.outputs, made, strict=True))
    return [np.asarray(values[output]) for output in candidate.outputs]


def _by_program(candidate: KernelCandidate, inputs: dict[str, Array]) -> list[Array]:
    program, given = candidate.program, _as_program_has(candidate, inputs)
    results, dims = evaluate(program, given, Numbers()), kernel_tensors(program)
    flat = []
    for output, order in zip(program.outputs, candidate.orders, strict=True):
        mine = variables(dims[output])
        flat.append(results[output].transpose([mine.index(name) for name in order]).ravel())
    return flat


def _as_program_has(candidate: KernelCandidate, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return inputs by the program's names, with an axis for each index variable."""
    named = zip(candidate.program.inputs.items(), candidate.inputs, strict=True)
    return {
        name: inputs[read].reshape([dim.size for dim in dims]).astype(np.float64)
        for (name, dims), read in named
    }


def _bool_inputs(candidate: KernelCandidate) -> list[str]:
    """Return the model's values that are read as bools."""
    conditions = candidate.program.conditions
    named = zip(candidate.program.inputs, candidate.inputs, strict=True)
    return [read for name, read in named if name in conditions]


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return _tensor_type(graph.types[name]).shape


def _tensor_type(kind: ValueType) -> TensorType:
    assert isinstance(kind, TensorType)
    return kind


def kernel_rule(candidate: KernelCandidate, key: str, name: str) -> Rule:
    """Return the rule: where these operators are on operands of these types, the kernel may be.

    Args:
        candidate: the operators.
        key: of the kernel.
        name: of the rule.

    Raises:
        InputError: it has a number that no rule can name.
    """
    named = [Var(f"x{place}") for place in range(len(candidate.inputs))]
    terms: dict[str, Term] = dict(zip(candidate.inputs, named, strict=True))
    numbers = {read: place for place, read in enumerate(candidate.inputs)}
    scales = count(len(candidate.inputs) - 2 * len(candidate.quantized))
    parts: list[FusedPart] = []
    for node in candidate.nodes:
        for read in node.inputs:
            if read not in terms:  # a number: the kernel has it
                parts.append(FusedPart("fill", (), _fill(candidate.graph, read)))
                numbers[read] = len(candidate.inputs) + len(parts) - 1
                terms[read] = _number_term(candidate.graph, read)
        said = candidate.said.get(node.outputs[0], node.attrs)
        operands = [numbers[read] for read in node.inputs]
        children = tuple(terms[read] for read in node.inputs)
        if candidate.is_scaled(node):
            # By its own: two nodes of one scale are a place like any other.
            operands[1:] = [next(scales), next(scales)]
            children = (children[0], *(named[place] for place in operands[1:]))
        parts.append(FusedPart(node.op, tuple(operands), said))
        whole = len(candidate.inputs) + len(parts) - 1
        term = Apply(node.op, children, _literals(node.attrs))
        if not get_operator(node.op).multi_output:
            numbers[node.outputs[0]], terms[node.outputs[0]] = whole, term
            continue
        for index, output in enumerate(node.outputs):
            parts.append(FusedPart("part", (whole,), {"index": index}))
            numbers[output] = len(candidate.inputs) + len(parts) - 1
            terms[output] = Apply("part", (term,), (("index", Literal(index)),))
    sources = tuple(cast(Apply, terms[output]) for output in candidate.outputs)
    given = gathered(named)
    body = body_of(parts, [numbers[output] for output in candidate.outputs])
    attrs = (("mugraph", Literal(key)), ("body", Literal(body)))
    kernel = Apply("fused", given, attrs)
    return Rule(
        name,
        "a kernel computes the same as its operators",
        sources,
        tuple(
            Apply("part", (kernel,), (("index", Literal(place)),)) for place in range(len(sources))
        ),
        tuple(_conditions(candidate)),
        symmetric=_may_be_exchanged(sources, candidate),
        file=FUSED_FILE,
    )


def _may_be_exchanged(sources: Sequence[Apply], candidate: KernelCandidate) -> bool:
    """Return whether sources differ in their own operands only, which are of the same types."""
    counts = Counter(name for source in sources for name in set(_variables(source)))
    types = {f"x{n}": candidate.graph.types[name] for n, name in enumerate(candidate.inputs)}
    forms = set()
    for source in sources:
        own = [name for name in dict.fromkeys(_variables(source)) if counts[name] == 1]
        renamed = {name: Var(f"own{place} {types[name]}") for place, name in enumerate(own)}
        forms.add(_renamed(source, renamed))
    return len(forms) == 1 < len(sources) and {*counts.values()} <= {1, len(sources)}


def _variables(term: Term) -> Iterator[str]:
    """Yield the names of a term's variables, each time that one is there."""
    if isinstance(term, Var):
        yield term.name
    else:
        for child in term.children:
            yield from _variables(child)


def _renamed(term: Term, names: Mapping[str, Var]) -> Term:
    if isinstance(term, Var):
        return names.get(term.name, term)
    return replace(term, children=tuple(_renamed(child, names) for child in term.children))


def _conditions(candidate: KernelCandidate) -> Iterator[Expr]:
    """Yield that operands are of the types that the kernel was made for."""
    for place, name in enumerate(candidate.inputs):
        kind, variable = candidate.graph.types[name], Var(f"x{place}")
        assert isinstance(kind, TensorType)
        shape = Call("list", tuple(Literal(size) for size in kind.shape))
        of_shape = Call("=", (Call("shape", (variable,)), shape))
        of_one = Call("=", (Call("rank", (variable,)), Literal(0)))
        yield of_shape if kind.shape else of_one
        yield Call("=", (Call("dtype", (variable,)), Literal(kind.dtype)))


def _fill(graph: Graph, name: str) -> Attrs:
    """Return the operator that gives a weight of one number.

    Raises:
        InputError: the number has no such form: negative zero, say, or NaN.
    """
    weight, kind = graph.weights[name], graph.types[name]
    assert isinstance(kind, TensorType)
    number = single_number(weight)
    if number is None and _is_infinite(weight):
        number = float(np.asarray(weight.data).item())
    if number is None:
        raise InputError(f"{name} is no number that rules know")
    return {"value": number, "dtype": kind.dtype, "shape": kind.shape}


def _number_term(graph: Graph, name: str) -> Apply:
    """Return the e-node that a weight of one number is: an infinite one is a weight of that name.

    Raises:
        InputError: it has a name that no rule can be written with.
    """
    weight = graph.weights[name]
    if not _is_infinite(weight):
        return Apply("fill", (), _literals(_fill(graph, name)))
    if '"' in name or "\n" in name:
        raise InputError(f"{name!r} is no name that rules know")
    attrs: Attrs = {"name": name, "dtype": weight.type.dtype, "shape": weight.type.shape}
    return Apply("weight", (), _literals(attrs))


def _is_infinite(weight: Weight) -> bool:
    if weight.data is None or weight.type.size != 1 or not weight.type.is_float:
        return False
    return math.isinf(float(np.asarray(weight.data).item()))


def _literals(attrs: Attrs) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, Literal(value)) for name, value in attrs.items())
