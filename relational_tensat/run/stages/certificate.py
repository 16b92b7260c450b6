"""The certificate of a result: all that was done, as steps that others can check without the search.

It is made from the explanation of the run, and checked before it is written, as its readers check it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import NoSolutionError, UsageError, VerificationError
from relational_tensat.base.files import write_aside
from relational_tensat.base.option import SizeRange
from relational_tensat.certificate.check import check_certificate
from relational_tensat.certificate.proof_file import (
    FORMAT,
    MOST_GIVEN,
    certificate_of,
    dims_of,
    model_file,
)
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.other_sizes import ShapeSpecificError, at_other_sizes
from relational_tensat.rules.model import Rule, rule_text
from relational_tensat.rules.soundness.store import cached_verdicts, content_hash, shipped_verdicts
from relational_tensat.run.gain import MEASURED
from relational_tensat.run.result import Result
from relational_tensat.run.stages.compare_sizes import with_shared_weights
from relational_tensat.run.values import LoadedRun, WrittenRun
from relational_tensat.tensor.types import AttrItems

_PACKAGES = ("relational-tensat", "duckdb", "highspy", "numpy", "onnx", "onnxruntime")


def write_certificate(written: WrittenRun, result: Result, path: Path) -> None:
    """Write the certificate of a result, once it has been checked.

    Raises:
        UsageError: the model or the result is no file.
        VerificationError: the certificate does not hold; nothing is written.
        NoSolutionError: no explanation of the result was found.
    """
    loaded, output = written.checked.loaded, written.output
    file = loaded.model.file
    if file is None or output is None:
        raise UsageError("--certificate is of two files: a model's, and the one of -o")
    if written.checked.saved is not None:
        raise UsageError("--certificate cannot follow onnxruntime's own changes: --this-machine")
    content = _content(written, result, file, output)
    stated = certificate_of(json.loads(json.dumps(content)))
    try:
        found = check_certificate(stated, file, output, allow_own_rules=True, keeps_numbers=False)
    except VerificationError as error:
        raise VerificationError(f"{path}: not written, as it does not hold: {error}") from None
    content["numbers"] |= {
        "float64": found.float64, "runtime": found.runtime, "tolerance": found.tolerance,
    }  # fmt: skip
    with write_aside(path) as folder:
        text = json.dumps(content, ensure_ascii=False)
        (folder / path.name).write_text(text + "\n", encoding="utf-8")


def _content(written: WrittenRun, result: Result, file: Path, output: Path) -> dict[str, Any]:
    loaded = written.checked.loaded
    is_original = written.checked.extracted.is_unchanged
    with loaded.tables.opened() as connection:  # with --db, the run's own is closed
        explanation = explain(connection, is_original=is_original)
    writer = _NumberedTerms(explanation)
    steps = [writer.step(number) for number in range(len(explanation.rewrites))]
    start = writer.numbers(explanation.original)
    sizes = _sizes(loaded, explanation, writer, file)
    rules = {rewrite.law.rule.name: rewrite.law.rule for rewrite in explanation.rewrites}
    return {
        "format": FORMAT,
        "made": _made(),
        "original": asdict(model_file(file)),
        "result": asdict(model_file(output)),
        "reading": _reading(loaded),
        "rules": {name: _rule(rule) for name, rule in sorted(rules.items())},
        "symbols": writer.symbols,
        "terms": writer.terms,
        "sizes": sizes,
        "start": start,
        "steps": steps,
        "figures": _figures(result),
        "numbers": {"float64": 0.0, "runtime": None, "tolerance": 0.0},
    }


class _NumberedTerms:
    """The terms that a certificate needs, numbered as they come, operands first."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._number: dict[int, int] = {}
        self._symbol: dict[str, int] = {}
        self.terms: list[list[int]] = []
        self.symbols: list[Any] = []
        #: The explanation's terms, in order.
        self.own: list[int] = []

    def numbers(self, terms: Sequence[int]) -> list[int]:
        for term in self._explanation.terms.of(terms):
            if term not in self._number:
                self._number[term] = len(self.terms)
                self.own.append(term)
                children = self._explanation.terms[term].children
                self.terms.append([self._number[child] for child in children])
        return [self._number[term] for term in terms]

    def symbol(self, op: str, attrs: AttrItems) -> int:
        content = [op, [[name, value] for name, value in attrs]]
        number = self._symbol.setdefault(json.dumps(content), len(self.symbols))
        if number == len(self.symbols):
            self.symbols.append(content)
        return number

    def step(self, place: int) -> dict[str, Any]:
        rewrite = self._explanation.rewrites[place]
        law, terms = rewrite.law, self._explanation.terms
        sides = []
        for side in (law.source, law.target):
            values = list(rewrite.operands)
            for signature, operands in side.nodes:
                values.append(terms.id_of(signature, [values[each] for each in operands]))
            sides.append(self.numbers([values[root] for root in side.roots]))
        return {
            "rule": law.rule.name,
            "backward": not rewrite.forward,
            "sources": sides[0],
            "targets": sides[1],
            "at": [replaced.output for replaced in rewrite.replaced],
            "outputs": self.numbers(rewrite.after),
        }


def _sizes(
    loaded: LoadedRun, explanation: Explanation, terms: _NumberedTerms, file: Path
) -> list[dict[str, Any]]:
    """Return the model at each of its sizes: each term's form there."""
    dynamic, stored = loaded.model.dynamic, explanation.stored
    symbols = [stored.signatures[explanation.terms[term].signature].symbol for term in terms.own]
    others = [] if dynamic is None else [there.graph for there in dynamic.others]
    shared = [with_shared_weights(graph, loaded.original) for graph in others]
    try:
        counterparts = at_other_sizes(explanation, shared) if shared else []
    except ShapeSpecificError as error:
        raise NoSolutionError(
            f"no certificate: the result holds at all sizes, and its steps do not: {error.reason}"
        ) from None
    attrs = [[symbol.attrs for symbol in symbols]]
    attrs += [[there[term].attrs for term in terms.own] for there in counterparts]
    graphs = [loaded.model.graph, *others]
    return [
        {
            "dims": dims_of(file, graph),
            "symbols": [
                terms.symbol(symbol.op, items) for symbol, items in zip(symbols, own, strict=True)
            ],
        }
        for graph, own in zip(graphs, attrs, strict=True)
    ]


def _reading(loaded: LoadedRun) -> dict[str, Any]:
    """Return how the model was read."""
    options, dynamic = loaded.run.options.model, loaded.model.dynamic
    given = {name: loaded.inputs[name] for name in loaded.run.options.verification.inputs}
    return {
        "is_dynamic": dynamic is not None,
        "dims": {
            name: [size.least, size.most] if isinstance(size, SizeRange) else size
            for name, size in options.dims.items()
        },
        "keep_overridable": options.keep_overridable,
        "inputs": {
            name: [array.dtype.name, list(array.shape), array.reshape(-1).tolist()]
            for name, array in given.items()
            if array.dtype.kind in "bi" and array.size <= MOST_GIVEN
        },
    }


def _rule(rule: Rule) -> dict[str, str]:
    """Return a rule as readers find it, with what is known of it."""
    key = content_hash(rule)
    verdict, kind = shipped_verdicts().get(key), "shipped"
    if verdict is None:
        kind = {"fused": "kernel", "bodies": "body", "resizes": "body"}.get(rule.family, "own")
        verdict = cached_verdicts().get(key)
    status, evidence = ("", "") if verdict is None else (verdict.status, verdict.evidence)
    return {"text": rule_text(rule), "kind": kind, "verdict": status, "evidence": evidence}


def _figures(result: Result) -> dict[str, Any]:
    gain, timed = result.gain, result.gain.measured
    is_measured = gain.basis == MEASURED and timed is not None and not gain.is_kept
    return {
        "profile": result.cost_profile,
        "basis": "kept" if gain.is_kept else gain.basis,
        "before_us": gain.before_us,
        "after_us": gain.after_us,
        "speedup": gain.speedup,
        "low": timed.low if is_measured and timed is not None else 0.0,
        "high": timed.high if is_measured and timed is not None else 0.0,
        "bound_us": result.bound_us,
        "gap": result.gap,
        "e_nodes": result.e_nodes,
        "e_classes": result.e_classes,
    }


def _made() -> dict[str, str]:
    """Return what the certificate was made with, and when."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {**versions, "machine": f"{platform.machine()} {platform.system()}", "date": when}
