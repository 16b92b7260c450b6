"""The explanation of a run's result: every step from the original graph to the extracted one.

``Checker`` checks each step. It knows nothing of how the step was found: only the rule, and the graphs
before and after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.base.files import sql
from relational_tensat.egraph.database import FORMAT_VERSION
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredSignature
from relational_tensat.explain.laws import Side
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.replay import Replay
from relational_tensat.explain.rewrite import ReplacedTerm, RewriteStep
from relational_tensat.explain.state import RewrittenNode, State
from relational_tensat.explain.terms import Outputs, TermCosts, Terms
from relational_tensat.rules.instance import instantiate, tensor_vars
from relational_tensat.rules.model import Term as Pattern
from relational_tensat.rules.model import Var
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType


class Checker:
    """Checks steps over one collection of terms."""

    def __init__(self, terms: Terms, signatures: Mapping[int, StoredSignature]) -> None:
        self._terms = terms
        self._signatures = signatures
        self._signature_ids = {
            (s.symbol.op, s.symbol.attrs, s.operands): n for n, s in signatures.items()
        }
        self._typed = 0
        self._sound: dict[int, bool] = {}

    def check(self, step: RewriteStep) -> None:
        """Check that a step is one application of its rule, and that its graphs are of sound types.

        Raises:
            VerificationError: it is not; gives the reason.
        """
        sources, targets = self._sides(step)
        self._check_types()
        if not step.forward:
            sources, targets = targets, sources
        for replaced in step.replaced:
            if (sources[replaced.output], targets[replaced.output]) != (
                replaced.before,
                replaced.after,
            ):
                raise _wrong(step, "its rule says something else")
        pairs = {(replaced.before, replaced.after) for replaced in step.replaced}
        if not self._only_replaced(step.before, step.after, pairs):
            raise _wrong(step, "more has changed than what its rule replaces")

    def _check_types(self) -> None:
        """Check the terms that have been added: operators take operands of the types that they get."""
        for term in range(self._typed, len(self._terms)):
            signature, children = self._terms[term]
            stored = self._signatures[signature]
            operands = tuple(self._type(child) for child in children)
            if operands != stored.operands or not self._is_sound(signature):
                raise VerificationError(f"a term of {stored.symbol.op} has operands of other types")
        self._typed = len(self._terms)

    def _is_sound(self, signature: int) -> bool:
        """Whether an operator makes of its operands what the table says, inferred once."""
        if signature not in self._sound:
            stored = self._signatures[signature]
            attrs = dict(stored.symbol.attrs)
            result = get_operator(stored.symbol.op).infer(stored.operands, attrs)
            self._sound[signature] = result == stored.type
        return self._sound[signature]

    def _type(self, term: int) -> ValueType:
        return self._signatures[self._terms[term].signature].type

    def _sides(self, step: RewriteStep) -> tuple[list[int], list[int]]:
        """Return the terms that the rule's sources and targets are, with the step's operands put in."""
        rule = step.law.rule
        names = dict(zip(tensor_vars(rule), step.operands, strict=True))
        signatures = iter(step.law.signatures)
        sources = [self._source(source, names, signatures) for source in rule.sources]
        node_signatures = [self._signatures[signature_id] for signature_id in step.law.signatures]
        instance = instantiate(
            rule,
            [(s.symbol.op, dict(s.symbol.attrs)) for s in node_signatures],
            tuple(self._type(term) for term in step.operands),
            tuple(self._type(source) for source in sources),
        )
        if instance is None:
            raise _wrong(step, "its rule does not apply to such operands")
        values = list(step.operands)
        for node in instance.nodes:
            signature = self._signature_ids[node.op, node.attrs, node.operand_types]
            values.append(self._terms.id_of(signature, [values[child] for child in node.children]))
        return sources, [values[root] for root in instance.roots]

    def _source(self, pattern: Pattern, names: Mapping[str, int], signatures: Iterator[int]) -> int:
        """Return the term of a source; its nodes take the signatures in pre-order."""
        if isinstance(pattern, Var):
            return names[pattern.name]
        signature = next(signatures)
        children = [self._source(child, names, signatures) for child in pattern.children]
        return self._terms.id_of(signature, children)

    def _only_replaced(
        self, before: Outputs, after: Outputs, pairs: Collection[tuple[int, int]]
    ) -> bool:
        """Whether two graphs are the same but for replaced terms, at some or all of their uses."""
        pending = list(zip(before, after, strict=True))
        visited = set(pending)
        while pending:
            old, new = pending.pop()
            if old == new or (old, new) in pairs:
                continue
            a, b = self._terms[old], self._terms[new]
            if a.signature != b.signature:
                return False
            pairs_below = set(zip(a.children, b.children, strict=True)) - visited
            visited |= pairs_below
            pending += pairs_below
        return True


def _wrong(step: RewriteStep, reason: str) -> VerificationError:
    return VerificationError(
        f"a step of the explanation by {step.law.rule.name!r} is wrong: {reason}"
    )


#: More steps than this are no explanation.
MOST_STEPS = 20_000

#: Two graphs closer than this, relatively, cost the same.
COST_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Where a rule was applied.

    Attributes:
        tensor: the name of the value that it replaced; one made of operator and class, as in the
            optimized model, where the original graph does not have the value.
        near: for such a value, the nearest one of the original graph that is computed from it.
    """

    tensor: str
    near: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One application of one rule.

    Attributes:
        number: from 1.
        law: as the rule's file states it.
        backward: the law is read from right to left.
        at: the values that were replaced: one, or two for a rule of two sources.
        before, after: operators that the rule matched, and those that it put in their place.
        cost_us: modelled microseconds of the graph after the step.
        operators: how many of the graph's operators run at inference after the step.
    """

    number: int
    rule: str
    law: str
    backward: bool
    at: tuple[StepPlace, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    cost_us: float
    operators: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps, and the graphs between them.

    Attributes:
        model: its name.
        shared: values of the original graph that are computed by equal nodes, and so are one from the
            start: the name of each, first the one that stays.
        cost_original_us: of the original graph as it was given.
        cost_before_us: of the original graph with equal nodes shared.
        operators_before: how many of its operators run at inference.
        steps: in order.
        rewrites: the same as plain data, one for each step.
        terms: the meaning of the rewrites' numbers.
        original: the graph that the first step starts from.
        names: the original graph's values: their terms by name.
        stored: the run's tables.
        kept_original: why the run wrote the original all the same; "" where it did not, or is_cheaper says.
    """

    model: str
    shared: tuple[tuple[str, ...], ...]
    cost_original_us: float
    cost_before_us: float
    operators_before: int
    steps: tuple[ExplainedStep, ...]
    rewrites: tuple[RewriteStep, ...]
    terms: Terms
    original: Outputs
    names: Mapping[str, int]
    stored: StoredEGraph
    kept_original: str = ""

    @property
    def cost_after_us(self) -> float:
        """Modelled microseconds of the extracted graph."""
        return self.steps[-1].cost_us if self.steps else self.cost_before_us

    @property
    def is_cheaper(self) -> bool:
        """Whether a run prefers the extracted graph to the original one."""
        before, after = self.cost_original_us, self.cost_after_us
        if abs(after - before) > COST_TOLERANCE * before:
            return after < before
        return bool(self.steps) and self.steps[-1].operators < self.operators_before

    @property
    def result(self) -> Outputs:
        """The extracted graph."""
        return self.rewrites[-1].after if self.rewrites else self.original


def explain(
    connection: duckdb.DuckDBPyConnection,
    most_steps: int = MOST_STEPS,
    *,
    is_original: bool = False,
) -> Explanation:
    """Explain the last extraction of a run, and check every step.

    Args:
        is_original: ignore the extracted graph: the result is the original, after no step.

    Raises:
        InputError: the database is not one of a run, of another version, or nothing was extracted.
        NoSolutionError: no explanation was found within the limits.
        VerificationError: a step is no application of its rule.
    """
    meta = read_meta(connection)
    return _Explainer(StoredEGraph(connection), meta).run(0 if is_original else most_steps)


def read_meta(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return what a run's database records of itself; it is one of this version.

    Raises:
        InputError: it is not.
    """
    try:
        rows = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except duckdb.Error as error:
        raise InputError("not a database of a run: it has no table meta") from error
    version = rows.get("format_version", "none")
    if version != FORMAT_VERSION:
        raise InputError(
            f"the database has format {version}, expected {FORMAT_VERSION}: run the model again"
        )
    return rows


class _Explainer:
    def __init__(self, stored: StoredEGraph, meta: Mapping[str, str]) -> None:
        self._stored = stored
        self._meta = meta
        connection = stored.connection
        self._chosen = dict(connection.execute("SELECT class, enode FROM chosen").fetchall())
        if not self._chosen:
            raise InputError("no graph has been extracted from this database")
        self._graph = ProofGraph(stored)
        self._terms = Terms()
        self._costs = TermCosts(self._terms, stored)
        self._names: dict[int, list[str]] = {}  # by original e-node
        for name, enode in connection.execute("SELECT name, enode FROM original_value").fetchall():
            self._names.setdefault(enode, []).append(name)

    def run(self, most_steps: int) -> Explanation:
        nodes = self._original_nodes()
        rows = self._stored.connection.execute(sql("explain/output_nodes")).fetchall()
        state = State([nodes[index] for (index,) in rows], self._signature_of)
        term_of: dict[RewrittenNode, int] = {}
        state.add_terms(term_of, self._terms, nodes.values())
        terms = {name: term_of[node] for name, node in nodes.items()}
        original = tuple([term_of[node] for node in state.outputs])
        rewrites: list[RewriteStep] = []
        if most_steps:
            extracted = self._extracted()
            steps = Replay(self._graph, state, self._chosen, self._terms, most_steps).run()
            rewrites = without_detours(original, steps)
            self._check(original, rewrites, extracted)
        before_us, operators = self._costs.graph(original)
        return Explanation(
            model=self._meta.get("model", ""),
            shared=self._shared(terms),
            cost_original_us=sum(self._costs.term_us(term) for term in terms.values()),
            cost_before_us=before_us,
            operators_before=operators,
            steps=tuple(self._step(n, rewrite) for n, rewrite in enumerate(rewrites, start=1)),
            rewrites=tuple(rewrites),
            terms=self._terms,
            original=original,
            names={n: terms[enode] for enode, names in self._names.items() for n in names},
            stored=self._stored,
            kept_original=self._meta.get("kept_original", ""),
        )

    def _signature_of(self, form: int) -> int:
        return self._graph.nodes[form].signature

    def _original_nodes(self) -> dict[int, RewrittenNode]:
        """Return a node for every e-node of the original graph, by its first id."""
        nodes: dict[int, RewrittenNode] = {}
        for index, (form, children) in self._graph.original.items():
            operands = [nodes[child] for child in children]
            nodes[index] = RewrittenNode(form, operands, self._names.get(index, ()))
        return nodes

    def _shared(self, terms: Mapping[int, int]) -> tuple[tuple[str, ...], ...]:
        """Return the names of values that equal nodes compute."""
        groups: dict[int, list[str]] = {}
        for enode, term in terms.items():
            if self._terms[term].children:
                groups.setdefault(term, []).extend(self._names.get(enode, ()))
        return tuple(tuple(names) for names in groups.values() if len(names) > 1)

    def _check(self, original: Outputs, rewrites: list[RewriteStep], extracted: Outputs) -> None:
        """Check every step, and that the last one ends at what was extracted."""
        checker = Checker(self._terms, self._stored.signatures)
        graph = original
        for rewrite in rewrites:
            if rewrite.before != graph:
                raise VerificationError("a step of the explanation does not follow from the last")
            checker.check(rewrite)
            graph = rewrite.after
        if graph != extracted:
            raise VerificationError("the explanation ends at another graph than what was extracted")

    def _extracted(self) -> Outputs:
        term_of: dict[int, int] = {}
        ancestors: set[int] = set()
        rows = self._stored.connection.execute(sql("egraph/output_classes")).fetchall()
        outputs = [owner for _, owner in rows]
        stack = list(outputs)
        while stack:
            owner = stack[-1]
            if owner in term_of:
                stack.pop()
                continue
            if owner not in self._chosen:
                raise InputError("the extracted graph is not complete: an e-class has no e-node")
            node = self._stored.nodes[self._chosen[owner]]
            waiting = [child for child in node.children if child not in term_of]
            if not ancestors.isdisjoint(waiting):
                raise InputError("the extracted graph is cyclic")
            if waiting:
                ancestors.add(owner)
                stack.extend(waiting)
                continue
            stack.pop()
            term_of[owner] = self._terms.id_of(node.signature, [term_of[c] for c in node.children])
        return tuple([term_of[owner] for owner in outputs])

    def _step(self, index: int, rewrite: RewriteStep) -> ExplainedStep:
        law = rewrite.law
        sides = [law.source, law.target] if rewrite.forward else [law.target, law.source]
        before, after = (self._operators(side, rewrite) for side in sides)
        cost_us, operators = self._costs.graph(rewrite.after)
        return ExplainedStep(
            number=index,
            rule=law.rule.name,
            law=law.rule.law,
            backward=not rewrite.forward,
            at=tuple(self._place(replaced) for replaced in rewrite.replaced),
            before=before,
            after=after,
            cost_us=cost_us,
            operators=operators,
        )

    def _place(self, replaced: ReplacedTerm) -> StepPlace:
        if replaced.names:
            return StepPlace(replaced.names[0])
        op = self._stored.signatures[self._terms[replaced.after].signature].symbol.op
        return StepPlace(f"{op}_{replaced.owner}", replaced.near)

    def _operators(self, side: Side, rewrite: RewriteStep) -> tuple[str, ...]:
        """Return the operators of a side of a step, operands first; parts of tuples left out."""
        values = list(rewrite.operands)
        for signature, operands in side.nodes:
            values.append(self._terms.id_of(signature, [values[operand] for operand in operands]))
        operators = side.operators([replaced.output for replaced in rewrite.replaced])
        terms = dict.fromkeys(values[value] for value in operators)
        ops = [self._stored.signatures[self._terms[term].signature].symbol.op for term in terms]
        return tuple(op for op in ops if op != "part")


def without_detours(original: Outputs, rewrites: Iterable[RewriteStep]) -> list[RewriteStep]:
    """Return the steps without those after which a graph comes back that was there before."""
    steps: list[RewriteStep] = []
    place = {original: 0}  # of each graph on the way, how many steps lead to it
    for rewrite in rewrites:
        back = place.get(rewrite.after)
        if back is None:
            steps.append(rewrite)
            place[rewrite.after] = len(steps)
            continue
        for detour in steps[back:]:
            del place[detour.after]
        del steps[back:]
    return steps
