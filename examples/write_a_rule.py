"""Write a rule, let the program look for a counterexample, and see the rule fire.

python examples/write_a_rule.py
"""

from relational_tensat import EGraph, Node, TensorType, build_graph
from relational_tensat.rules.builder import Rewrite, Tensor, fn, ops, rewrite, rule
from relational_tensat.rules.soundness import verify_rules


@rule(law="a·b + a·c = a·(b + c)")
def factor_out(a: Tensor, b: Tensor, c: Tensor) -> Rewrite:
    """The function's parameters are the variables of the pattern."""
    pattern = ops.add(ops.mul(a, b), ops.mul(a, c))
    return rewrite(pattern).to(ops.mul(a, ops.add(b, c))).where(fn.is_float(a))


# One that is wrong: the program finds numbers that show it.
@rule(law="a·b = a + b")
def wrong(a: Tensor, b: Tensor) -> Rewrite:
    return rewrite(ops.mul(a, b)).to(ops.add(a, b)).where(fn.is_float(a))


for verdict in verify_rules([*factor_out, *wrong]):
    print(verdict.rule, verdict.status, verdict.reason)

square = TensorType("float32", (8, 8))
nodes = [
    Node("mul", ("a", "b"), ("ab",)),
    Node("mul", ("a", "c"), ("ac",)),
    Node("add", ("ab", "ac"), ("y",)),
]
graph = build_graph("sum_of_products", dict.fromkeys("abc", square), {}, nodes, ["y"])
with EGraph.of(graph) as egraph:
    egraph.explore(factor_out)
    extracted = egraph.extract("t4")
    print("before:", graph.count_ops(), "after:", extracted.graph.count_ops())
    print("made by:", dict(extracted.rules))
