"""Laws of two sources: two terms that are the two parts of one tensor, as TASO's multi-pattern rules.

Both parts of one cut are terms; each has the fingerprint of a class that needs no cut. That is one join.
Where a cut goes is known by the sources: sizes become dims of their variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.synthesis.candidates import Law, OperatorCost, TermReaderOfTables, cost_us_of
from bench.synthesis.pair_terms import (
    first_names,
    is_degenerate,
    law_text,
    read_rule_text,
    replaced,
    with_names,
)
from bench.synthesis.store import SynthesisStore
from relational_tensat.rules.model import (
    Apply,
    Call,
    Expr,
    Literal,
    Rule,
    Term,
    Var,
    nodes_of,
    rule_text,
    term_text,
    variables_of,
)
from relational_tensat.tensor.types import TensorType

_NO_CLASS = -1
#: Operators that cut, and numbers, whose shapes a rule would have to say.
_LEFT_OUT = ("split", "part", "fill")


def laws_of_two(
    store: SynthesisStore, setting: int, cost_us: OperatorCost, cheaper: bool
) -> Iterator[Law]:
    """Yield the laws of two sources of a setting; no model is known to have them.

    Args:
        cheaper: only those whose targets cost less than the sources, on the setting's types.
    """
    reader, inputs = TermReaderOfTables(store, setting), store.inputs(setting)
    for one, other, cut, *classes in store.rows("pairs_of_two", setting=setting):
        sources = reader.term(*classes[:4]), reader.term(*classes[4:])
        targets = tuple(reader.term(symbol, cut, _NO_CLASS, _NO_CLASS) for symbol in (one, other))
        saved_us = cost_us_of(sources, inputs, cost_us) - cost_us_of(targets, inputs, cost_us)
        if _say_something(sources, targets) and (saved_us > 0 or not cheaper):
            names = first_names(*sources, *targets)
            law = " = ".join(
                " & ".join(term_text(with_names(term, names)) for term in side)
                for side in (sources, targets)
            )
            found, put = (" ".join(map(term_text, side)) for side in (sources, targets))
            yield found, put, law, saved_us, _NO_CLASS, 0.0, "{}"


def _say_something(sources: Sequence[Term], targets: Sequence[Term]) -> bool:
    terms = (*sources, *targets)
    return (
        set(variables_of(*targets)) == set(variables_of(*sources))
        and not any(node.op in _LEFT_OUT for term in sources for node in nodes_of(term))
        and not any(node.op == "fill" for term in targets for node in nodes_of(term))
        and not any(map(is_degenerate, terms))
    )


def rule_of_two(name: str, written: Rule, inputs: Mapping[str, TensorType]) -> Rule | None:
    """Return the rule of a law: variables renamed, sizes of parts computed; None where no dim is one.

    Args:
        written: with the setting's inputs as variables.
        inputs: their types.
    """
    names = first_names(*written.sources, *written.targets)
    own = [variables_of(source) for source in written.sources]
    sizes = [dict[int, Expr](), dict[int, Expr]()]
    for side, other, known in zip(own, reversed(own), sizes, strict=True):
        for variable in sorted(side, key=lambda each: each in other):  # its own before shared ones
            shape = inputs[variable].shape
            for axis in range(len(shape) - 1, -1, -1):
                place = Literal(axis - len(shape))
                known.setdefault(shape[axis], Call("dim", (Var(names[variable]), place)))
    missing = False

    def placed(node: Apply) -> Apply:
        nonlocal missing
        lengths = dict(node.attrs).get("sizes")
        if node.op != "split" or not isinstance(lengths, Literal):
            return node
        dims = [known.get(size) for size, known in zip(lengths.value, sizes, strict=True)]  # type: ignore[arg-type]
        missing = missing or None in dims
        computed = Call("list", tuple(dim for dim in dims if dim is not None))
        attrs = tuple((key, computed if key == "sizes" else value) for key, value in node.attrs)
        return Apply(node.op, node.children, attrs)

    sources = tuple(with_names(source, names) for source in written.sources)
    targets = tuple(replaced(target, placed, names) for target in written.targets)
    if missing:
        return None
    cut = next(node for node in nodes_of(targets[0]) if node.op == "split")
    law = f"{' & '.join(map(law_text, sources))} = the parts of {law_text(cut.children[0])}"
    return read_rule_text(rule_text(Rule(name, law, sources, targets)))  # type: ignore[arg-type]
