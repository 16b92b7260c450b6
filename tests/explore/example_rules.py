"""A few rules that tests of exploration speak of; independent of those that ship."""

from __future__ import annotations

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule

_TEXT = """
(rule twice (law "relu is idempotent") (from (relu (relu ?x))) (to (relu ?x)))
(rule same (law "identity") (from (identity ?x)) (to ?x))
(rule zero (law "x - x = 0")
  (from (sub ?x ?x)) (to (fill :value 0.0 :dtype (dtype ?x) :shape (shape ?x))))
(rule negate (law "a - b = a + -b") (from (sub ?a ?b)) (to (add ?a (neg ?b))))
(rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
(rule regroup (law "(a + b) + c = a + (b + c)")
  (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
(rule distribute (law "(a + b) * c = a * c + b * c")
  (from (mul (add ?a ?b) ?c)) (to (add (mul ?a ?c) (mul ?b ?c))))
(rule factor (law "a * c + b * c = (a + b) * c")
  (from (add (mul ?a ?c) (mul ?b ?c))) (to (mul (add ?a ?b) ?c)))
(rule grow (law "x = -(-x)") (from (neg ?x)) (to (neg (neg (neg ?x)))))
(rule join-products (law "[A·B, A·C] = A·[B, C]") (symmetric)
  (from (matmul ?a ?b) (matmul ?a ?c))
  (let ?both (split (matmul ?a (concat ?b ?c :axis 1)) :axis 1 :sizes (list (dim ?b 1) (dim ?c 1))))
  (to (part ?both :index 0) (part ?both :index 1))
  (where (= (rank ?a) 2)))
(rule scale-columns (law "(A·B) * s = A·(B * s) for an s per column")
  (from (mul (matmul ?a ?b) ?s)) (to (matmul ?a (mul ?b ?s)))
  (where (= (rank ?s) 1) (= (size ?s) (dim ?b -1))) (worth (known ?s)))
(rule join-known-sums (law "[a + b, c + d] = [a, c] + [b, d]") (symmetric)
  (from (add ?a ?b) (add ?c ?d))
  (let ?both (split (add (concat ?a ?c :axis 0) (concat ?b ?d :axis 0))
                    :axis 0 :sizes (list (dim ?a 0) (dim ?c 0))))
  (to (part ?both :index 0) (part ?both :index 1))
  (worth (known ?b) (known ?d)))
(rule join-sums (law "[a + b, c + d] = [a, c] + [b, d]") (symmetric)
  (from (add ?a ?b) (add ?c ?d))
  (let ?both (split (add (concat ?a ?c :axis 0) (concat ?b ?d :axis 0))
                    :axis 0 :sizes (list (dim ?a 0) (dim ?c 0))))
  (to (part ?both :index 0) (part ?both :index 1)))
(rule transposed (law "a shape rule is missing: only right for squares") (unsound)
  (from (tanh ?x)) (to (transpose ?x :perm [1 0])))
"""

_RULES = {rule.name: rule for rule in parse_rules(_TEXT, "example.rules")}


def example_rules(*names: str) -> list[Rule]:
    """Return the rules of these names, in this order; of none, all that are sound."""
    return (
        [_RULES[name] for name in names] if names else [r for r in _RULES.values() if not r.unsound]
    )
