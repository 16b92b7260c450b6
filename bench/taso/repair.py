"""Whether an imported rule is sound, and the condition under which it is if it is not everywhere.

Of the conditions that compare what the rule's own operators have sizes of, and conjunctions of them, that
reject every example on which the law fails, the one is taken that keeps most of those on which it holds.
Then more examples are sought beside those that it keeps; while one refutes it, the search is repeated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.taso.samples import Samples, configured
from relational_tensat.rules.instance import source_nodes, tensor_vars
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var, nodes_of
from relational_tensat.rules.soundness import DEFAULT_TRIALS, Verdict, verify_rule
from relational_tensat.tensor.operators import get_operator

_RANKS = (1, 2, 3, 4)
#: Channels of an operand and filters of weights: the axes of images that rules mention.
_IMAGE_AXES = (0, 1)


def vocabulary(rule: Rule) -> tuple[Expr, ...]:
    """Return conditions on a rule's operands, those that are quickest to understand first.

    Groups of a convolution are 1; two tensors are equal in shape, along an axis that the rule
    names, along all others, or in image size; two convolutions have as many groups, or as many
    outputs per group; a kernel surrounded by zeros keeps its place; a tensor has a rank.
    """
    conditions = dict.fromkeys(_conditions(rule))
    return tuple(condition for condition in conditions if condition not in rule.conditions)


def _conditions(rule: Rule) -> Iterator[Expr]:
    tensors = [Var(name) for name in tensor_vars(rule)]
    convolutions = [node for node in source_nodes(rule) if node.op == "conv"]
    axes = _axes(rule)
    operands = [c.children[:2] for c in convolutions if all(isinstance(v, Var) for v in c.children)]
    groups = list(dict.fromkeys(_call("groups", *pair) for pair in operands))
    for group in groups:
        yield _call("=", group, Literal(1))
    roles = _roles(convolutions)
    pairs = [(a, b) for a, b in itertools.combinations(tensors, 2) if roles.get(a) == roles.get(b)]
    for a, b in pairs:
        for axis in axes:
            yield _call("=", _dim(a, axis), _dim(b, axis))
    for a, b in pairs:
        if convolutions:
            yield _equal("spatial", a, b)
        for axis in axes:
            yield _call("same-except", a, b, Literal(axis))
        yield _equal("shape", a, b)
        yield _equal("rank", a, b)
    for group_a, group_b in itertools.combinations(groups, 2):
        yield _call("=", group_a, group_b)
        yield _call("=", _outputs_per_group(group_a), _outputs_per_group(group_b))
    yield from _enlarged_in_place(rule, convolutions)
    for tensor in tensors:
        for rank in _RANKS:
            yield _call("=", _call("rank", tensor), Literal(rank))


def _roles(convolutions: list[Apply]) -> dict[Term, frozenset[int]]:
    """Return as which operands of convolutions a tensor occurs: images are not compared with weights."""
    roles: dict[Term, frozenset[int]] = {}
    for node in convolutions:
        for place, child in enumerate(node.children):
            roles[child] = roles.get(child, frozenset()) | {place}
    return roles


def _axes(rule: Rule) -> tuple[int, ...]:
    """Return the axes that operators of the rule name, and those of images where it has images."""
    axes: set[int] = set()
    for term in (*rule.sources, *rule.targets):
        for node in nodes_of(term):
            axis = dict(node.attrs).get("axis")
            if isinstance(axis, Literal) and isinstance(axis.value, int):
                axes.add(axis.value)
            if node.op == "conv":
                axes.update(_IMAGE_AXES)
    return tuple(sorted(axes))


def _enlarged_in_place(rule: Rule, convolutions: list[Apply]) -> Iterator[Expr]:
    for node in (node for target in rule.targets for node in nodes_of(target)):
        if node.op != "enlarge":
            continue
        small, large = node.children
        for conv in convolutions:
            x, w = conv.children[:2]
            stride, pad, dilation = (_attr(conv, key) for key in ("stride", "pad", "dilation"))
            if stride is None or pad is None or dilation is None:
                continue
            if w in (small, large) and all(isinstance(v, Var) for v in (x, small, large)):
                sizes = (_call("spatial", tensor) for tensor in (x, small, large))
                yield Call("enlargeable", (*sizes, stride, pad, pad, dilation))


def _attr(node: Apply, name: str) -> Expr | None:
    default = {attr.name: attr.default for attr in get_operator(node.op).attrs}[name]
    return dict(node.attrs).get(name, Literal(default))


def _outputs_per_group(groups: Call) -> Expr:
    _, w = groups.args
    return _call("//", _dim(w, 0), groups)


def _dim(tensor: Expr, axis: int) -> Expr:
    return _call("dim", tensor, Literal(axis))


def _equal(function: str, a: Expr, b: Expr) -> Expr:
    return _call("=", _call(function, a), _call(function, b))


def _call(function: str, *args: Term | Expr) -> Call:
    # Terms stand where functions of types want them: variables, which are expressions, too.
    return Call(function, args)  # type: ignore[arg-type]


_MOST_CONJUNCTS = 3
#: A condition that keeps fewer of the examples on which the law holds repairs nothing.
_LEAST_KEPT, _LEAST_SHARE = 6, 0.02
#: More conjuncts must be worth it: fewer are taken if they keep that share of the most that can be.
_WORTH_SHARE = 0.9
_ROUNDS = 8
#: Examples sought that could refute a condition, and attempts to find them: any, and such as lack
#: what those that it keeps have in common.
_PROBES, _PROBE_ATTEMPTS = 60, 1500
_CHALLENGE_ATTEMPTS = 30_000


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A condition and the examples that it accepts, as bits."""

    condition: Expr
    accepted: int


def find_condition(samples: Samples) -> tuple[Expr, ...] | None:
    """Return the weakest conjunction under which a rule holds on all examples.

    The examples by which it was tried are added to ``samples``.

    Returns:
        None where no condition of the vocabulary repairs the rule, or only such as leave next to
        nothing of it.
    """
    words = vocabulary(samples.rule)
    for _ in range(_ROUNDS):
        condition = _weakest(words, samples)
        if condition is None:
            return None
        before = len(samples.examples)
        samples.look_around(_PROBES, _PROBE_ATTEMPTS, condition)
        samples.challenge(words, _CHALLENGE_ATTEMPTS, condition)
        if all(example.holds for example in samples.examples[before:]):
            return condition
    return None


def _weakest(words: Sequence[Expr], samples: Samples) -> tuple[Expr, ...] | None:
    good = sum(example.holds << place for place, example in enumerate(samples.examples))
    bad = ~good & (1 << len(samples.examples)) - 1
    least = max(_LEAST_KEPT, int(_LEAST_SHARE * good.bit_count()))
    candidates = _candidates(words, samples, good, bad, least)
    best = [_best(candidates, size, good, bad, least) for size in range(1, _MOST_CONJUNCTS + 1)]
    most = max(count for count, _ in best)
    for count, conjunction in best:
        if conjunction and count >= _WORTH_SHARE * most:
            return tuple(candidate.condition for candidate in conjunction)
    return None


def _candidates(
    words: Sequence[Expr], samples: Samples, good: int, bad: int, least: int
) -> list[_Candidate]:
    """Return the conditions that reject something bad and keep enough; of equal ones the first."""
    by_examples: dict[int, _Candidate] = {}
    for word in words:
        holds = samples.evaluator(word)
        examples = sum(
            holds(example.configuration.var_types) << place
            for place, example in enumerate(samples.examples)
        )
        if (examples & good).bit_count() >= least and bad & ~examples:
            by_examples.setdefault(examples, _Candidate(word, examples))
    return list(by_examples.values())


def _best(
    candidates: Sequence[_Candidate], size: int, good: int, bad: int, least: int
) -> tuple[int, tuple[_Candidate, ...]]:
    """Return how many good examples the best conjunction of a size keeps, and its conjuncts."""
    most = least - 1
    best: tuple[_Candidate, ...] = ()
    for conjunction in itertools.combinations(candidates, size):
        examples = good | bad
        for candidate in conjunction:
            examples &= candidate.accepted
        count = (examples & good).bit_count()
        if not examples & bad and count > most:
            most, best = count, conjunction
    return (most, best) if best else (0, ())


#: What a judgement says: sound; sound where the condition holds that was found; not sound, and no
#: condition was found that repairs it; or too few operands fit the rule to decide.
STATUSES = ("sound", "sound if", "unsound", "untested")

_DRAWN, _DRAW_ATTEMPTS = 40, 1000
_BESIDE, _BESIDE_ATTEMPTS = 60, 1500
_FIRST_CHALLENGES = 6000
_REPAIRS = 3


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found out about one rule of a file.

    Attributes:
        rule: as it may be used: with the condition in its ``where``; marked unsound unless it is
            sound or sound if.
        status: one of ``STATUSES``.
        condition: what was found and added; empty unless sound if.
        verdict: the verifier's, on the rule with the condition; for an unsound rule it has the
            counterexample.
    """

    rule: Rule
    status: str
    condition: tuple[Expr, ...]
    verdict: Verdict


def judge(rule: Rule, *, seed: int = 0, trials: int = DEFAULT_TRIALS) -> Judgement:
    """Find out whether a rule holds, and if not everywhere, where.

    The same seed and trials give the same judgement.

    Args:
        trials: configurations that the verifier tries.

    Raises:
        UsageError: an attribute of the rule's sources is no constant.
    """
    samples = first_samples(rule, seed)
    if not samples.refuting:
        verdict = verify_rule(rule, seed=seed, trials=trials)
        if verdict.status == "untested":
            return Judgement(replace(rule, unsound=True), "untested", (), verdict)
        if verdict.status == "sound":
            return Judgement(replace(rule, unsound=False), "sound", (), verdict)
        _learn(samples, verdict)
    for _ in range(_REPAIRS):
        condition = find_condition(samples)
        if condition is None:
            break
        repaired = replace(rule, unsound=False, conditions=(*rule.conditions, *condition))
        verdict = verify_rule(repaired, seed=seed, trials=trials, shrink=False)
        if verdict.status == "sound":
            return Judgement(repaired, "sound if", condition, verdict)
        _learn(samples, verdict)
    return Judgement(replace(rule, unsound=True), "unsound", (), _refutation(samples, seed, trials))


def first_samples(rule: Rule, seed: int) -> Samples:
    """Return some examples of a rule: random ones, and what is beside them."""
    samples = Samples(rule, seed)
    samples.draw(_DRAWN, _DRAW_ATTEMPTS)
    samples.look_around(_BESIDE, _BESIDE_ATTEMPTS)
    if not samples.refuting:
        samples.challenge(vocabulary(rule), _FIRST_CHALLENGES)
    return samples


def _learn(samples: Samples, verdict: Verdict) -> None:
    """Add the verifier's counterexample to the examples."""
    if verdict.counterexample is not None:
        shapes = verdict.counterexample.shapes
        types = tuple(shapes[name] for name in tensor_vars(samples.rule))
        configuration = configured(samples.rule, types)
        if configuration is not None:
            samples.add(configuration)


def _refutation(samples: Samples, seed: int, trials: int) -> Verdict:
    """Return a verdict with a small counterexample, found by the verifier or among the examples."""
    verdict = verify_rule(samples.rule, seed=seed, trials=trials)
    if verdict.status == "unsound":
        return verdict
    example = samples.counterexample()
    reason = "the two sides differ" if example is None else example.summary()
    count = len(samples.examples)
    return Verdict(samples.rule.name, "unsound", verdict.evidence, count, reason, example)
