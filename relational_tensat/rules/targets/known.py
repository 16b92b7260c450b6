"""The targets that there are, by name. A target is a module with a function ``describe() -> Target``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from relational_tensat.base.checks import check_choice
from relational_tensat.rules.library import shipped_files
from relational_tensat.rules.targets.names import TARGETS
from relational_tensat.rules.targets.target import Target

#: The family of the rules that lead to kernels of a model's own.
FUSED = "fused"
#: What the file would be called that has them.
FUSED_FILE = f"{FUSED}.rules"


@cache
def load_target(name: str) -> Target:
    """Return a target; its kernels are operators from now on.

    Raises:
        UsageError: there is none of that name; names the nearest.
    """
    check_choice("target", name, TARGETS)
    target: Target = import_module(f"relational_tensat.rules.targets.{name}").describe()
    return target


def know_kernels() -> None:
    """Make the kernels of all targets known, for whoever reads e-graphs or rules that may have them."""
    import_module("relational_tensat.rules.targets.fused_chain")
    for name in TARGETS:
        load_target(name)


def all_rule_files() -> list[Path]:
    """Return the files of all rules that ship, those of the targets at the end."""
    know_kernels()
    return [*shipped_files(), *(load_target(name).rule_file for name in TARGETS)]
