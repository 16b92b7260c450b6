"""Terms and values of one rule: forms in, ``Apply``, ``Call`` and the like out.

A source says what its variables are: tensors where operands stand, values where attributes' values do.
Later text may mention these only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError, UsageError, nearest
from relational_tensat.rules.functions import functions, get_function
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Term, Var
from relational_tensat.rules.syntax import Atom, Form, Syntax, fail
from relational_tensat.tensor.operators import Attr, Operator, get_operator, operators
from relational_tensat.tensor.operators.attributes import REQUIRED
from relational_tensat.tensor.types import AttrValue

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?inf")
#: The most nodes of a rule, with each ``let`` written out wherever its name stands.
_MOST_PARTS = 10_000
#: A value of each kind, to complete attributes with where only the others are checked.
_SAMPLES: dict[str, AttrValue] = {
    "int": 1, "float": 1.0, "str": "", "bool": False, "ints": (1,), "floats": (1.0,),
    "dtype": "float32", "padding": "same", "any": 0,
}  # fmt: skip

Bound: TypeAlias = "Apply | Call | Literal"


@dataclass
class Scope:
    """The known variables of a rule while it is read."""

    tensors: set[str] = field(default_factory=set)
    attrs: set[str] = field(default_factory=set)
    lets: dict[str, Bound] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """All names that may be written."""
        return [f"?{name}" for name in (*self.tensors, *self.attrs, *self.lets)]


class TermReader:
    """Reads the terms and values of one rule, in the order in which names become known.

    Args:
        file: how messages name it.
        of_a_model: whether the rule is one of a model's own, which may name its tensors and opaque nodes.
    """

    def __init__(self, file: str, *, of_a_model: bool = False) -> None:
        self._file = file
        self._of_a_model = of_a_model
        self.scope = Scope()
        #: By identity, how large what was read is, and it, which keeps the identity.
        self._sizes: dict[int, tuple[int, Term | Expr]] = {}

    def source(self, syntax: Syntax) -> Apply:
        """Return a source; its variables are bound by it."""
        if isinstance(syntax, Atom):
            fail(self._file, syntax.line, f"the source {syntax.text!r} is no operator's term")
        operator, children, attrs = self._application(syntax)
        terms: list[Term] = []
        for child in children:
            if isinstance(child, Atom):
                terms.append(self._bind(child, self.scope.tensors, self.scope.attrs))
            else:
                terms.append(self.source(child))
        exprs: dict[str, Expr] = {}
        for key, value in attrs.items():
            if isinstance(value, Atom) and value.is_variable:
                exprs[key] = self._bind(value, self.scope.attrs, self.scope.tensors)
            else:
                exprs[key] = self._constant(value)
        return Apply(operator.name, tuple(terms), self._checked(operator, exprs, syntax.line))

    def _bind(self, atom: Atom, own_names: set[str], other_names: set[str]) -> Var:
        name = self._variable(atom)
        if name in other_names:
            fail(self._file, atom.line, f"?{name} stands for a tensor and for an attribute")
        own_names.add(name)
        return _var(name)

    def target(self, syntax: Syntax) -> Term:
        """Return a target, or what ``let`` names in one."""
        if isinstance(syntax, Atom):
            name = self._variable(syntax)
            meaning = self._known(name, syntax.line)
            if isinstance(meaning, Apply):
                return meaning
            if meaning is not None or name in self.scope.attrs:
                fail(self._file, syntax.line, f"?{name} is a value, expected a tensor")
            return _var(name)
        operator, children, attrs = self._application(syntax)
        terms = tuple(self.target(child) for child in children)
        exprs = {key: self.expr(value) for key, value in attrs.items()}
        for key, value in exprs.items():
            if isinstance(value, Var) and value.name in self.scope.tensors:
                line = attrs[key].line
                fail(self._file, line, f":{key} ?{value.name} is a tensor, expected a value")
        return Apply(operator.name, terms, self._checked(operator, exprs, syntax.line))

    def _application(self, form: Form) -> tuple[Operator, list[Syntax], dict[str, Syntax]]:
        """Split ``(op operand … :key value …)`` into its parts; check operator and arity."""
        if form.square or not form.head:
            fail(self._file, form.line, "expected (OPERATOR operand … :attribute value …)")
        operator = self._operator(form)
        children: list[Syntax] = []
        attrs: dict[str, Syntax] = {}
        items = iter(form.items[1:])
        for item in items:
            if not isinstance(item, Atom) or not item.is_keyword:
                children.append(item)
                continue
            value = next(items, None)
            if value is None or (isinstance(value, Atom) and value.is_keyword):
                fail(self._file, item.line, f"{form.head}: {item.text} has no value")
            if item.text[1:] in attrs:
                fail(self._file, item.line, f"{form.head}: {item.text} is given twice")
            attrs[item.text[1:]] = value
        try:
            operator.check_arity(len(children))
        except ShapeError as error:
            fail(self._file, form.line, str(error))
        return operator, children, attrs

    def _operator(self, form: Form) -> Operator:
        try:
            operator = get_operator(form.head)
        except UsageError as error:
            fail(self._file, form.line, str(error))
        if not (operator.in_rules or self._of_a_model):
            fail(self._file, form.line, f"the operator {form.head!r} cannot be used in rules")
        return operator

    def _checked(
        self, operator: Operator, exprs: dict[str, Expr], line: int
    ) -> tuple[tuple[str, Expr], ...]:
        """Return attributes in declared order; constants are checked and made canonical."""
        if not exprs and all(attr.default is not REQUIRED for attr in operator.attrs):
            return ()
        values: dict[str, AttrValue] = {}
        declared = operator.declared
        for key, value in exprs.items():
            if isinstance(value, Literal):
                values[key] = _as_kind(value.value, declared.get(key))
            elif key in declared:
                values[key] = _sample(declared[key])
            else:
                values[key] = 0  # refused by the operator, which names the nearest
        try:
            normal = operator.normalize(values)
        except ShapeError as error:
            fail(self._file, line, str(error))
        return tuple(
            (key, Literal(normal[key]) if isinstance(exprs[key], Literal) else exprs[key])
            for key in declared
            if key in exprs
        )

    # --- values ---

    def let(self, form: Form) -> None:
        """Take in ``(let ?name TERM)``."""
        if len(form.items) != 3:
            fail(self._file, form.line, "expected (let ?name TERM)")
        _, atom, value = form.items
        if not isinstance(atom, Atom):
            fail(self._file, form.line, "expected (let ?name TERM)")
        name = self._variable(atom)
        if name in self.scope.tensors | self.scope.attrs | self.scope.lets.keys():
            fail(self._file, atom.line, f"?{name} already has a meaning")
        if isinstance(value, Form) and not value.square and value.head not in functions():
            if value.head not in operators():
                hint = nearest(value.head, [*operators(), *functions()])
                fail(self._file, value.line, f"unknown operator or function {value.head!r}{hint}")
            meaning: Term | Expr = self.target(value)
        else:
            meaning = self.expr(value)
        if isinstance(meaning, Var):
            fail(self._file, form.line, f"?{name} would only be another name for ?{meaning.name}")
        self.check_size(meaning, form.line, f"?{name}")
        self.scope.lets[name] = meaning

    def check_size(self, meaning: Term | Expr, line: int, name: str) -> None:
        """Refuse what is too large once all that ``let`` names is put in."""
        if self._written_size(meaning) > _MOST_PARTS:
            reason = (
                f"{name} has more than {_MOST_PARTS} parts once names are put in, expected less"
            )
            fail(self._file, line, reason)

    def _written_size(self, meaning: Term | Expr) -> int:
        """Return how many operators, functions, variables and constants it is made of."""
        if isinstance(meaning, Var | Literal):
            return 1
        known = self._sizes.get(id(meaning))
        if known is None:
            parts: list[Term | Expr] = []
            if isinstance(meaning, Call):
                parts += meaning.args
            else:
                parts += [*meaning.children, *(value for _, value in meaning.attrs)]
            size = 1 + sum(self._written_size(part) for part in parts)
            known = self._sizes[id(meaning)] = size, meaning
        return known[0]

    def expr(self, syntax: Syntax) -> Expr:
        """Return a condition or a value that is computed."""
        if isinstance(syntax, Atom) and syntax.is_variable:
            name = self._variable(syntax)
            meaning = self._known(name, syntax.line)
            if isinstance(meaning, Apply):
                fail(self._file, syntax.line, f"?{name} is a term, expected a value")
            return _var(name) if meaning is None else meaning
        if isinstance(syntax, Atom) or syntax.square:
            return self._constant(syntax)
        return self._call(syntax)

    def _call(self, form: Form) -> Call:
        try:
            function = get_function(form.head)
        except UsageError as error:
            fail(self._file, form.line, str(error))
        args = tuple(self.expr(item) for item in form.items[1:])
        if not function.takes(len(args)):
            fail(self._file, form.line, f"{len(args)} arguments, expected {function.signature}")
        for index, arg in enumerate(args):
            kind = function.kind(index)
            is_tensor = isinstance(arg, Var) and arg.name in self.scope.tensors
            if is_tensor != (kind == "tensor"):
                expectation = "a tensor's variable" if kind == "tensor" else "no tensor"
                fail(
                    self._file,
                    form.line,
                    f"argument {index + 1} of {function.signature}: {expectation}",
                )
            if isinstance(arg, Literal) and not function.check(index)(arg.value):
                fail(self._file, form.line, f"{arg.value!r} is no {kind}, in {function.signature}")
        return Call(function.name, args)

    def _constant(self, syntax: Syntax) -> Literal:
        if isinstance(syntax, Form):
            if not syntax.square:
                fail(self._file, syntax.line, "expected a constant or ?variable")
            return Literal(tuple(self._constant(item).value for item in syntax.items))
        if syntax.is_variable or syntax.is_keyword:
            fail(self._file, syntax.line, f"{syntax.text!r} where a constant is expected")
        return Literal(syntax.text) if syntax.quoted else _constant(syntax.text)

    def _variable(self, atom: Atom) -> str:
        name = atom.text[1:]
        if not atom.is_variable or not _is_name(name):
            fail(self._file, atom.line, f"{atom.text!r} where a ?variable is expected")
        return name

    def _known(self, name: str, line: int) -> Bound | None:
        """Return what a name stands for, None for a variable; refuse names that nothing binds."""
        scope = self.scope
        if name in scope.lets:
            scope.used.add(name)
            return scope.lets[name]
        if name not in scope.tensors and name not in scope.attrs:
            hint = nearest(f"?{name}", scope.names())
            fail(self._file, line, f"the variable ?{name} is not bound by a source{hint}")
        return None


@cache
def _var(name: str) -> Var:
    """Return the variable of a name: rules have the same few over and over."""
    return Var(name)


@cache
def _is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


@cache
def _constant(text: str) -> Literal:
    """Return what a word or number stands for: rules have the same few over and over."""
    return Literal(_constant_of(text))


def _constant_of(text: str) -> AttrValue:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


def _as_kind(value: AttrValue, attr: Attr | None) -> AttrValue:
    """Return a constant as its attribute stores it: 1 as 1.0 where a float is meant."""
    if attr is not None and attr.kind == "float" and isinstance(value, int):
        return value if isinstance(value, bool) else float(value)
    return value


def _sample(attr: Attr) -> AttrValue:
    if attr.default is not REQUIRED:
        default: AttrValue = attr.default
        return default
    return attr.choices[0] if attr.choices else _SAMPLES[attr.kind]
