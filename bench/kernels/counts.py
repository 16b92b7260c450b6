"""One model: its kernels as the backend's rules predict them, and as onnxruntime saves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.kernels.saved_kernels import (
    disagreement,
    predicted_kernels,
    saved_kernels,
)
from relational_tensat import load_model, load_profile
from relational_tensat.cost import as_source
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor.uses import share_equal_weights


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found for a model. The attributes are keys of the results that the bench keeps.

    Attributes:
        agree: kernels that were predicted and are there, kind by kind.
        predicted, saved: how many there are in all.
        differ: by kind, how many were predicted and how many there are, where these differ.
        failure: why there is nothing of all this; "" where there is.
    """

    name: str
    agree: int = 0
    predicted: int = 0
    saved: int = 0
    differ: Mapping[str, tuple[int, int]] | None = None
    failure: str = ""

    @property
    def all(self) -> int:
        """Kernels that were predicted or are there."""
        return self.predicted + self.saved - self.agree


def compare(path: Path, sizes: Mapping[str, int]) -> Comparison:
    """Compare the kernels of a model.

    Args:
        sizes: of its dynamic dimensions; without any, all its shapes are known to onnxruntime.
    """
    name = path.stem
    backend = load_backend("onnxruntime")
    rules = backend.rules(has_fixed_shapes=not sizes)
    costs = BackendCosts(as_source(load_profile("cpu")), backend, rules)
    try:
        graph = share_equal_weights(load_model(path, dict(sizes)))
        predicted, saved = predicted_kernels(costs.as_run(graph)), saved_kernels(path)
    except Exception as error:  # onnxruntime's errors have no common base class
        return Comparison(name, failure=" ".join(str(error).split()))
    return Comparison(
        name,
        (predicted & saved).total(),
        predicted.total(),
        saved.total(),
        disagreement(predicted, saved),
    )


def total_differences(comparisons: list[Comparison]) -> Counter[str]:
    """Return, by kind, how many kernels of all models were predicted or are there, but not both."""
    counter: Counter[str] = Counter()
    for comparison in comparisons:
        for kind, (predicted, saved) in (comparison.differ or {}).items():
            counter[kind] += abs(predicted - saved)
    return counter
