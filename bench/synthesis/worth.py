"""What found rules are worth: sought for models after a run, then tried on them beside those that ship."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.conformance.runs import sizes
from bench.exports.models import Made
from bench.exports.trial import open_session, times_ms
from bench.synthesis.found_report import found_text
from bench.synthesis.funnel import RuleFunnel, SynthesisRequest
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules, read_rule_file
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Graph

_EXPLORATION_S = 20.0


def sought(
    models: Sequence[Path], profile: str, size: int, limit_s: float, db: Path | None, output: Path
) -> list[tuple[str, int]]:
    """Seek rules for models that a run has written; return the funnel.

    Args:
        models: optimized files, with inputs beside them.
    """
    request = SynthesisRequest(models=tuple(models), size=size, time_limit_s=limit_s)
    tools = _ToolsOfFiles(profile, load_rules(None))
    with SynthesisStore(db) as store:
        RuleFunnel(store, request, tools, print).run()
        output.write_text(found_text(store, "bench synthesis worth"), encoding="utf-8")
        return [(name, count) for name, count in store.rows("funnel")]


class _ToolsOfFiles(SynthesisTools):
    """Those of models that a run has written."""

    def optimized(self, path: Path) -> Graph:
        """Return a model's graph as it is."""
        return load_model(path, _sizes(path))


def _sizes(path: Path) -> dict[str, int]:
    """Return the sizes that a model's first inputs have, where it has dynamic dimensions."""
    return sizes(path.read_bytes(), Made(path.stem, path).input_sets()[0])


@dataclass(frozen=True)
class Worth:
    """A model by the rules that ship, and with found ones, too: modelled, and timed in turns if asked for.

    Attributes:
        used: found rules that the result needs.
        shipped_ms, found_ms: CPU time of a run in onnxruntime, one thread, the shortest of several.
    """

    model: str
    shipped_us: float
    found_us: float
    used: tuple[str, ...]
    shipped_ms: float = 0.0
    found_ms: float = 0.0


def tried(models: Sequence[Path], rules: Path, measures: bool = False) -> Iterator[Worth]:
    """Yield what the rules of a file are worth to models in onnxruntime, by runs without and with them.

    Costs are modelled, whole kernels of onnxruntime.

    Args:
        models: files with inputs beside them, as ``bench exports`` makes them.
    """
    names = {rule.name for rule in read_rule_file(rules)}
    shipped = tuple(sorted({Path(rule.file) for rule in load_rules(None)} - {rules.resolve()}))
    for model in models:
        dims = _sizes(model)
        with tempfile.TemporaryDirectory(prefix="synthesis-") as folder:
            written = [Path(folder) / name for name in ("shipped.onnx", "found.onnx")]
            before, after = (
                optimize(
                    model,
                    Options.of(effort="low", time_limit_s=_EXPLORATION_S, rules=files, dims=dims),
                    output=path,
                )
                for files, path in zip((shipped, (*shipped, rules)), written, strict=True)
            )
            used = tuple(name for name in after.rules_used if name in names)
            times = (0.0, 0.0)
            if measures and after.cost_after_us < before.cost_after_us:
                inputs = Made(model.stem, model).input_sets()[0]
                one, other = map(open_session, written)
                times = times_ms(one, other, inputs)
        yield Worth(model.stem, before.cost_after_us, after.cost_after_us, used, *times)
