"""What found rules are worth: sought for models after a run, then tried on them beside those that ship."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.cli.synthesis import synthesis_tools
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.synthesis.found_file import found_text
from relational_tensat.rules.synthesis.funnel import RuleFunnel, SynthesisRequest
from relational_tensat.rules.synthesis.store import SynthesisStore
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize


def sought(
    models: Sequence[Path], profile: str, size: int, limit_s: float, db: Path | None, output: Path
) -> list[tuple[str, int]]:
    """Seek rules for models that a run has written; return the funnel.

    Args:
        models: optimized files.
    """
    request = SynthesisRequest(models=tuple(models), size=size, time_limit_s=limit_s)
    tools = replace(synthesis_tools(profile, load_rules(None)), optimized=load_model)
    with SynthesisStore(db) as store:
        RuleFunnel(store, request, tools, print).run()
        output.write_text(found_text(store, "bench synthesis worth"), encoding="utf-8")
        return [(name, count) for name, count in store.rows("funnel")]


@dataclass(frozen=True)
class Worth:
    """A model with the rules that ship, and with found ones, too; modelled microseconds."""

    model: str
    shipped_us: float
    found_us: float
    used: tuple[str, ...]


def tried(models: Sequence[Path], profile: str, rules: Path) -> Iterator[Worth]:
    """Yield what the rules of a file are worth to models, by whole runs."""
    names = {rule.name for rule in load_rules([rules])}
    shipped = sorted({Path(rule.file) for rule in load_rules(None)})
    for model in models:
        before, after = (
            optimize(model, Options.of(cost=profile, time_limit_s=20.0, rules=files))
            for files in (tuple(shipped), (*shipped, rules))
        )
        used = tuple(name for name in after.rules_used if name in names)
        yield Worth(model.stem, before.cost_after_us, after.cost_after_us, used)
