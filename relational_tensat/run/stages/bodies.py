"""Bodies of If, Loop and Scan are optimized as models of their own; rules put the results into the e-graph.

A body's own run is one like the model's, with bodies in it in turn, by modelled costs. Its rule says that
the node with its bodies equals the node with the results, at all sizes of the model. So it is explained,
replayed, drawn and left out like any other rule; and the whole is compared as any result is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from relational_tensat.base.deadline import now_s
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.egraph.enode_rows import gathered
from relational_tensat.formats.onnx_bodies import (
    Body,
    bodies_of,
    count_nodes,
    has_bodies,
    with_bodies,
)
from relational_tensat.formats.onnx_metadata import read_imports, written_imports
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.formats.onnx_origin import is_same
from relational_tensat.rules.model import Apply, Literal, Rule, Var
from relational_tensat.run.options import LOW, Options
from relational_tensat.run.progress import Silent
from relational_tensat.run.reports import BodyRewrite
from relational_tensat.run.request import Run
from relational_tensat.run.values import Model
from relational_tensat.tensor import Graph, Node, TensorType, Weight, tensors_of

if TYPE_CHECKING:
    from relational_tensat.run.result import Result

#: The family of these rules, and the file that they would stand in.
FAMILY = "bodies"
BODIES_FILE = f"{FAMILY}.rules"
#: Bodies with more bytes are left as they are: they are in rules and in the tables.
_MOST_BYTES = 4 << 20
#: Of one node nothing becomes less.
_FEWEST_NODES = 2
#: The most seconds for all bodies together, those within others included; a body that has begun is ended.
_MOST_S = 20.0
_LATE = ": the time for bodies was over"
#: When the time for bodies is over, by ``now_s``.
_end_s: ContextVar[float] = ContextVar("_end_s", default=math.inf)
_EXPLORATION_S, _EXTRACTION_S = 4.0, 2.0
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 40
#: A law is one line of text, between quotation marks.
_NOT_IN_LAWS = re.compile(r"[\x00-\x1f\"\\]")
_STEPS_SHOWN = 12


def rewrite_bodies(run: Run, model: Model) -> tuple[list[BodyRewrite], str]:
    """Optimize the bodies of a model's nodes; return what became of them, and a note, "" for none.

    Equal nodes have equal bodies: the rule is one for all of them. Constants from outside are known inside,
    if they are the same wherever the bodies are.
    """
    nodes = _nodes_with_bodies(model.graph)
    rewrites: list[BodyRewrite] = []
    results: dict[bytes, Result | None] = {}
    n_late = 0
    outer_end_s = _end_s.get()  # of the bodies that these are within
    before = _end_s.set(min(outer_end_s, now_s() + _MOST_S))
    try:
        for own in nodes:
            body_run = _BodyRun(run, model, own, results)
            with run.phases.phase("bodies"):
                rewrite = body_run.rewrite(len(rewrites) + 1)
            n_late += body_run.is_late
            if rewrite is not None:
                rewrites.append(rewrite)
    finally:
        _end_s.reset(before)
    plural = "s" * (n_late != 1)
    note = f"bodies of {n_late} node{plural} are as they were{_LATE}"
    return rewrites, note if n_late else ""


def _nodes_with_bodies(graph: Graph) -> list[list[Node]]:
    """Return the nodes of a graph that have bodies, together those that one rule would match.

    Rules match any types of results: nodes that differ in these alone are together.
    """
    nodes: dict[tuple[object, ...], list[Node]] = {}
    for node in graph.nodes:
        is_one = node.op == "opaque" and has_bodies(node.attrs)
        if is_one and len(str(node.attrs["payload"])) <= _MOST_BYTES:
            others = (item for item in node.attrs.items() if item[0] != "out_types")
            nodes.setdefault(tuple(sorted(others)), []).append(node)
    return list(nodes.values())


class _BodyRun:
    """Optimizes the bodies of one node, or of several with the same.

    Attributes:
        is_late: the time for bodies was over, and some are as they were.
    """

    def __init__(
        self,
        run: Run,
        model: Model,
        nodes: Sequence[Node],
        known_results: dict[bytes, Result | None],
    ) -> None:
        self._run, self._node, self._nodes = run, nodes[0], nodes
        self._known_results = known_results
        self._model = model
        sized = [model.graph]
        if model.dynamic is not None:
            sized = [each.graph for each in model.dynamic.all]
        self._graphs = sized
        self.is_late = False

    def rewrite(self, number: int) -> BodyRewrite | None:
        """Return what became of the bodies; None if they are as they were."""
        attrs, operands = self._node.attrs, self._operands()
        if operands is None:
            return None
        imports = written_imports(self._model.graph.metadata)
        if str(attrs["domain"]) in ("", "ai.onnx"):
            imports[""] = int(str(attrs["opset"]))
        own_results: dict[str, Result] = {}
        for body in bodies_of(attrs, operands, self._known(), imports):
            if len(list(all_nodes(body.model.graph.node))) < _FEWEST_NODES:
                continue
            content = body.content
            if content not in self._known_results:
                if now_s() > _end_s.get():
                    self.is_late = True
                    break
                self._known_results[content] = self._optimized(body)
            result = self._known_results[content]
            if result is not None:  # what is within it may be as it was
                self.is_late |= any(note.endswith(_LATE) for note in result.notes)
            if result is not None and not result.unchanged:
                own_results[body.attribute] = result
        models = {
            name: model
            for name, model in ((name, result.model) for name, result in own_results.items())
            if not model.functions and read_imports(model.opset_import).items() <= imports.items()
        }
        if not models:
            return None
        new, places = with_bodies(attrs, models)
        before, after = count_nodes(attrs), count_nodes(new)
        steps = [step for name in models for step in _steps(name, own_results[name])]
        op_type, value = str(attrs["op_type"]), self._node.outputs[0]
        called = _NOT_IN_NAMES.sub("-", self._node.name or value)[:_LONGEST_NAME]
        rule = Rule(
            f"{op_type.lower()}-bodies-{number}-{called}".rstrip("-."),
            _law(op_type, before, after, steps),
            (_term(attrs, range(len(self._node.inputs))),),
            (_term(new, places),),
            file=BODIES_FILE,
        )
        return BodyRewrite(rule, value, op_type, before, after, tuple(steps))

    def _operands(self) -> list[tuple[TensorType, ...]] | None:
        """Return the types of the operands at each size; None where the nodes differ in them."""
        readings = {
            tuple(tuple(graph.types[name] for graph in self._graphs) for name in node.inputs)
            for node in self._nodes
        }
        if len(readings) > 1:
            return None
        (operands,) = readings
        return [tuple(part for kind in kinds for part in tensors_of(kind)) for kinds in operands]

    def _known(self) -> dict[int, Weight]:
        """Return the operands that are the same constants wherever the bodies are, at all sizes."""
        weights = self._model.graph.weights
        known = {}
        for place, name in enumerate(self._node.inputs):
            is_one = all(node.inputs[place] == name for node in self._nodes)
            if not is_one or name not in weights:
                continue
            if all(
                name in graph.weights and is_same(graph.weights[name].data, weights[name].data)
                for graph in self._graphs
            ):
                known[place] = weights[name]
        return known

    def _optimized(self, body: Body) -> Result | None:
        """Run the pipeline on a body; None where it cannot be read, compared, or written."""
        run = self._run
        own = run.cost if run.has_own_costs else None
        try:
            return run.again(
                body.model, _options(run.options, body), cost_model=own, progress=Silent()
            )
        except RelationalTensatError:
            return None


def _options(options: Options, body: Body) -> Options:
    """Return the options of a body's run: those that say how a graph is searched, by modelled costs."""
    given = options.rules
    costs = options.costs.source or ""
    is_measured = costs.startswith(("cpu", "cuda"))
    opset = next(item.version for item in body.model.opset_import if item.domain == "")
    own = Options().replace(
        rules=given.files,
        only=given.only,
        skip=given.skip,
        allow_unsound=given.allow_unsound,
        backend=given.backend,
        iterations=options.exploration.iterations,
        node_limit=options.exploration.node_limit,
        cost_cache=options.costs.cache,
        seed=options.process.seed,
        threads=options.process.threads,
        memory_limit=options.process.memory_limit,
        budget_s=0.0,
        end_to_end=False,
        dims=dict(body.sizes),
        opset=opset,
    )
    if options.process.deterministic:
        own = own.replace(deterministic=True)
    else:
        limit_s = min(_EXPLORATION_S, options.exploration.time_limit_s or _EXPLORATION_S)
        own = own.replace(time_limit_s=limit_s, extract_time_limit_s=_EXTRACTION_S)
    place = options.purpose.runs_on
    if place is not None:
        return own.replace(runs_on=place, effort=LOW)
    return own.replace(cost="analytic:cpu" if is_measured else costs or None)


def _steps(attribute: str, result: Result) -> Iterator[str]:
    """Yield what was done to a body, step by step, with what was done to bodies in it."""
    from relational_tensat.explain.explanation import explain  # few models have bodies

    if result.tables is None or result.tables.memory is None:
        return
    connection = result.tables.memory
    rows = connection.execute("SELECT rule, steps FROM body_rewrite").fetchall()
    inner = {str(rule): steps for rule, steps in rows}
    with suppress(RelationalTensatError):
        for step in explain(connection).steps:
            if step.rule in inner:
                yield from (f"{attribute}, {text}" for text in inner[step.rule])
                continue
            places = " and ".join(place.tensor for place in step.at)
            before, after = ", ".join(step.before) or "a value", ", ".join(step.after)
            yield f"{attribute}, {step.rule} at {places}: {before} → {after or 'an operand'}"


def _law(op_type: str, before: int, after: int, steps: Sequence[str]) -> str:
    """Return what the rule says, in one line with the first steps."""
    text = (
        f"{op_type} with its bodies optimized as models of their own: {before} nodes become {after}"
    )
    if steps:
        more = len(steps) - _STEPS_SHOWN
        text += f" ({'; '.join(steps[:_STEPS_SHOWN])}{f'; {more} more' if more > 0 else ''})"
    return _NOT_IN_LAWS.sub("'", text)


def _term(attrs: Mapping[str, object], places: Sequence[int] | range) -> Apply:
    """Return an opaque node as a rule has it: with any types of results, which depend on sizes."""
    operands = gathered([Var(f"x{place}") for place in places])
    values = tuple(
        (name, Var("types") if name == "out_types" else Literal(value))  # type: ignore[arg-type]
        for name, value in attrs.items()
    )
    return Apply("opaque", operands, values)
