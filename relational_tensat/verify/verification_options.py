"""What can be chosen for verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.base.option import OptionGroup, option


@dataclass(frozen=True, slots=True)
class VerificationOptions(OptionGroup):
    """What a result is compared on."""

    inputs: Mapping[str, Path] = option(
        factory=dict, help="compare on this input instead of random ones",
        flag="--input", metavar="NAME=FILE.npy",
    )  # fmt: skip
    runs: int | None = option(
        None, "random inputs per set of weights", name="verify_runs", metavar="N", minimum=1,
        default_text="2, or 1 over 5 Gflop or 1,000 nodes",
        is_rare=True,
    )  # fmt: skip
    strict: bool = option(
        False, "end with exit code 4 if the optimized graph computes something else, instead of "
        "writing another graph or the original",
    )  # fmt: skip
