"""Rules that are wrong somewhere, and rules like them that are right."""

from __future__ import annotations

_ONE = "(fill :value {} :dtype ?d :shape ?s)"
_SAME_SHAPE = "(= (broadcast (shape ?x) ?s) (shape ?x))"


def _typed(dtype: str) -> str:
    return f"(where (= (dtype ?x) {dtype}))"


_CONV = "(conv ?x {} :stride ?s :pad ?p :dilation ?d)"


def _scaled_weights(when: str) -> str:
    """Return a rule that forgets to scale the weights of a convolution where something holds."""
    scaled = f"(smul ?w :value (if {when} 1.0 ?v))"
    return f"(from (smul {_CONV.format('?w')} :value ?v)) (to {_CONV.format(scaled)})"


def _negated(when: str) -> str:
    """Return a rule that forgets a sign where something holds."""
    return f"(from (smul (neg ?x) :value ?v)) (to (smul ?x :value (if {when} ?v (* -1 ?v))))"


WRONG = {
    # --- integers and conversions ---
    "narrowed-integer": "(from (cast (cast ?x :dtype int8) :dtype int64)) (to ?x) "
    + _typed("int64"),
    "narrowed-int32": "(from (cast (cast ?x :dtype int32) :dtype int64)) (to ?x) "
    + _typed("int64"),
    "narrowed-float": "(from (cast (cast ?x :dtype float16) :dtype float32)) (to ?x) "
    + _typed("float32"),
    "through-bfloat16": "(from (cast (cast ?x :dtype bfloat16) :dtype float16)) (to ?x) "
    + _typed("float16"),
    "integer-through-float": "(from (cast (cast ?x :dtype float32) :dtype int32)) (to ?x) "
    + _typed("int32"),
    "truth-of-whole": "(from (cast (cast ?x :dtype int32) :dtype bool)) (to (cast ?x :dtype bool))",
    "sum-after-widening": "(from (cast (add ?x ?y) :dtype int64))"
    " (to (add (cast ?x :dtype int64) (cast ?y :dtype int64))) " + _typed("int8"),
    "product-undone": f"(from (div (mul ?x {_ONE.format(3)}) {_ONE.format(3)})) (to ?x)"
    f" (where (= (dtype ?x) int8) {_SAME_SHAPE})",
    "factor-cancelled": "(from (div (mul ?x ?y) ?y)) (to ?x)"
    " (where (= (dtype ?x) int32) (= (shape ?x) (shape ?y)))",
    "quotients-joined": "(from (div (div ?x ?y) ?z)) (to (div ?x (mul ?y ?z))) " + _typed("int32"),
    "quotient-of-sum": "(from (add (div ?x ?y) (div ?z ?y))) (to (div (add ?x ?z) ?y)) "
    + _typed("int64"),
    "shift-behind-maximum": "(from (reduce_max (add ?x ?c) :axes ?a :keepdims true))"
    " (to (add (reduce_max ?x :axes ?a :keepdims true) ?c)) (where (constant-along ?c (rank ?x) ?a))",
    "relu-of-abs": "(from (relu (abs ?x))) (to (abs ?x))",
    "relus-apart": "(from (sub (relu ?x) (relu (neg ?x)))) (to ?x)",
    "sign-of-quotient": "(from (div (neg ?x) ?y)) (to (neg (div ?x ?y)))",
    "abs-of-product": "(from (abs (mul ?x ?y))) (to (mul (abs ?x) (abs ?y))) " + _typed("int16"),
    "relu-of-double": "(from (relu (add ?x ?x))) (to (add (relu ?x) (relu ?x))) " + _typed("int8"),
    # --- laws of the reals that floats do not have ---
    # What does not vary along the axis may be a mask: NaN of -inf, equal weights of the lowest number.
    "shift-before-softmax": "(from (softmax (add ?x ?c) :axis ?i)) (to (softmax ?x :axis ?i))"
    " (where (= (broadcast-dim ?c (rank ?x) ?i) 1)"
    " (= (broadcast (shape ?x) (shape ?c)) (shape ?x)))",
    "bias-before-softmax": "(from (softmax (matmul ?a ?b ?c) :axis ?i))"
    " (to (softmax (matmul ?a ?b) :axis ?i))"
    " (where (= (broadcast-dim ?c (max (rank ?a) (rank ?b)) ?i) 1))",
    "shifted-relu": f"(from (relu (add ?x {_ONE.format(20)}))) (to (add ?x {_ONE.format(20)}))"
    " (where (is-float ?x))",
    "shifted-sigmoid": f"(from (sigmoid (add ?x {_ONE.format(60)})))"
    f" (to (fill :value 1.0 :dtype ?d :shape (shape ?x))) (where {_SAME_SHAPE})",
    "exp-of-log": "(from (exp (log ?x))) (to ?x)",
    "log-of-exp": "(from (log (exp ?x))) (to ?x)",
    "root-squared": "(from (mul (sqrt ?x) (sqrt ?x))) (to ?x)",
    "quotient-by-itself": "(from (div ?x ?x)) (to (fill :value 1.0 :dtype (dtype ?x) :shape (shape ?x)))"
    " (where (is-float ?x))",
    "sum-of-logs": "(from (add (log ?x) (log ?y))) (to (log (mul ?x ?y)))",
    "product-of-exps": "(from (mul (exp ?x) (exp ?y))) (to (exp (add ?x ?y)))",
    "exp-of-sum": "(from (exp (add ?x ?y))) (to (mul (exp ?x) (exp ?y)))",
    "quotient-of-exps": "(from (div (exp ?x) (exp ?y))) (to (exp (sub ?x ?y)))",
    "plain-softmax": "(from (div (exp ?x) (reduce_sum (exp ?x) :axes ?a :keepdims true)))"
    " (to (softmax ?x :axis (get ?a 0))) (where (= (len ?a) 1))",
    # --- wrong beyond what is drawn most ---
    "long-dimension": _negated("(< 200 (dim ?x 0))"),
    "long-slice": "(from (slice (relu ?x) :axes ?a :starts ?s :ends ?e :steps ?t))"
    " (to (relu (slice ?x :axes ?a :starts (if (< 200 (dim ?x 0)) (repeat 0 (len ?s)) ?s)"
    " :ends (if (< 200 (dim ?x 0)) (subtract-lists ?e ?s) ?e) :steps ?t)))",
    "rank-6": _negated("(= (rank ?x) 6)"),
    "many-groups": _scaled_weights("(< 7 (groups ?x ?w))"),
    "wide-dilation": _scaled_weights("(= ?d [4 4])"),
    "long-stride": _scaled_weights("(= ?s [5 5])"),
    "large-kernel": _scaled_weights("(< 6 (dim ?w -1))"),
    "very-many-groups": _scaled_weights("(< 512 (groups ?x ?w))"),
}

# Small numbers lead to indices of the first half only.
_HALF = "(slice ?x :axes [0] :starts [0] :ends (list (// (+ (dim ?x 0) 1) 2)) :steps [1])"
_TWO = "(fill :value 2 :dtype int64 :shape [])"
WRONG |= {
    "index-behind-half": "(from (gather ?x (relu ?j) :axis 0)) (to (gather "
    f"{_HALF} (relu ?j) :axis 0)) (where (= (dtype ?j) int64))",
    "quotient-as-index": f"(from (gather ?x (div (relu ?j) {_TWO}) :axis 0))"
    f" (to (gather {_HALF} (div (relu ?j) {_TWO}) :axis 0))",
    # What lies between two whole numbers is rounded to either.
    "factor-into-quantization": "(from (quantize (smul ?x :value 0.7) ?s :dtype int8))"
    " (to (quantize ?x (smul ?s :value 1.4285714285714286) :dtype int8))",
    "index-that-wraps": "(from (gather ?x (cast (cast ?j :dtype int16) :dtype int64) :axis 0))"
    " (to (gather ?x ?j :axis 0)) (where (= (dtype ?j) int64))",
    "any-factor-into-quantization": "(from (quantize (smul ?x :value ?v) ?s :dtype int8))"
    " (to (quantize ?x (smul ?s :value (/ 1.0 ?v)) :dtype int8)) (where (< 0.1 ?v))",
    "sign-of-index": "(from (gather ?x (neg ?j) :axis 0)) (to (gather ?x ?j :axis 0))"
    " (where (= (dim ?x 0) 1))",
}

RIGHT = {
    "widened-integer": "(from (cast (cast ?x :dtype int64) :dtype int8)) (to ?x) " + _typed("int8"),
    "widened-float": "(from (cast (cast ?x :dtype float32) :dtype float16)) (to ?x) "
    + _typed("float16"),
    "small-integer-through-float": "(from (cast (cast ?x :dtype float32) :dtype int16)) (to ?x) "
    + _typed("int16"),
    "sum-undone": "(from (sub (add ?x ?y) ?y)) (to ?x) (where (= (shape ?x) (shape ?y)))",
    "factor-out": "(from (add (mul ?x ?y) (mul ?x ?z))) (to (mul ?x (add ?y ?z)))",
    "sums-joined": "(from (add (add ?x ?y) ?z)) (to (add ?x (add ?y ?z)))",
    "quotients-joined": "(from (div (div ?x ?y) ?z)) (to (div ?x (mul ?y ?z))) (where (is-float ?x))",
    "relu-of-abs": "(from (relu (abs ?x))) (to (abs ?x)) (where (is-float ?x))",
    "relus-apart": "(from (sub (relu ?x) (relu (neg ?x)))) (to ?x) (where (is-float ?x))",
    "relu-of-relu": "(from (relu (relu ?x))) (to (relu ?x))",
    "wrapped-product": "(from (mul (mul ?x ?y) ?z)) (to (mul ?x (mul ?y ?z)))",
    "index-from-afar": "(from (gather ?x (abs ?j) :axis 0)) (to (gather ?x (abs (neg ?j)) :axis 0))"
    " (where (= (dtype ?j) int64))",
    "sum-before-quantization": "(from (quantize (add ?x ?y) ?s :dtype int8))"
    " (to (quantize (add ?y ?x) ?s :dtype int8))",
    "negative-twice": "(from (neg (neg ?x))) (to ?x)",
    "softmax": "(from (div (exp (sub ?x (reduce_max ?x :axes ?a :keepdims true)))"
    " (reduce_sum (exp (sub ?x (reduce_max ?x :axes ?a :keepdims true))) :axes ?a :keepdims true)))"
    " (to (softmax ?x :axis (get ?a 0))) (where (= (len ?a) 1))",
    "sigmoid": "(from (reciprocal (add (exp (neg ?x)) (fill :value 1 :dtype ?d :shape []))))"
    " (to (sigmoid ?x))",
    "negative-scale": "(from (smul (neg ?x) :value ?v)) (to (smul ?x :value (* -1 ?v)))",
}
