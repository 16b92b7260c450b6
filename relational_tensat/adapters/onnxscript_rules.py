"""Rules of this program that onnxscript's rewriter runs.

    from onnxscript.rewriter import RewriteRuleSet
    from relational_tensat.adapters.onnxscript_rules import export_rules

    RewriteRuleSet(export_rules().rules).apply_to_model(model)

A rule has that form where it has one source, each of whose operators is one node of ONNX. The pattern is
the shape of the source (``onnxscript_source``). All else is asked when it matches, by the code of a search.
That is the meaning of the nodes, the rule's conditions for their types, the nodes to write instead, and
whether a constant is extreme. Where something is not known, a type above all, the rule does not fire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import onnx
import onnx_ir
from onnxscript.rewriter import MatchContext, RewriteRule

from relational_tensat.adapters.ir_nodes import (
    IrEmitter,
    NoFormError,
    data_of,
    is_known,
    set_type,
    type_of,
)
from relational_tensat.adapters.onnxscript_source import RuleSource, op_types
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.explore.match.conditions import ill_conditioned
from relational_tensat.explore.match.extremes import rounds_otherwise
from relational_tensat.formats import from_onnx_model
from relational_tensat.rules.instance import Instance, instantiate, source_nodes
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Apply, Literal, Rule, Term, nodes_of
from relational_tensat.rules.soundness.store import check_trust
from relational_tensat.tensor.floats import is_extreme
from relational_tensat.tensor.operators import get_operator, operators
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.types import tensors_of

#: Operators are written for versions of ONNX's from this one on.
_OLDEST_OPSET = 13


@dataclass(frozen=True, slots=True)
class ExportedRules:
    """Rules in onnxscript's form.

    Attributes:
        rules: with the names of ours; several of one name: where operands may be exchanged, and where its
            last operator may be one of several nodes.
        left_out: by rule, why it has no such form.
    """

    rules: tuple[RewriteRule, ...]
    left_out: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The rules that are there, each once."""
        return tuple(dict.fromkeys(str(rule.name) for rule in self.rules))


def export_rules(rules: Sequence[Rule] | None = None, *, shrinking: bool = True) -> ExportedRules:
    """Return rules for onnxscript's rewriter, as far as they have its form.

    Args:
        rules: of this program; by default those that ship.
        shrinking: only rules whose result has fewer nodes: with these, rewriting ends. The rewriter knows
            no costs, so of all the others one picks some by their names.

    Raises:
        RuleError: a rule was not found to be sound.
    """
    rules = load_rules() if rules is None else rules
    check_trust(rules)
    exported: list[RewriteRule] = []
    left_out: dict[str, str] = {}
    for rule in rules:
        reason = _reason_against(rule)
        if not reason and shrinking and not _shrinks(rule):
            reason = "its result has as many nodes"
        if reason:
            left_out[rule.name] = reason
            continue
        rewriting = _Rewriting(rule, shrinking=shrinking)
        for exchanged, root in product(rewriting.source.orders(), op_types(rule.sources[0])):
            pattern = rewriting.source.pattern(root, exchanged)
            exported.append(RewriteRule(pattern, rewriting.write, rewriting.holds, name=rule.name))
    return ExportedRules(tuple(exported), left_out)


def _reason_against(rule: Rule) -> str:
    """Return why a rule has no form of onnxscript's; "" where it has."""
    if rule.is_multi:
        return "it has several sources"
    if rule.widened:
        return "it is true where float16 is computed in float32"
    for node in source_nodes(rule):
        if node.op != "fill" and not op_types(node):
            return f"{node.op} is no operator of ONNX"
        for name, value in node.attrs:
            if name == "act" and value != Literal(NO_ACTIVATION) and isinstance(value, Literal):
                return f"no node of ONNX is a {node.op} with {value.value}"
            if node.op == "part" and not isinstance(value, Literal):
                return "it takes any part of a tuple"
        if node.op != "part" and any(map(_is_tuple, node.children)):
            return "an operand is a tuple"
    if _is_tuple(rule.sources[0]) or _is_tuple(rule.targets[0]):
        return "it is of tuples"
    return ""


def _is_tuple(term: Term) -> bool:
    return isinstance(term, Apply) and (get_operator(term.op).multi_output or term.op == "noop")


def _shrinks(rule: Rule) -> bool:
    return len(_nodes(rule.targets[0])) < len(_nodes(rule.sources[0]))


def _nodes(term: Term) -> set[Apply]:
    """Return the operators that are nodes of ONNX."""
    return {node for node in nodes_of(term) if node.op not in ("fill", "part")}


class _Rewriting:
    """The two calls that onnxscript makes to a rule: does it hold for a match, and which nodes replace
    it?"""

    def __init__(self, rule: Rule, *, shrinking: bool) -> None:
        self.source = RuleSource(rule)
        self._rule, self._shrinking = rule, shrinking
        self._rounds = rounds_otherwise(rule)
        #: Of the last match that it holds for: the nodes that are written, for which version, in place of
        #: how many.
        self._found: tuple[Instance, int, int] | None = None

    def holds(self, context: MatchContext, **bound: Any) -> bool:
        """Whether the rule may rewrite what was matched."""
        self._found = None
        opset = int(context.graph_or_function.opset_imports.get("", 0))
        if not _OLDEST_OPSET <= opset <= onnx.defs.onnx_opset_version():
            return False
        if context.root.op_type == "Identity":  # what is written for an operand: it has no end else
            return False
        read = self.source.read(bound, opset)
        if read is None:
            return False
        if not all(is_known(self.source.value(name, bound)) for name in self._rule.known):
            return False
        instance = instantiate(self._rule, read.symbols, read.var_types, (read.result,))
        if instance is None:
            return False
        constants = self.source.leaves(bound)
        if self._rounds and _meets_extremes(context.model, constants):
            return False
        self._found = instance, opset, len(context.nodes)
        return True

    def write(self, op: Any, **bound: Any) -> Any:
        """Write what the rule says; None where that takes as many nodes, or others than ONNX's."""
        assert self._found is not None  # ``holds`` was asked before
        instance, opset, replaced = self._found
        emitter = IrEmitter(op, opset)
        values = [[emitter.named(value)] for value in self.source.operands(bound)]
        try:
            for node in instance.nodes:
                inputs = [name for child in node.children for name in values[child]]
                results = get_operator(node.op).to_onnx(
                    inputs, node.operand_types, node.type, dict(node.attrs), emitter
                )
                for name, kind in zip(results, tensors_of(node.type), strict=True):
                    if name not in inputs:
                        set_type(emitter.values[name], kind)
                values.append(results)
        except NoFormError:
            return None
        if self._shrinking and emitter.count >= replaced:
            return None
        (root,) = values[instance.roots[0]]
        result = emitter.values[root]
        producer = result.producer()
        is_made = producer in op.nodes and producer.op_type != "Constant"
        return result if is_made else op.Identity(result)  # the rewriter renames what it is given


#: Keys of the notes in a model, and in a constant.
_NOTED, _EXTREME = "relational_tensat.ill_conditioned", "relational_tensat.is_extreme"


def _meets_extremes(model: onnx_ir.Model, values: Iterable[onnx_ir.Value]) -> bool:
    """Whether some of these values may be extreme, or cost the model its digits.

    They may where they are made of such constants by operators that keep the size of elements.
    """
    seen: set[onnx_ir.Value] = set()
    left = list(values)
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.const_value is not None and _is_harmful(model, value):
            return True
        node = value.producer()
        if node is not None and node.op_type in _keeping():
            left += [operand for operand in node.inputs if operand is not None]
    return False


def _is_harmful(model: onnx_ir.Model, constant: onnx_ir.Value) -> bool:
    kind = type_of(constant)
    if kind is None or not kind.is_float:
        return False
    tensor, is_found = constant.meta.get(_EXTREME, (None, False))
    if tensor is not constant.const_value:  # its elements are looked at once
        data = data_of(constant)  # what is not at hand is as what is computed
        is_found = data is not None and is_extreme(data, kind.dtype)
        constant.meta[_EXTREME] = constant.const_value, is_found
    if is_found:
        return True
    known = _ill_conditioned(model, constant)
    return known is None or constant.name in known


def _ill_conditioned(model: onnx_ir.Model, constant: onnx_ir.Value) -> frozenset[str] | None:
    """Return the constants that cost a model its digits; None where it cannot be read.

    The model is read once, as names stay while it is rewritten; again for a constant that came since.
    """
    seen, known = model.meta.get(_NOTED, (frozenset(), None))
    is_new = constant.is_initializer() and constant.name not in seen
    if _NOTED not in model.meta or is_new:
        seen = frozenset(model.graph.initializers)
        try:
            known = ill_conditioned(from_onnx_model(onnx_ir.to_proto(model)))
        except RelationalTensatError:
            known = None
        if is_new:  # of a graph within the model
            seen |= {constant.name}
        model.meta[_NOTED] = seen, known
    found: frozenset[str] | None = known
    return found


@cache
def _keeping() -> frozenset[str]:
    """Return the operators of ONNX whose results may be as large, or as small, as their operands."""
    return frozenset(
        name for each in operators().values() if each.keeps_size for name in (*each.onnx, "Mul")
    )
