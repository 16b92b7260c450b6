"""The rule language: text in, ``Rule`` values out, every mistake with its file and line.

A file is a list of rules::

    (rule relu-of-concat                      ; names are unique over all files
      (law "a function of each element commutes with concatenation")
      (each ?f relu tanh)                     ; one rule per value: relu-of-concat[relu], …
      (from (concat (?f ?a) (?f ?b) :axis ?axis))     ; one source, or two that share variables
      (let ?c (concat ?a ?b :axis ?axis))     ; a name for a term or a value, put in where it stands
      (to (?f ?c))                            ; one target per source
      (where (= (rank ?a) 4))                 ; what the law needs: all must hold
      (worth (< (size ?b) (size ?a))))        ; where rewriting can pay: a hint to the search, no more

``(symmetric)``: the two sources may be exchanged, so that each pair is rewritten once.
``(unsound)``: the law does not hold everywhere. Attributes that are not written have the operator's
default. ``[1 1]`` is a tuple of constants, ``(list ?a 1)`` one that is computed. An operator in a
source takes exactly the operands that are written. Functions: see ``value_functions`` and
``tensor_functions``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError, UsageError, nearest
from relational_tensat.rules.functions import functions, get_function
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.rules.syntax import Atom, Form, Syntax, fail, read_forms, replace_atoms
from relational_tensat.tensor.operators import Attr, Operator, get_operator, operators
from relational_tensat.tensor.operators.base import REQUIRED
from relational_tensat.tensor.types import AttrValue

_CLAUSES = ("law", "each", "from", "let", "to", "where", "worth", "symmetric", "unsound")
_REPEATABLE = ("each", "let")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?inf")
#: Operators that no rule may speak of: they carry names, or what only ONNX knows the meaning of.
EXCLUDED = frozenset({"input", "weight", "opaque"})
#: A value of each kind, to complete attributes with where only the others are checked.
_SAMPLES: dict[str, AttrValue] = {
    "int": 1, "float": 1.0, "str": "", "bool": False, "ints": (1,), "floats": (1.0,),
    "dtype": "float32", "padding": "same", "any": 0,
}  # fmt: skip


def parse_rules(text: str, file: str) -> list[Rule]:
    """Return the rules of a file's text, ``each`` expanded.

    Args:
        file: how messages and rules name the file.

    Raises:
        RuleError: the text is malformed; names file, line and reason.
    """
    rules: dict[str, Rule] = {}
    for syntax in read_forms(text, file):
        if not isinstance(syntax, Form) or syntax.head != "rule":
            fail(file, syntax.line, "expected (rule NAME …)")
        for form, suffix in _expand(syntax, file):
            rule = _RuleReader(file, form, suffix).read()
            if rule.name in rules:
                first = rules[rule.name].line
                fail(file, rule.line, f"the rule {rule.name!r} is already defined in line {first}")
            rules[rule.name] = rule
    return list(rules.values())


def _expand(form: Form, file: str) -> Iterator[tuple[Form, str]]:
    """Yield the rule once per choice of values of its ``each`` clauses, with the choice as text."""
    choices: list[list[tuple[str, Atom]]] = []
    rest: list[Syntax] = []
    for item in form.items:
        if not isinstance(item, Form) or item.head != "each":
            rest.append(item)
            continue
        name = item.items[1] if len(item.items) > 1 else None
        values = item.items[2:]
        if not isinstance(name, Atom) or not name.is_variable or not values:
            fail(file, item.line, "expected (each ?name VALUE …)")
        atoms = [value for value in values if isinstance(value, Atom)]
        if len(atoms) != len(values):
            fail(file, item.line, f"each {name.text} takes words and numbers only")
        choices.append([(name.text, atom) for atom in atoms])
    bare = Form(rest, form.line)
    for variable in dict.fromkeys(name for values in choices for name, _ in values):
        if replace_atoms(bare, {variable: Atom("", 0)}) is bare:
            fail(file, form.line, f"each {variable} is never used")
    for choice in itertools.product(*choices):
        values_of: dict[str, Atom] = dict(choice)
        suffix = f"[{','.join(atom.text for atom in values_of.values())}]" if choice else ""
        yield replace_atoms(bare, values_of) if choice else bare, suffix


Bound: TypeAlias = "Apply | Call | Literal"


@dataclass
class _Scope:
    """What is known of a rule's variables while it is read."""

    tensors: set[str] = field(default_factory=set)
    attrs: set[str] = field(default_factory=set)
    lets: dict[str, Bound] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """All names that may be written."""
        return [f"?{name}" for name in (*self.tensors, *self.attrs, *self.lets)]


class _RuleReader:
    """Reads one rule, clause by clause, in the order in which names become known."""

    def __init__(self, file: str, form: Form, suffix: str) -> None:
        self._file = file
        self._form = form
        self._suffix = suffix
        self._scope = _Scope()

    def read(self) -> Rule:
        """Return the rule."""
        line = self._form.line
        name, clauses = self._clauses()
        for required in ("law", "from", "to"):
            if required not in clauses:
                fail(self._file, line, f"{name}: ({required} …) is missing")
        sources = tuple(self._source(item) for item in clauses["from"][0].items[1:])
        if not 1 <= len(sources) <= 2:
            fail(self._file, line, f"{name}: {len(sources)} sources, expected one or two")
        for let in clauses.get("let", []):
            self._let(let)
        targets = tuple(self._target(item) for item in clauses["to"][0].items[1:])
        if len(targets) != len(sources):
            fail(
                self._file, clauses["to"][0].line,
                f"{name}: {len(targets)} targets for {len(sources)} sources, expected one each",
            )  # fmt: skip
        conditions, worth = (self._conditions(clauses, word) for word in ("where", "worth"))
        for unused in self._scope.lets.keys() - self._scope.used:
            fail(self._file, line, f"{name}: the name ?{unused} is never used")
        symmetric = "symmetric" in clauses
        if symmetric and len(sources) != 2:
            fail(self._file, line, f"{name}: (symmetric) is about two sources")
        law = self._law(clauses["law"][0])
        return Rule(
            name, law, sources, targets, conditions, worth, symmetric, "unsound" in clauses,
            self._file, line,
        )  # fmt: skip

    def _clauses(self) -> tuple[str, dict[str, list[Form]]]:
        _, *rest = self._form.items
        first = rest[0] if rest else None
        if not isinstance(first, Atom) or not _NAME.fullmatch(first.text):
            fail(
                self._file, self._form.line, "expected a name after 'rule': letters, digits, - _ ."
            )
        found: dict[str, list[Form]] = {}
        for item in rest[1:]:
            if not isinstance(item, Form) or item.head not in _CLAUSES:
                what = item.head if isinstance(item, Form) else item.text
                hint = nearest(what, _CLAUSES)
                fail(self._file, item.line, f"{first.text}: unknown clause {what!r}{hint}")
            if item.head in found and item.head not in _REPEATABLE:
                fail(self._file, item.line, f"{first.text}: a second ({item.head} …)")
            if item.head in ("symmetric", "unsound") and len(item.items) > 1:
                fail(self._file, item.line, f"{first.text}: ({item.head}) takes nothing")
            found.setdefault(item.head, []).append(item)
        return first.text + self._suffix, found

    def _conditions(self, clauses: dict[str, list[Form]], word: str) -> tuple[Expr, ...]:
        return tuple(self._expr(item) for form in clauses.get(word, []) for item in form.items[1:])

    def _law(self, form: Form) -> str:
        texts = [i.text for i in form.items[1:] if isinstance(i, Atom) and i.quoted]
        if len(texts) != 1 or len(form.items) != 2 or not texts[0].strip():
            fail(self._file, form.line, 'expected (law "…"), one line of text')
        return texts[0]

    # --- terms ---

    def _source(self, syntax: Syntax) -> Apply:
        if isinstance(syntax, Atom):
            fail(self._file, syntax.line, f"the source {syntax.text!r} is no operator's term")
        operator, children, attrs = self._application(syntax)
        terms: list[Term] = []
        for child in children:
            if isinstance(child, Atom):
                terms.append(self._bind(child, self._scope.tensors, self._scope.attrs))
            else:
                terms.append(self._source(child))
        written: dict[str, Expr] = {}
        for key, value in attrs.items():
            if isinstance(value, Atom) and value.is_variable:
                written[key] = self._bind(value, self._scope.attrs, self._scope.tensors)
            else:
                written[key] = self._constant(value)
        return Apply(operator.name, tuple(terms), self._checked(operator, written, syntax.line))

    def _bind(self, atom: Atom, mine: set[str], others: set[str]) -> Var:
        name = self._variable(atom)
        if name in others:
            fail(self._file, atom.line, f"?{name} stands for a tensor and for an attribute")
        mine.add(name)
        return _var(name)

    def _target(self, syntax: Syntax) -> Term:
        if isinstance(syntax, Atom):
            name = self._variable(syntax)
            bound = self._known(name, syntax.line)
            if isinstance(bound, Apply):
                return bound
            if bound is not None or name in self._scope.attrs:
                fail(self._file, syntax.line, f"?{name} is a value, expected a tensor")
            return _var(name)
        operator, children, attrs = self._application(syntax)
        terms = tuple(self._target(child) for child in children)
        written = {key: self._expr(value) for key, value in attrs.items()}
        for key, value in written.items():
            if isinstance(value, Var) and value.name in self._scope.tensors:
                where = attrs[key].line
                fail(self._file, where, f":{key} ?{value.name} is a tensor, expected a value")
        return Apply(operator.name, terms, self._checked(operator, written, syntax.line))

    def _application(self, form: Form) -> tuple[Operator, list[Syntax], dict[str, Syntax]]:
        """Split ``(op operand … :key value …)`` into its parts; check operator and arity."""
        if form.square or not form.head:
            fail(self._file, form.line, "expected (OPERATOR operand … :attribute value …)")
        if form.head in EXCLUDED:
            fail(self._file, form.line, f"the operator {form.head!r} cannot be used in rules")
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
            operator = get_operator(form.head)
            operator.check_arity(len(children))
        except (UsageError, ShapeError) as error:
            fail(self._file, form.line, str(error))
        return operator, children, attrs

    def _checked(
        self, operator: Operator, written: dict[str, Expr], line: int
    ) -> tuple[tuple[str, Expr], ...]:
        """Return attributes in declared order; constants are checked and made canonical."""
        if not written and all(attr.default is not REQUIRED for attr in operator.attrs):
            return ()
        values: dict[str, AttrValue] = {}
        declared = operator.declared
        for key, value in written.items():
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
            (key, Literal(normal[key]) if isinstance(written[key], Literal) else written[key])
            for key in declared
            if key in written
        )

    # --- values ---

    def _let(self, form: Form) -> None:
        if len(form.items) != 3:
            fail(self._file, form.line, "expected (let ?name TERM)")
        _, atom, value = form.items
        if not isinstance(atom, Atom):
            fail(self._file, form.line, "expected (let ?name TERM)")
        name = self._variable(atom)
        if name in self._scope.tensors | self._scope.attrs | self._scope.lets.keys():
            fail(self._file, atom.line, f"?{name} already has a meaning")
        if isinstance(value, Form) and not value.square and value.head not in functions():
            if value.head not in operators():
                hint = nearest(value.head, [*operators(), *functions()])
                fail(self._file, value.line, f"unknown operator or function {value.head!r}{hint}")
            bound: Term | Expr = self._target(value)
        else:
            bound = self._expr(value)
        if isinstance(bound, Var):
            fail(self._file, form.line, f"?{name} would only be another name for ?{bound.name}")
        self._scope.lets[name] = bound

    def _expr(self, syntax: Syntax) -> Expr:
        if isinstance(syntax, Atom) and syntax.is_variable:
            name = self._variable(syntax)
            bound = self._known(name, syntax.line)
            if isinstance(bound, Apply):
                fail(self._file, syntax.line, f"?{name} is a term, expected a value")
            return _var(name) if bound is None else bound
        if isinstance(syntax, Atom) or syntax.square:
            return self._constant(syntax)
        return self._call(syntax)

    def _call(self, form: Form) -> Call:
        try:
            known = get_function(form.head)
        except UsageError as error:
            fail(self._file, form.line, str(error))
        args = tuple(self._expr(item) for item in form.items[1:])
        if not known.takes(len(args)):
            fail(self._file, form.line, f"{len(args)} arguments, expected {known.signature}")
        for index, arg in enumerate(args):
            kind = known.kind(index)
            is_tensor = isinstance(arg, Var) and arg.name in self._scope.tensors
            if is_tensor != (kind == "tensor"):
                expected = "a tensor's variable" if kind == "tensor" else "no tensor"
                fail(
                    self._file, form.line, f"argument {index + 1} of {known.signature}: {expected}"
                )
            if isinstance(arg, Literal) and not known.check(index)(arg.value):
                fail(self._file, form.line, f"{arg.value!r} is no {kind}, in {known.signature}")
        return Call(known.name, args)

    def _constant(self, syntax: Syntax) -> Literal:
        if isinstance(syntax, Form):
            if not syntax.square:
                fail(self._file, syntax.line, "expected a constant or ?variable")
            return Literal(tuple(self._constant(item).value for item in syntax.items))
        if syntax.is_variable or syntax.is_keyword:
            fail(self._file, syntax.line, f"{syntax.text!r} where a constant is expected")
        return Literal(syntax.text if syntax.quoted else _constant_of(syntax.text))

    def _variable(self, atom: Atom) -> str:
        name = atom.text[1:]
        if not atom.is_variable or not _is_name(name):
            fail(self._file, atom.line, f"{atom.text!r} where a ?variable is expected")
        return name

    def _known(self, name: str, line: int) -> Bound | None:
        """Return what a name stands for, None for a variable; refuse names that nothing binds."""
        scope = self._scope
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
    return _NAME.fullmatch(text) is not None


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
