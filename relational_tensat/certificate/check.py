"""The check of a certificate: replayed from the two files, without e-graph, database or search.

Each part of it stops at the first thing that is not as stated, and says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from relational_tensat.base.errors import InputError, RelationalTensatError, VerificationError
from relational_tensat.certificate.both_ways import BothWays
from relational_tensat.certificate.equations import check_instance, operators_of, read_rule
from relational_tensat.certificate.proof_file import (
    Certificate,
    ModelFile,
    Outputs,
    StatedRule,
    StatedStep,
    dims_of,
    model_file,
)
from relational_tensat.certificate.term_table import TermTable
from relational_tensat.formats import load_dynamic, load_model
from relational_tensat.rules.backends.backend import all_rule_files, know_kernels
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import content_hash, shipped_verdicts
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue, TensorType, tensors_of
from relational_tensat.verify.inputs import RandomWeights, draw_inputs
from relational_tensat.verify.runtime import FileTrial, verify_files_at

#: Largest relative errors in float64: of a step, whose numbers a model may have rounded to float32; of one
#: that has a rounding operator inside; of a value that the file has as other operators.
_STEP, _ROUNDED_STEP, _FILE = 1e-6, 0.05, 1e-5
#: An error is as stated within this factor, or where both are this small: machines add in other orders.
_FACTOR, _FLOAT64_FLOOR, _RUNTIME_FLOOR = 30.0, 1e-11, 1e-6
#: The errors of operators and functions that get values of a wrong kind.
_SENSELESS = (TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError)
#: Sums of costs are equal within this.
_SUM = 1e-9


@dataclass(frozen=True, slots=True)
class _AtSize:
    """Both files at one size of each dynamic dimension.

    Attributes:
        terms: of the certificate, by their numbers there, the numbers in ``table``.
        end, file: outputs of the last step's graph, and of the result as it was read.
    """

    original: Graph
    inputs: Mapping[str, Array]
    table: TermTable
    terms: list[int]
    start: list[int]
    end: list[int]
    file: list[int]


@dataclass(slots=True)
class CertificateCheck:
    """The parts that were checked, and how many.

    Attributes:
        steps, sizes: all of them were replayed.
        by_numbers: rules that no verdict stands behind: their steps rest on numbers.
        same, compared: values of the result's file that are the last graph's own; that are written as
            other operators, and were computed both ways.
        float64, runtime: the largest relative errors found; runtime is None if it was not run.
    """

    steps: int = 0
    sizes: int = 0
    by_numbers: dict[str, str] = field(default_factory=dict)
    same: int = 0
    compared: int = 0
    float64: float = 0.0
    runtime: float | None = None
    tolerance: float = 0.0


def check_certificate(
    stated: Certificate,
    original: Path,
    result: Path,
    *,
    allow_own_rules: bool = False,
    keeps_numbers: bool = True,
) -> CertificateCheck:
    """Check all that a certificate says of two files.

    Args:
        allow_own_rules: steps may use rules that do not ship; their numbers stand for them.
        keeps_numbers: errors have to be those that are stated; without, they are only found out.

    Raises:
        VerificationError: something is not as stated; says what and where.
        InputError: a file cannot be read.
    """
    know_kernels()
    _check_files(stated.original, original)
    _check_files(stated.result, result)
    checked = CertificateCheck(len(stated.steps), len(stated.sizes))
    try:
        _check_claims(stated, original, result, checked, allow_own_rules=allow_own_rules)
        if keeps_numbers:
            _check_numbers(stated, checked)
    except RelationalTensatError:
        raise
    except _SENSELESS as error:  # an attribute that its operator cannot have, a size below 0, …
        reason = f"{type(error).__name__}: {error}"
        raise VerificationError(f"the certificate makes no sense ({reason})") from None
    return checked


def _check_claims(
    stated: Certificate,
    original: Path,
    result: Path,
    checked: CertificateCheck,
    *,
    allow_own_rules: bool,
) -> None:
    """Replay the steps, link both ends to the files, and run these."""
    rules = dict(_read_rules(stated.rules, checked, allow_own_rules=allow_own_rules))
    read = _read_original(stated, original)
    if len(read) != len(stated.sizes):
        raise VerificationError(f"{len(stated.sizes)} sizes, expected {len(read)}")
    files = original, result
    sizes = [_at_size(stated, place, *there, files) for place, there in enumerate(read)]
    small = min(sizes, key=lambda each: sum(kind.size for kind in each.original.inputs.values()))
    inputs = draw_inputs(small.original, stated.seed, 0, small.inputs)
    numbers = BothWays(small.table, inputs, RandomWeights(small.original, stated.seed))
    for there in sizes:
        _replay(stated, rules, there, numbers if there is small else None, checked)
    for there in sizes:
        _compare_with_file(there, numbers if there is small else None, checked)
    _run_files(stated, sizes, original, result, checked)
    _check_figures(stated)


def _check_files(stated: ModelFile, path: Path) -> None:
    found = model_file(path)
    if found.sha256 != stated.sha256:
        raise VerificationError(
            f"{path}: SHA-256 {found.sha256[:16]}…, stated {stated.sha256[:16]}…"
        )
    for key in ("data", "nodes", "bytes", "opset"):
        if getattr(found, key) != getattr(stated, key):
            raise VerificationError(
                f"{path}: {key} {getattr(found, key)}, stated {getattr(stated, key)}"
            )


def _read_rules(
    stated: Mapping[str, StatedRule], checked: CertificateCheck, *, allow_own_rules: bool
) -> Iterator[tuple[str, Rule]]:
    """Read the rules. This installation knows which of them ship, with which law and verdict."""
    shipped = {rule.name: rule for file in all_rule_files() for rule in read_rule_file(file)}
    verdicts = shipped_verdicts()
    for name, each in stated.items():
        rule = read_rule(each.text, name)
        yield name, rule
        verdict = verdicts.get(content_hash(rule))
        if verdict is not None:
            law = shipped[name].law if name in shipped else rule.law
            known = ("shipped", verdict.status, verdict.evidence, law)
            said = (each.kind, each.verdict, each.evidence, rule.law)
            if said != known:
                raise VerificationError(f"the rule {name!r} is {known}, stated: {said}")
            continue
        if each.kind == "own" and not allow_own_rules:
            raise VerificationError(
                f"the rule {name!r} does not ship; --own-rules takes its steps by their numbers"
            )
        if each.kind != "own" and not _is_of_a_model(rule, each.kind):
            raise VerificationError(f"the rule {name!r} is no equation of a {each.kind!r}")
        checked.by_numbers[name] = each.kind


def _is_of_a_model(rule: Rule, kind: str) -> bool:
    """Whether a rule leads to a kernel that was made for it, or to an unknown operator in another form."""
    op = {"kernel": "fused", "body": "opaque"}.get(kind)
    return op is not None and f"Apply(op={op!r}" in repr(rule.targets)


def _read_original(stated: Certificate, path: Path) -> list[tuple[Graph, Mapping[str, Array]]]:
    """Return the original at all stated sizes, with the inputs that are known there."""
    reading, dims = stated.reading, stated.sizes[0].dims
    keeps = reading.keep_overridable
    if not reading.is_dynamic:
        graph = load_model(path, dims, keep_overridable=keeps)
        return [(graph, reading.inputs)]
    model = load_dynamic(path, reading.dims, keep_overridable=keeps, inputs=reading.inputs)
    if isinstance(model, Graph):
        raise VerificationError(f"{path}: has no dynamic dimensions, stated: it has")
    return [(there.graph, there.known_inputs) for there in model.all]


def _at_size(
    stated: Certificate,
    place: int,
    before: Graph,
    given: Mapping[str, Array],
    files: tuple[Path, Path],
) -> _AtSize:
    (original, result), dims = files, stated.sizes[place].dims
    where = f" at {dict(dims)}" if dims else ""
    if dims_of(original, before) != dims:
        raise VerificationError(f"{original}: is read at other sizes than those stated{where}")
    after = load_model(result, dims, keep_overridable=stated.reading.keep_overridable)
    table = TermTable()
    names = table.add_graph(before)
    read = table.add_graph(after)
    terms: list[int] = []
    for number, (operands, symbol) in enumerate(
        zip(stated.operands, stated.sizes[place].symbols, strict=True)
    ):
        op, attrs = symbol
        try:
            if op in ("input", "weight"):
                terms.append(_leaf(names, table, dict(attrs)))
            else:
                terms.append(table.apply(op, attrs, [terms[child] for child in operands]))
        except (KeyError, RelationalTensatError) as error:
            raise VerificationError(f"term {number}, {op}{where}: {error}") from None
    start = [names[name] for name in before.outputs]
    if [terms[term] for term in stated.start] != start:
        raise VerificationError(f"the first graph is another one than {original}{where}")
    end = [terms[term] for term in stated.end]
    return _AtSize(before, given, table, terms, start, end, [read[name] for name in after.outputs])


def _leaf(names: Mapping[str, int], table: TermTable, attrs: Mapping[str, AttrValue]) -> int:
    term = names[str(attrs["name"])]
    kind = table.type(term)
    if not isinstance(kind, TensorType) or (kind.dtype, kind.shape) != (
        attrs["dtype"],
        attrs["shape"],
    ):
        raise InputError(f"{attrs['name']} is {kind}")
    return term


def _replay(
    stated: Certificate,
    rules: Mapping[str, Rule],
    there: _AtSize,
    numbers: BothWays | None,
    checked: CertificateCheck,
) -> None:
    """Check each step: its rule says it, nothing else changes, and its numbers are equal."""
    before: Outputs = stated.start
    for number, step in enumerate(stated.steps, 1):
        where = f"step {number}, {step.rule}"
        if step.rule not in rules:
            raise VerificationError(f"{where}: the certificate has no such rule")
        sources, targets = ([there.terms[t] for t in each] for each in (step.sources, step.targets))
        try:
            check_instance(rules[step.rule], sources, targets, there.table)
        except InputError as error:
            raise VerificationError(f"{where}: {error}") from None
        changed = _changed(before, step, there)
        if changed is None:
            raise VerificationError(f"{where}: more has changed than what the rule replaces")
        if numbers is not None:
            _compare_step(step, rules[step.rule], there, numbers, checked, where)
            for new, old in changed:
                numbers.assume_equal(new, old)
        before = step.outputs


def _changed(before: Outputs, step: StatedStep, there: _AtSize) -> list[tuple[int, int]] | None:
    """Return what is new, each with what it stands for; None where more changed than what was replaced."""
    table, terms = there.table, there.terms
    replaced = {(terms[old], terms[new]) for old, new in step.replaced}
    pending = [(terms[a], terms[b]) for a, b in zip(before, step.outputs, strict=True)]
    visited = set(pending)
    changed = []
    while pending:
        old, new = pair = pending.pop()
        if old == new:
            continue
        changed.append((new, old))
        if pair in replaced:
            continue
        a, b = table[old], table[new]
        if a[:2] != b[:2] or len(a.children) != len(b.children):
            return None
        below = set(zip(a.children, b.children, strict=True)) - visited
        visited |= below
        pending += below
    return changed


def _compare_step(
    step: StatedStep,
    rule: Rule,
    there: _AtSize,
    numbers: BothWays,
    checked: CertificateCheck,
    where: str,
) -> None:
    """Compute what a step replaces, and what it puts there."""
    rounds = any(get_operator(op).rounds for op in operators_of(rule))
    for pair in step.replaced:
        old, new = (there.terms[term] for term in pair)
        error = numbers.difference(old, new, there.table[old].children)
        checked.float64 = max(checked.float64, error)
        if _is_apart(there, old, error, _ROUNDED_STEP if rounds else _STEP):
            raise VerificationError(f"{where}: both ways computed, numbers differ by {error:.1e}")


def _is_apart(there: _AtSize, term: int, error: float, most: float) -> bool:
    """Whether an error is too large for a term: whole numbers have none."""
    has_floats = all(part.is_float for part in tensors_of(there.table.type(term)))
    return error > (most if has_floats else 0.0)


def _compare_with_file(there: _AtSize, numbers: BothWays | None, checked: CertificateCheck) -> None:
    """Check that the last graph is the result's file; values spelled otherwise are compared by numbers."""
    table = there.table
    if len(there.end) != len(there.file):
        raise VerificationError("the result's file has other outputs than the last graph")
    pending = list(zip(there.end, there.file, strict=True))
    visited = set(pending)
    while pending:
        one, other = pending.pop()
        if table.type(one) != table.type(other):
            raise VerificationError(
                f"the result's file has {table.type(other)} where the last graph has {table.type(one)}"
            )
        a, b = table[one], table[other]
        if one == other:
            checked.same += numbers is not None
        elif (
            a[:2] == b[:2]
            and len(a.children) == len(b.children)
            and a.op not in ("input", "weight")
        ):
            checked.same += numbers is not None
            below = set(zip(a.children, b.children, strict=True)) - visited
            visited |= below
            pending += below
        elif numbers is not None:
            error = numbers.difference(one, other)
            checked.compared += 1
            if _is_apart(there, one, error, _FILE):
                raise VerificationError(
                    f"the result's file has another value where the last graph has {a.op}: "
                    f"numbers differ by {error:.1e}"
                )
            numbers.assume_equal(other, one)


def _run_files(
    stated: Certificate,
    sizes: Sequence[_AtSize],
    original: Path,
    result: Path,
    checked: CertificateCheck,
) -> None:
    """Run both files as users run them, at all sizes, where onnxruntime is installed."""
    if original.suffix.lower() != ".onnx" or result.suffix.lower() != ".onnx":
        return
    trials = [FileTrial(there.original, there.inputs) for there in sizes]
    outcomes = verify_files_at(trials, original, result, seed=stated.seed)
    for found, size in zip(outcomes, stated.sizes, strict=True):
        if found.failure():
            raise VerificationError(f"the files at {dict(size.dims)}: {found.failure()}")
        for output in found.outputs:
            checked.runtime = max(checked.runtime or 0.0, output.max_relative_error)
            checked.tolerance = max(checked.tolerance, output.tolerance)


def _check_figures(stated: Certificate) -> None:
    """Check that figures are what they are made of; prices themselves are stated, not found."""
    figures = stated.figures
    slack_us = figures.after_us - figures.bound_us
    gap = slack_us / figures.after_us if figures.after_us else 0.0
    if slack_us < 0 or not isclose(figures.gap, gap, abs_tol=_SUM):
        raise VerificationError(f"the gap is not {figures.gap}, by the bound and the cost stated")
    if figures.basis == "modelled":
        modelled = figures.before_us / figures.after_us if figures.after_us else 1.0
        is_right = isclose(figures.speedup, modelled, rel_tol=_SUM)
    elif figures.basis == "measured":
        is_right = 0 < figures.low <= figures.speedup <= figures.high
    else:
        is_right = figures.basis == "kept" and figures.speedup == 1 and not stated.steps
    if not is_right:
        raise VerificationError(
            f"a speed-up of {figures.speedup} does not fit its basis, {figures.basis}"
        )


def _check_numbers(stated: Certificate, checked: CertificateCheck) -> None:
    said = stated.numbers
    pairs = [(said.float64, checked.float64, _FLOAT64_FLOOR)]
    # No onnxruntime could run them, which says nothing of files that are not ONNX.
    if checked.runtime is not None or stated.result.opset == 0:
        pairs.append((said.runtime or 0.0, checked.runtime or 0.0, _RUNTIME_FLOOR))
        if said.tolerance != checked.tolerance:
            raise VerificationError(
                f"the tolerance is {checked.tolerance}, stated {said.tolerance}"
            )
    for claimed, found, floor in pairs:
        low, high = sorted((claimed, found))
        if not (high <= floor or high <= _FACTOR * low):
            raise VerificationError(f"the largest error is {found:.1e}, stated {claimed:.1e}")
