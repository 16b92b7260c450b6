"""What becomes of a candidate: refuted cheaply, repaired by a condition, verified, made general.

Thousands of candidates are tried, so what passes is tried harder than a rule that somebody wrote. A few
configurations refute most of what is false. What the laws prove is not tried further. The checker sees the
rest, as general as it becomes, and what passes is tried once more, on many configurations near and far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from bench.synthesis.conditions import (
    LawExample,
    drawn_examples,
    inferred_conditions,
    vocabulary_of,
)
from bench.synthesis.pair_terms import law_text, read_rule_text, replaced, with_literals
from bench.synthesis.store import SynthesisStore
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.records import record
from relational_tensat.rules.functions import get_function
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Var, nodes_of, rule_text
from relational_tensat.rules.soundness.rule_verification import judged
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue

#: Configurations that refute most of what is false; those that conditions are inferred from; the checker's.
_FEW, _CHEAP, _CHECKED = 30, 120, 80
#: Configurations that what is written is tried on.
TRIALS = 1000
#: So often a condition is sought again, beside the examples that refute the one before.
_ROUNDS = 5
_KEPT = ("act", "dtype", "shape")
#: The status of what needs no rule of its own.
DERIVED = "derived from the laws"


#: Variables that stand for values of attributes.
_Names: TypeAlias = Mapping[tuple[str, Literal], Var]
#: Values by the names of the variables that stand for them.
Constants: TypeAlias = Mapping[str, AttrValue]


@record
class JudgedPair:
    """What was found out about a candidate.

    Attributes:
        status: sound, refuted, untested.
        rule: with its conditions; general where that holds, too.
        verdict: of the checker; None where examples refuted it.
        trials: configurations that it holds on.
    """

    status: str
    rule: Rule
    note: str
    verdict: Verdict | None = None
    trials: int = 0


def judged_pair(
    store: SynthesisStore,
    rule: Rule,
    seed: int = 0,
    trials: int = TRIALS,
    is_derived: Callable[[Rule], bool] = lambda rule: False,
) -> JudgedPair:
    """Refute, derive, repair, verify and generalize.

    Args:
        is_derived: whether laws prove a rule, of which there is no need then.
    """
    is_plain = all(example.holds for example in _drawn(rule, _FEW, seed))
    if is_plain and is_derived(rule):
        return JudgedPair(DERIVED, rule, "")
    constants: Constants = {}
    found = _sound(store, rule, seed, constants)
    may_be_wider = found.status == "sound" and not rule.is_multi
    for general, of_general in generalizations(rule) if may_be_wider else ():
        wider = _sound(store, general, seed, of_general)
        if wider.status == "sound":
            found, constants = wider, of_general
            break
    for turn in range(1, _ROUNDS + 1):
        if found.status != "sound" or found.verdict is None:
            return found
        if len(found.rule.conditions) > len(rule.conditions) and is_derived(found.rule):
            return JudgedPair(DERIVED, found.rule, "")
        wide = list(_drawn(found.rule, trials, seed + turn))
        if all(example.holds for example in wide):
            return replace(found, trials=found.verdict.trials + len(wide))
        found = _repaired(store, found.rule, wide, seed + turn, constants)
    return JudgedPair("refuted", found.rule, "no condition repairs it for long")


def _drawn(rule: Rule, count: int, seed: int) -> Iterator[LawExample]:
    return itertools.islice(drawn_examples(rule, seed), count)


def _sound(store: SynthesisStore, rule: Rule, seed: int, constants: Constants) -> JudgedPair:
    """Return what the checker says of a rule, or of it under the first condition that repairs it."""
    found = JudgedPair("refuted", rule, "")
    if all(example.holds for example in _drawn(rule, _FEW, seed)):
        found = _verified(rule, seed)
        found = _of_floats(rule, seed) or found if found.status == "refuted" else found
        if found.status != "refuted":
            return found
    examples = list(_drawn(rule, _CHEAP, seed))
    refuted = not all(example.holds for example in examples)
    return _repaired(store, rule, examples, seed, constants) if refuted else found


def _repaired(
    store: SynthesisStore, rule: Rule, examples: list[LawExample], seed: int, constants: Constants
) -> JudgedPair:
    """Return a rule under the first condition that repairs it, or that none does.

    Args:
        examples: some of them refute it; what refutes conditions is added.
        constants: values that variables stood for: a condition must allow these, and others, too.
    """
    failing = sum(not example.holds for example in examples)
    note = f"fails on {failing} of {len(examples)} examples"
    vocabulary = [word for word in vocabulary_of(rule) if _allows(word, constants)]
    for turn in range(1, _ROUNDS + 1):
        refuting: list[LawExample] = []
        for words in inferred_conditions(store, rule, examples, vocabulary):
            repaired = with_conditions(rule, words)
            again = list(_drawn(repaired, _CHEAP, seed + turn))
            refuting += [example for example in again if not example.holds]
            if all(example.holds for example in again):
                found = _verified(repaired, seed)
                if found.status == "sound":
                    return found
        if not refuting:
            break
        examples += refuting
    return JudgedPair("refuted", rule, note)


def _of_floats(rule: Rule, seed: int) -> JudgedPair | None:
    """Return the rule of floats only, if that is sound: integers overflow, or are cut off."""
    for name in tensor_vars(rule):
        found = _verified(with_conditions(rule, (Call("is-float", (Var(name),)),)), seed)
        if found.status == "sound":
            return found
    return None


def _allows(word: Expr, constants: Constants) -> bool:
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


def _verified(rule: Rule, seed: int) -> JudgedPair:
    verdict = judged(rule, seed=seed, trials=_CHECKED, shrink=False)
    status = "refuted" if verdict.status == "unsound" else verdict.status
    return JudgedPair(status, rule, verdict.reason, verdict)


def with_conditions(rule: Rule, words: tuple[Expr, ...]) -> Rule:
    """Return a rule with more conditions."""
    return read_rule_text(rule_text(replace(rule, conditions=(*rule.conditions, *words), file="")))


def generalizations(rule: Rule) -> Iterator[tuple[Rule, Constants]]:
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


def _with_variables(rule: Rule, names: _Names) -> Rule:
    source = with_literals(rule.sources[0], lambda name, value: names.get((name, value), value))
    target = with_literals(rule.targets[0], lambda name, value: _computed(name, value, names))
    assert isinstance(source, Apply)
    conditions = (*rule.conditions, *_relations(names))
    law = f"{law_text(source)} = {law_text(target)}"
    return read_rule_text(rule_text(Rule(rule.name, law, (source,), (target,), conditions)))


def _relations(names: _Names) -> Iterator[Expr]:
    """Yield what holds of constants that became variables: one is another's negative, or reciprocal."""
    for (one, first), (other, second) in itertools.combinations(_floats(names), 2):
        if first != second and one == -other:
            yield Call("=", (second, Call("*", (Literal(-1), first))))
        elif first != second and one and math.isclose(1 / one, other, rel_tol=1e-7):
            yield Call("close", (second, Call("/", (Literal(1), first))))


def _floats(names: _Names) -> list[tuple[float, Var]]:
    return [
        (constant.value, variable)
        for (_, constant), variable in names.items()
        if isinstance(constant.value, float) and math.isfinite(constant.value)
    ]


def _computed(name: str, value: Literal, names: _Names) -> Expr:
    """Return a constant of the target as what computes it from those that became variables.

    Itself where nothing does; of two that do, the plainer.
    """
    if (name, value) in names:
        return names[name, value]
    if not isinstance(value.value, float):
        return value
    numbers = [(number, variable) for number, variable in _floats(names) if number]
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
