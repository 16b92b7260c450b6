"""Rules that undo each other, grow what others shrink, and repeat their variables; laws of the reals."""

from __future__ import annotations

from relational_tensat.rules.language import parse_rules

_TEXT = """
(rule negated-twice (law "-(-x) = x") (from (neg (neg ?x))) (to ?x))
(rule relu-of-relu (law "relu is idempotent") (from (relu (relu ?x))) (to (relu ?x)))
(rule relu-again (law "relu is idempotent") (from (relu ?x)) (to (relu (relu ?x))))
(rule negate-twice (law "x = -(-x)") (from (tanh ?x)) (to (neg (neg (tanh ?x)))))
(rule name (law "identity") (from (tanh ?x)) (to (identity (tanh ?x))))
(rule rename (law "identity") (from (identity ?x)) (to ?x))
(rule odd (law "tanh is odd") (from (tanh (neg ?x))) (to (neg (tanh ?x))))
(rule odd-back (law "tanh is odd") (from (neg (tanh ?x))) (to (tanh (neg ?x))))
(rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
(rule regroup (law "(a + b) + c = a + (b + c)")
  (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
(rule negate-sum (law "-(a + b) = -a + -b") (from (neg (add ?a ?b))) (to (add (neg ?a) (neg ?b))))
(rule sum-of-negated (law "-a + -b = -(a + b)") (from (add (neg ?a) (neg ?b))) (to (neg (add ?a ?b))))
(rule difference (law "a - b = a + -b") (from (sub ?a ?b)) (to (add ?a (neg ?b))))
(rule difference-back (law "a + -b = a - b") (from (add ?a (neg ?b))) (to (sub ?a ?b)))
(rule nothing (law "a - a = 0")
  (from (sub ?a ?a)) (to (fill :value 0.0 :dtype (dtype ?a) :shape (shape ?a))))
(rule plus-nothing (law "a + (b - b) = a") (from (add ?a (sub ?b ?b))) (to ?a))
(rule double (law "a + a = 2 a") (from (add ?a ?a)) (to (smul ?a :value 2.0)))
(rule cancel (law "(a - b) + b = a") (from (add (sub ?a ?b) ?b)) (to ?a))
(rule transposed-twice (law "x'' = x")
  (from (transpose (transpose ?x :perm [1 0]) :perm [1 0])) (to ?x))
(rule transposed-product (law "A·B = (B'·A')'")
  (from (matmul ?a ?b))
  (to (transpose (matmul (transpose ?b :perm [1 0]) (transpose ?a :perm [1 0])) :perm [1 0])))
(rule negate-both (law "-a and -b are the parts of -[a, b]") (symmetric)
  (from (neg ?a) (neg ?b))
  (let ?both (split (neg (concat ?a ?b :axis 0)) :axis 0 :sizes (list (dim ?a 0) (dim ?b 0))))
  (to (part ?both :index 0) (part ?both :index 1)))
(rule each-by-the-other (law "a b = a (b + c) - a c, and the same for c") (symmetric)
  (from (mul ?a ?b) (mul ?a ?c))
  (to (sub (mul ?a (add ?b ?c)) (mul ?a ?c)) (sub (mul ?a (add ?b ?c)) (mul ?a ?b))))
"""

RULES = parse_rules(_TEXT, "undoing.rules")
