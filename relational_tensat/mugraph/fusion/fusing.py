"""Each chain of a model with its kernel, and the rule that lets the kernel stand for it.

A rule's target means what its source says, operator by operator, so the rule is true by itself; that the
kernel computes this is what the verification of its μGraph shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.mugraph.fusion.chain_program import program_of, row_kernel
from relational_tensat.mugraph.fusion.chains import Chain, chains
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.verify.stability import has_exponentials
from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.rules.targets.fused_chain import body_of
from relational_tensat.rules.targets.fused_kernel import Part
from relational_tensat.rules.targets.known import FUSED, know_kernels
from relational_tensat.tensor import Attrs, AttrValue, Graph, Node, TensorType

_SEED = 2_000_000


@dataclass(frozen=True, slots=True)
class FusedChain:
    """A chain whose kernel passed verification.

    Attributes:
        key: k and the hash of its μGraph's content.
        graph: the μGraph.
        rule: lets it stand for the chain's operators.
    """

    key: str
    graph: MuGraph
    rule: Rule


def fused_chains(graph: Graph, seed: int = _SEED) -> list[FusedChain]:
    """Return the chains of a model with verified kernels, equal ones once.

    Args:
        graph: the model.
        seed: of verification.
    """
    know_kernels()
    found: dict[str, FusedChain] = {}
    for chain in chains(graph):
        try:
            program = _named(program_of(chain, graph), chain)
            kernel = row_kernel(program)
        except InputError:
            continue
        key = f"k{content_hash(kernel)}"  # a word, which digits are not
        if key in found or has_exponentials(kernel):
            continue
        try:
            passed = verify_mugraph(program, kernel, seed).passed
        except VerificationError:
            continue
        if passed:
            found[key] = FusedChain(key, kernel, _rule(chain, graph, key))
    return list(found.values())


def _named(program: MuGraph, chain: Chain) -> MuGraph:
    """Return a program whose tensors are named by their order, so that equal chains are equal."""
    order = [*program.inputs, *(step.outputs[0] for step in program.steps)]
    short = {name: f"t{place}" for place, name in enumerate(order)}
    steps = tuple(
        Operation(s.op, tuple(short[n] for n in s.operands), short[s.output], s.attrs)
        for s in program.steps
        if isinstance(s, Operation)
    )
    inputs = {short[name]: dims for name, dims in program.inputs.items()}
    return MuGraph("chain", inputs, steps, (short[chain.output],))


def _rule(chain: Chain, graph: Graph, key: str) -> Rule:
    terms: dict[str, Term] = {name: Var(f"x{place}") for place, name in enumerate(chain.inputs)}
    numbers = {name: place for place, name in enumerate(chain.inputs)}
    parts: list[Part] = []
    for node in chain.nodes:
        operands = list(node.inputs)
        if node.op == "pow":
            fill = _number(graph, node)
            parts.append(Part("fill", (), fill))
            numbers[operands[1]] = len(chain.inputs) + len(parts) - 1
            terms[operands[1]] = Apply("fill", (), _literals(fill))
        parts.append(Part(node.op, tuple(numbers[name] for name in operands), node.attrs))
        numbers[node.outputs[0]] = len(chain.inputs) + len(parts) - 1
        children = tuple(terms[name] for name in operands)
        terms[node.outputs[0]] = Apply(node.op, children, _literals(node.attrs))
    source = terms[chain.output]
    assert isinstance(source, Apply)
    operand_terms = tuple(terms[name] for name in chain.inputs)
    attrs = (("mugraph", Literal(key)), ("body", Literal(body_of(parts))))
    return Rule(
        f"fused-{key}",
        "a kernel computes what the operators compute that it is made of",
        (source,),
        (Apply("fused", operand_terms, attrs),),
        tuple(_conditions(chain, graph)),
        file=f"{FUSED}.rules",
    )


def _conditions(chain: Chain, graph: Graph) -> list[Expr]:
    """Return that operands are of the types that the kernel was made for."""
    conditions: list[Expr] = []
    for place, name in enumerate(chain.inputs):
        kind, variable = graph.types[name], Var(f"x{place}")
        assert isinstance(kind, TensorType)
        shape = Call("list", tuple(Literal(size) for size in kind.shape))
        of_shape = Call("=", (Call("shape", (variable,)), shape))
        of_one = Call("=", (Call("rank", (variable,)), Literal(0)))
        conditions.append(of_shape if kind.shape else of_one)
        conditions.append(Call("=", (Call("dtype", (variable,)), Literal(kind.dtype))))
    return conditions


def _number(graph: Graph, node: Node) -> dict[str, AttrValue]:
    kind = graph.types[node.inputs[1]]
    assert isinstance(kind, TensorType)
    return {"value": 2.0, "dtype": kind.dtype, "shape": kind.shape}


def _literals(attrs: Attrs) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, Literal(value)) for name, value in attrs.items())
