"""A superoptimizer for tensor graphs whose e-graph is a database.

    from relational_tensat import Options, optimize

    result = optimize("model.json", Options.of(cost="a100"), output="faster.json")
    print(result.cost_before_us, "->", result.cost_after_us, result.stop_reason)

The names below are the public interface; they are imported when they are first used, so that
``import relational_tensat`` costs nothing.
"""

from __future__ import annotations

from relational_tensat import ctrl_c  # noqa: F401 - before all else

TYPE_CHECKING = False  # as of typing, which takes longer to import than all else here
if TYPE_CHECKING:
    from typing import Any

    from relational_tensat.base.errors import (
        InputError,
        NoSolutionError,
        RelationalTensatError,
        UsageError,
        VerificationError,
    )
    from relational_tensat.cost import CostModel, Profile, load_profile
    from relational_tensat.custom_ops.sessions import register, session
    from relational_tensat.formats import load_model, save_model
    from relational_tensat.rules.builder import rule
    from relational_tensat.run.options import Options
    from relational_tensat.run.pipeline import optimize, resume
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result
    from relational_tensat.run.workbench import EGraph, Extracted
    from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
    from relational_tensat.verify import Verification

__version__ = "0.1.0"

__all__ = [
    "CostModel",
    "EGraph",
    "Extracted",
    "Graph",
    "InputError",
    "NoSolutionError",
    "Node",
    "Options",
    "Profile",
    "Progress",
    "RelationalTensatError",
    "Result",
    "TensorType",
    "UsageError",
    "Verification",
    "VerificationError",
    "Weight",
    "build_graph",
    "load_model",
    "load_profile",
    "optimize",
    "register",
    "resume",
    "rule",
    "save_model",
    "session",
]

_HOMES = {
    "run.pipeline": ("optimize", "resume"),
    "custom_ops.sessions": ("register", "session"),
    "cost": ("CostModel", "Profile", "load_profile"),
    "base.errors": (
        "InputError",
        "NoSolutionError",
        "RelationalTensatError",
        "UsageError",
        "VerificationError",
    ),
    "tensor": ("Graph", "Node", "TensorType", "Weight", "build_graph"),
    "formats": ("load_model", "save_model"),
    "rules.builder": ("rule",),
    "run.options": ("Options",),
    "run.progress": ("Progress",),
    "run.result": ("Result",),
    "run.workbench": ("EGraph", "Extracted"),
    "verify": ("Verification",),
}


def __getattr__(name: str) -> Any:
    from relational_tensat.base.lazy import names_on_first_use

    return names_on_first_use(__name__, _HOMES)(name)


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__])
