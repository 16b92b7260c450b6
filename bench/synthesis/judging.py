"""What becomes of a candidate: refuted cheaply, repaired by a condition, verified, made general.

Thousands of candidates are tried, so what passes is tried harder than a rule that somebody wrote: on many
configurations first, which cost little, then by the checker with ``TRIALS``, and again once it is general.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bench.synthesis.conditions import (
    LawExample,
    drawn_examples,
    inferred_conditions,
    vocabulary_of,
)
from bench.synthesis.pair_terms import law_text, read_rule_text, replaced
from bench.synthesis.store import SynthesisStore
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.records import record
from relational_tensat.rules.functions import get_function
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Var, nodes_of
from relational_tensat.rules.soundness.rule_verification import judged
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.rules.text import rule_text
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue

#: Configurations that a candidate is refuted on, and that a found rule is verified on.
_CHEAP, TRIALS = 120, 400
#: So often a condition is sought again, beside the examples that refute the one before.
_ROUNDS = 5
_KEPT = ("act", "dtype", "shape")


@record
class JudgedPair:
    """What was found out about a candidate.

    Attributes:
        status: sound, refuted, untested.
        rule: with its conditions; general where that holds, too.
        verdict: of the checker; None where examples refuted it.
    """

    status: str
    rule: Rule
    note: str
    verdict: Verdict | None = None


def judged_pair(
    store: SynthesisStore, rule: Rule, seed: int = 0, trials: int = TRIALS
) -> JudgedPair:
    """Refute, repair, verify and generalize."""
    found = _sound(store, rule, seed, trials)
    if found.status == "sound" and not rule.is_multi:
        for wider, constants in generalizations(rule):
            of_wider = _sound(store, wider, seed, trials, constants)
            if of_wider.status == "sound":
                return of_wider
    return found


def _sound(
    store: SynthesisStore,
    rule: Rule,
    seed: int,
    trials: int,
    constants: Mapping[str, AttrValue] | None = None,
) -> JudgedPair:
    """Return what the checker says of a rule, or of it under the first condition that repairs it.

    Args:
        constants: values that variables stood for: a condition must allow these, and others, too.
    """
    examples = drawn_examples(rule, _CHEAP, seed)
    failing = sum(not example.holds for example in examples)
    if not failing:
        found = _verified(rule, seed, trials)
        return _of_floats(rule, seed, trials) or found if found.status == "refuted" else found
    words_of_rule = [word for word in vocabulary_of(rule) if _allows(word, constants or {})]
    for turn in range(1, _ROUNDS + 1):
        refuting: list[LawExample] = []
        for words in inferred_conditions(store, rule, examples, words_of_rule):
            repaired = with_conditions(rule, words)
            again = drawn_examples(repaired, _CHEAP, seed + turn)
            refuting += [example for example in again if not example.holds]
            if all(example.holds for example in again):
                found = _verified(repaired, seed, trials)
                if found.status == "sound":
                    return found
        if not refuting:
            break
        examples += refuting
    return JudgedPair("refuted", rule, f"fails on {failing} of {_CHEAP} examples")


def _of_floats(rule: Rule, seed: int, trials: int) -> JudgedPair | None:
    """Return the rule of floats only, if that is sound: integers overflow, or are cut off."""
    for name in tensor_vars(rule):
        found = _verified(with_conditions(rule, (Call("is-float", (Var(name),)),)), seed, trials)
        if found.status == "sound":
            return found
    return None


def _allows(word: Expr, constants: Mapping[str, AttrValue]) -> bool:
    """Whether a word leaves variables the constants that they stood for, and more than one number.

    Of a number, its sign may be asked for.
    """
    if not isinstance(word, Call):
        return True
    names = [arg.name for arg in word.args if isinstance(arg, Var) and arg.name in constants]
    others = [arg.value for arg in word.args if isinstance(arg, Literal)]
    if others and any(constants[name] == 0 for name in names):
        return False  # with its opposite, it would say that the variable is 0
    if any(isinstance(constants[name], float) for name in names) and (
        word.function == "=" or any(value != 0 for value in others)
    ):
        return False
    values = [
        constants[arg.name] if isinstance(arg, Var) and arg.name in constants
        else arg.value if isinstance(arg, Literal) else None
        for arg in word.args
    ]  # fmt: skip
    if not names or None in values:
        return True
    function = get_function(word.function)
    return (
        all(function.check(i)(value) for i, value in enumerate(values))
        and function.call(*values) is True
    )


def _verified(rule: Rule, seed: int, trials: int) -> JudgedPair:
    verdict = judged(rule, seed=seed, trials=trials, shrink=False)
    status = "refuted" if verdict.status == "unsound" else verdict.status
    return JudgedPair(status, rule, verdict.reason, verdict)


def with_conditions(rule: Rule, words: tuple[Expr, ...]) -> Rule:
    """Return a rule with more conditions."""
    return read_rule_text(rule_text(replace(rule, conditions=(*rule.conditions, *words), file="")))


def generalizations(rule: Rule) -> Iterator[tuple[Rule, Mapping[str, AttrValue]]]:
    """Yield the rule with constants of its source as variables: all of them, then one value at a time.

    With it come the constants, by the variables' names.
    """
    source = replaced(rule.sources[0], _written_out, {})
    target = replaced(rule.targets[0], _written_out, {})
    assert isinstance(source, Apply)
    rule = replace(rule, sources=(source,), targets=(target,))
    constants: dict[tuple[str, Literal], None] = {}
    for node in nodes_of(source):
        for name, value in node.attrs:
            if isinstance(value, Literal) and name not in _KEPT:
                constants.setdefault((name, value))
    every = [tuple(constants)] if len(constants) > 1 else []
    for group in (*every, *((constant,) for constant in constants)):
        names = {constant: Var(f"v{index}") for index, constant in enumerate(group)}
        try:
            wider = _with_variables(rule, names)
        except RelationalTensatError:
            continue  # the language takes no variable there
        yield wider, {variable.name: constant.value for (_, constant), variable in names.items()}


def _written_out(node: Apply) -> Apply:
    """Return an operator with the numbers that are its defaults, which may be others, too."""
    given = dict(node.attrs)
    numbers = [
        (attr.name, Literal(attr.default))
        for attr in get_operator(node.op).attrs
        if attr.name not in given and attr.kind == "float" and isinstance(attr.default, float)
        and math.isfinite(attr.default)
    ]  # fmt: skip
    return Apply(node.op, node.children, (*node.attrs, *numbers))


def _with_variables(rule: Rule, names: dict[tuple[str, Literal], Var]) -> Rule:
    def in_source(node: Apply) -> Apply:
        attrs = tuple(
            (name, names.get((name, value), value) if isinstance(value, Literal) else value)
            for name, value in node.attrs
        )
        return Apply(node.op, node.children, attrs)

    def in_target(node: Apply) -> Apply:
        attrs = tuple(
            (name, _computed(name, value, names) if isinstance(value, Literal) else value)
            for name, value in node.attrs
        )
        return Apply(node.op, node.children, attrs)

    source = replaced(rule.sources[0], in_source, {})
    target = replaced(rule.targets[0], in_target, {})
    assert isinstance(source, Apply)
    wider = replace(
        rule,
        sources=(source,),
        targets=(target,),
        conditions=(*rule.conditions, *_relations(names)),
        law=f"{law_text(source)} = {law_text(target)}",
        file="",
    )
    return read_rule_text(rule_text(wider))


def _relations(names: dict[tuple[str, Literal], Var]) -> Iterator[Expr]:
    """Yield what holds of constants that became variables: one is another's negative, or reciprocal."""
    floats = [
        (constant.value, variable)
        for (_, constant), variable in names.items()
        if isinstance(constant.value, float) and math.isfinite(constant.value)
    ]
    for (one, first), (other, second) in itertools.combinations(floats, 2):
        if first != second and one == -other:
            yield Call("=", (second, Call("*", (Literal(-1), first))))
        elif first != second and one and math.isclose(1 / one, other, rel_tol=1e-7):
            yield Call("close", (second, Call("/", (Literal(1), first))))


def _computed(name: str, value: Literal, names: dict[tuple[str, Literal], Var]) -> Expr:
    """Return a constant of the target as what computes it from those that became variables.

    Itself where nothing does; of two that do, the plainer.
    """
    if (name, value) in names:
        return names[name, value]
    if not isinstance(value.value, float):
        return value
    numbers = [
        (float(constant.value), variable)
        for (_, constant), variable in names.items()
        if isinstance(constant.value, float) and constant.value and math.isfinite(constant.value)
    ]
    for number, variable in numbers:
        for result, expression in (
            (number, variable),
            (-number, Call("*", (Literal(-1), variable))),
            (1 / number, Call("/", (Literal(1), variable))),
            (number * number, Call("*", (variable, variable))),
        ):
            if math.isclose(result, value.value, rel_tol=1e-7):
                return expression
    for (one, first), (other, second) in itertools.permutations(numbers, 2):
        for function, result in (("*", one * other), ("/", one / other), ("+", one + other)):
            if math.isclose(result, value.value, rel_tol=1e-7):
                return Call(function, (first, second))
    return value
