"""The rule language: text in, ``Rule`` values out, every mistake with its file and line.

A file is a list of rules::

    (rule relu-of-concat                      ; names are unique over all files
      (law "a function of each element commutes with concatenation")
      (each ?f relu tanh)                     ; one rule per value: relu-of-concat[relu], …
      (from (concat (?f ?a) (?f ?b) :axis ?axis))     ; one source, or two that share variables
      (let ?c (concat ?a ?b :axis ?axis))     ; a name for a term or a value, put in where it stands
      (to (?f ?c))                            ; one target per source
      (where (= (rank ?a) 4))                 ; what the law needs: all must hold
      (worth (< (size ?b) (size ?a)))         ; where rewriting can pay: a hint to the search, no more
      (ruleset cheap))                        ; names that a strategy may call it by, beside its file's

``(<=> LEFT RIGHT)`` instead of ``from`` and ``to`` is a rule in each direction, ``(optional ?b)`` an
operand that may be missing: see ``expansion``. ``(symmetric)``: the two sources may be exchanged, so that
each pair is rewritten once. ``(unsound)``: the law does not hold everywhere. ``(widened)``: it holds where
float16 is computed in float32.

Attributes that are not written have the operator's default. ``[1 1]`` is a tuple of constants,
``(list ?a 1)`` one that is computed. An operator in a source takes exactly the operands that are written.
Functions: see ``value_functions`` and ``tensor_functions``.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from relational_tensat.base.errors import RuleError, nearest
from relational_tensat.rules.expansion import DIRECTION, VARIANTS, PlainRule, expand_rule
from relational_tensat.rules.model import KNOWN, Expr, Rule
from relational_tensat.rules.syntax import Atom, Form, fail, has_form, read_forms
from relational_tensat.rules.terms import NAME, TermReader

_CLAUSES = (
    "law", "each", "from", "let", "to", "where", "worth", "ruleset", "symmetric", "unsound", "widened",
    DIRECTION, *VARIANTS,
)  # fmt: skip
_REPEATABLE = ("each", "let")
_REQUIRED = ("law", "from", "to")


#: So many sources may a rule have that is written by hand: subgraphs and their searches take pairs.
MOST_SOURCES = 2


def parse_rules(text: str, file: str, most_sources: int = MOST_SOURCES) -> list[Rule]:
    """Return the rules of a file's text, each for each variant and choice.

    Args:
        file: how messages and rules name the file.
        most_sources: that a rule may have. Those of kernels, which are applied once, may have more; they
            are a model's own, and may name weights of it.

    Raises:
        RuleError: the text is malformed; names file, line and reason.
    """
    rules: dict[str, Rule] = {}
    for syntax in read_forms(text, file):
        if not isinstance(syntax, Form) or syntax.head != "rule":
            fail(file, syntax.line, "expected (rule NAME …)")
        for rule in read_rule(file, syntax, most_sources):
            if rule.name in rules:
                first = rules[rule.name].line
                fail(file, rule.line, f"the rule {rule.name!r} is already defined in line {first}")
            rules[rule.name] = rule
    return list(rules.values())


def written_rule(text: str, name: str, file: str, line: int) -> Rule:
    """Return the rule that ``rule_text`` wrote, with its own name: ``NAME[…]``.

    Raises:
        RuleError: the text is something else.
    """
    plain = text.replace(f"(rule {name}", f"(rule {name.partition('[')[0]}", 1)
    (rule,) = parse_rules(plain, file, sys.maxsize)
    return replace(rule, name=name, line=line)


def read_rule(file: str, form: Form, most_sources: int = MOST_SOURCES) -> list[Rule]:
    """Return the rules that one ``(rule NAME …)`` stands for.

    Raises:
        RuleError: it is malformed; names file, line and reason.
    """
    _check_clauses(file, form)
    of_a_model = most_sources > MOST_SOURCES
    rules = [_read_plain(file, plain, of_a_model) for plain in expand_rule(file, form)]
    for rule in rules:
        if not 1 <= len(rule.sources) <= most_sources:
            fail(file, form.line, f"{rule.name}: {len(rule.sources)} sources, expected one or two")
    return rules


def _check_clauses(file: str, form: Form) -> None:
    """Refuse a rule without a name, clauses that do not exist, and ``<=>`` beside ``from``."""
    name = form.items[1] if len(form.items) > 1 else None
    if not isinstance(name, Atom) or not NAME.fullmatch(name.text):
        fail(file, form.line, "expected a name after 'rule': letters, digits, - _ .")
    heads: set[str] = set()
    for item in form.items[2:]:
        head = item.head if isinstance(item, Form) else ""
        if head not in _CLAUSES:
            label = head if isinstance(item, Form) else item.text
            fail(
                file, item.line, f"{name.text}: unknown clause {label!r}{nearest(label, _CLAUSES)}"
            )
        if head == DIRECTION and head in heads:
            fail(file, item.line, f"{name.text}: a second ({DIRECTION} …)")
        heads.add(head)
    if DIRECTION in heads and heads & {"from", "to"}:
        fail(file, form.line, f"{name.text}: ({DIRECTION} …) stands instead of (from …) and (to …)")


def _read_plain(file: str, plain: PlainRule, of_a_model: bool) -> Rule:
    """Read one variant of a rule; a message about a fault in it names only the fault."""
    try:
        return _RuleReader(file, plain, of_a_model).read()
    except RuleError as error:
        if not plain.variant:
            raise
        raise RuleError(f"{error} ({plain.name}, {plain.variant})") from error


class _RuleReader:
    """Reads one rule, clause by clause, in the order in which names become known."""

    def __init__(self, file: str, plain: PlainRule, of_a_model: bool) -> None:
        self._file = file
        self._plain = plain
        self._terms = TermReader(file, of_a_model=of_a_model)

    def read(self) -> Rule:
        """Return the rule."""
        name, line, terms = self._plain.name, self._plain.line, self._terms
        clauses = self._clauses()
        for required in _REQUIRED:
            if required not in clauses:
                fail(self._file, line, f"{name}: ({required} …) is missing")
        sources = tuple(terms.source(item) for item in clauses["from"][0].items[1:])
        for let in clauses.get("let", []):
            terms.let(let)
        targets = tuple(terms.target(item) for item in clauses["to"][0].items[1:])
        if len(targets) != len(sources):
            fail(
                self._file, clauses["to"][0].line,
                f"{name}: {len(targets)} targets for {len(sources)} sources, expected one each",
            )  # fmt: skip
        conditions, worth = (self._conditions(clauses, word) for word in ("where", "worth"))
        for part in (*targets, *conditions, *worth):
            terms.check_size(part, line, name)
        self._check_known(clauses)
        for unused in terms.scope.lets.keys() - terms.scope.used:
            fail(self._file, line, f"{name}: the name ?{unused} is never used")
        symmetric = "symmetric" in clauses
        if symmetric and len(sources) < 2:
            fail(self._file, line, f"{name}: (symmetric) is about two sources")
        form = clauses["law"][0]
        texts = [i.text for i in form.items[1:] if isinstance(i, Atom) and i.quoted]
        if len(texts) != 1 or len(form.items) != 2 or not texts[0].strip():
            fail(self._file, form.line, 'expected (law "…"), one line of text')
        law = texts[0]
        return Rule(
            name, law, sources, targets, conditions, worth, symmetric, "unsound" in clauses,
            self._rulesets(clauses), self._file, line, "widened" in clauses,
        )  # fmt: skip

    def _clauses(self) -> dict[str, list[Form]]:
        clauses: dict[str, list[Form]] = {}
        for item in self._plain.clauses:
            assert isinstance(item, Form)
            if item.head in clauses and item.head not in _REPEATABLE:
                fail(self._file, item.line, f"{self._plain.name}: a second ({item.head} …)")
            if item.head in ("symmetric", "unsound", "widened") and len(item.items) > 1:
                fail(self._file, item.line, f"{self._plain.name}: ({item.head}) takes nothing")
            clauses.setdefault(item.head, []).append(item)
        return clauses

    def _conditions(self, clauses: dict[str, list[Form]], word: str) -> tuple[Expr, ...]:
        items = (item for form in clauses.get(word, []) for item in form.items[1:])
        return tuple(self._terms.expr(item) for item in items)

    def _check_known(self, clauses: dict[str, list[Form]]) -> None:
        """Refuse ``(known ?x)`` anywhere but as one of the conditions of ``worth``."""
        for word, forms in clauses.items():
            for form in forms:
                for item in (item for item in form.items[1:] if isinstance(item, Form)):
                    is_plain = word == "worth" and item.head == KNOWN
                    if not is_plain and has_form(item, KNOWN):
                        fail(
                            self._file, item.line,
                            f"{self._plain.name}: ({KNOWN} …) stands in (worth …), by itself",
                        )  # fmt: skip

    def _rulesets(self, clauses: dict[str, list[Form]]) -> tuple[str, ...]:
        names = []
        for form in clauses.get("ruleset", []):
            for item in form.items[1:]:
                if not isinstance(item, Atom) or not NAME.fullmatch(item.text):
                    fail(self._file, item.line, "a ruleset's name is letters, digits, - _ .")
                names.append(item.text)
            if not names:
                fail(self._file, form.line, "expected (ruleset NAME …)")
        return tuple(names)
